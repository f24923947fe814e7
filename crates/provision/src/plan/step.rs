//! The steps of a plan.

use super::{FileStep, Notification, Refusal, Why};
use crate::cause::Cause;
use crate::site::{Pool, Wanted};
use cloud_core::{ImageId, InstanceId, Reboot};
use hostlist::NodeName;
use slurmctl::Reason;
use std::net::IpAddr;
use std::slice::from_ref;
use std::time::{Duration, SystemTime};

/// One thing to do, by who carries it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Something done to machines.
    Machine(MachineStep),
    /// Something that Slurm is told, or waited for.
    Slurm(SlurmStep),
    /// A file that is written.
    File(FileStep),
    /// Something that is only written down.
    Report(ReportStep),
}

/// Something done to machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineStep {
    /// Launch an instance in the first place that has one. The executor's record of the node has the token.
    Launch {
        /// What to launch.
        wanted: Wanted,
        /// What has to go first.
        first: Vec<Clear>,
        /// False for a node that Slurm does not know yet: [`SlurmStep::ReportAddresses`] follows.
        reports_address: bool,
    },
    /// Take an instance that is there: wait until it runs and has an address, and tell Slurm.
    Adopt {
        /// The node.
        node: NodeName,
        /// Its instance.
        id: InstanceId,
        /// Its address, if it runs and the listing has it.
        address: Option<IpAddr>,
    },
    /// Start a stopped instance, once it has stopped, and go on as for one that is there.
    StartStopped {
        /// The node.
        node: NodeName,
        /// Its instance.
        id: InstanceId,
        /// What to launch in its place if it does not start; its first place is where the instance is.
        otherwise: Option<Box<Wanted>>,
    },
    /// Shut an instance down and keep it for the node; terminate it if that cannot be done.
    Stop {
        /// The node.
        node: NodeName,
        /// Its instance.
        id: InstanceId,
    },
    /// Begin to remove instances; done when the cloud has accepted.
    Terminate {
        /// The node.
        node: NodeName,
        /// Its instances.
        ids: Vec<InstanceId>,
    },
    /// Terminate instances of ours that are no node's.
    TerminateNameless {
        /// The instances.
        ids: Vec<InstanceId>,
    },
    /// Wait until instances are gone; a failure if they are not by the deadline.
    WaitGone {
        /// The node.
        node: NodeName,
        /// Its instances.
        ids: Vec<InstanceId>,
    },
    /// Write another image over the boot disk.
    Rebuild {
        /// The node.
        node: NodeName,
        /// Its instance.
        id: InstanceId,
        /// The image.
        image: ImageId,
    },
    /// Remove an instance, wait until it is gone, and launch another.
    Recreate {
        /// Its instance.
        id: InstanceId,
        /// What to launch.
        wanted: Wanted,
    },
    /// Reboot an instance.
    Reboot {
        /// The node.
        node: NodeName,
        /// Its instance.
        id: InstanceId,
        /// How.
        how: Reboot,
    },
}

/// Something that Slurm is told, or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlurmStep {
    /// Tell Slurm something.
    Notify {
        /// The nodes it is about, if any.
        nodes: Vec<NodeName>,
        /// What.
        what: Notification,
    },
    /// Tell Slurm where a node is.
    SetAddress {
        /// The node.
        node: NodeName,
        /// Where.
        address: IpAddr,
    },
    /// Tell Slurm where nodes are that were launched before it knew them.
    ReportAddresses {
        /// The nodes.
        nodes: Vec<NodeName>,
    },
    /// Wait until nodes have no jobs left; a failure if they have by the deadline. One whose drain is
    /// lifted meanwhile, as Slurm does when it suspends a node, is drained again.
    WaitDrained {
        /// The nodes.
        nodes: Vec<NodeName>,
        /// Why they are drained.
        reason: Reason,
        /// How long.
        deadline: Duration,
    },
}

/// Something that is only written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportStep {
    /// Do nothing to a node, and count it as failed.
    Refuse {
        /// The node.
        node: NodeName,
        /// Why.
        why: Refusal,
    },
    /// Count a node as failed that Slurm does not wait for.
    GiveUp {
        /// The node.
        node: NodeName,
        /// Why, as a code.
        cause: Cause,
        /// Why, in words.
        reason: Reason,
    },
    /// Do nothing to a node, and count it as done.
    Nothing {
        /// The node.
        node: NodeName,
        /// Why.
        why: Why,
    },
    /// Remember that a place has yielded a bad machine, and avoid it until then, if it is not the first.
    NoteBad {
        /// The node.
        node: NodeName,
        /// The place's pool.
        pool: Pool,
        /// Until when it is avoided.
        until: Option<SystemTime>,
    },
    /// Remember that a node is to stay out of service until then.
    Rest {
        /// The node.
        node: NodeName,
        /// Why.
        cause: Cause,
        /// Until when.
        until: SystemTime,
    },
}

/// What has to go before a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clear {
    /// Wait until it is gone.
    AwaitGone(InstanceId),
    /// Remove it, and wait until it is gone.
    Terminate(InstanceId),
}

impl Clear {
    /// The instance.
    #[must_use]
    pub(crate) fn id(&self) -> &InstanceId {
        match self {
            Self::AwaitGone(id) | Self::Terminate(id) => id,
        }
    }
}

impl Step {
    /// Does nothing to a node, and counts it as failed.
    pub(super) fn refuse(node: NodeName, why: Refusal) -> Self {
        Self::Report(ReportStep::Refuse { node, why })
    }

    /// The nodes it is about.
    #[must_use]
    pub fn nodes(&self) -> &[NodeName] {
        match self {
            Self::Machine(step) => step.nodes(),
            Self::Slurm(step) => step.nodes(),
            Self::File(_) => &[],
            Self::Report(step) => from_ref(step.node()),
        }
    }

    /// The step for those of its nodes only; none if that leaves nothing of it.
    pub(crate) fn keeping(&self, keep: impl Fn(&NodeName) -> bool) -> Option<Self> {
        let kept: Vec<NodeName> = self.nodes().iter().filter(|node| keep(node)).cloned().collect();
        if kept.is_empty() && !self.nodes().is_empty() {
            return None;
        }
        let mut rest = self.clone();
        if let Self::Slurm(
            SlurmStep::Notify { nodes, .. }
            | SlurmStep::WaitDrained { nodes, .. }
            | SlurmStep::ReportAddresses { nodes },
        ) = &mut rest
        {
            *nodes = kept;
        }
        Some(rest)
    }

    /// The instances that it touches.
    #[must_use]
    pub fn instances(&self) -> Vec<&InstanceId> {
        let Self::Machine(step) = self else {
            return Vec::new();
        };
        match step {
            MachineStep::Launch { first, .. } => first.iter().map(Clear::id).collect(),
            MachineStep::Adopt { id, .. }
            | MachineStep::StartStopped { id, .. }
            | MachineStep::Stop { id, .. }
            | MachineStep::Rebuild { id, .. }
            | MachineStep::Recreate { id, .. }
            | MachineStep::Reboot { id, .. } => vec![id],
            MachineStep::Terminate { ids, .. }
            | MachineStep::TerminateNameless { ids }
            | MachineStep::WaitGone { ids, .. } => ids.iter().collect(),
        }
    }

    /// What is launched.
    pub(super) fn wanted(&self) -> Option<&Wanted> {
        if let Self::Machine(
            MachineStep::Launch { wanted, .. } | MachineStep::Recreate { wanted, .. },
        ) = self
        {
            Some(wanted)
        } else {
            None
        }
    }

    /// True if it has Slurm reboot nodes.
    pub(crate) fn reboots_by_slurm(&self) -> bool {
        matches!(self.notification(), Some(Notification::Reboot(_) | Notification::Submit(_)))
    }

    /// True if it does nothing.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self, Self::Report(ReportStep::Refuse { .. } | ReportStep::Nothing { .. }))
    }
}

impl MachineStep {
    fn nodes(&self) -> &[NodeName] {
        match self {
            Self::Launch { wanted, .. } | Self::Recreate { wanted, .. } => from_ref(&wanted.node),
            Self::Adopt { node, .. }
            | Self::StartStopped { node, .. }
            | Self::Stop { node, .. }
            | Self::Terminate { node, .. }
            | Self::WaitGone { node, .. }
            | Self::Rebuild { node, .. }
            | Self::Reboot { node, .. } => from_ref(node),
            Self::TerminateNameless { .. } => &[],
        }
    }
}

impl SlurmStep {
    fn nodes(&self) -> &[NodeName] {
        match self {
            Self::SetAddress { node, .. } => from_ref(node),
            Self::Notify { nodes, .. }
            | Self::WaitDrained { nodes, .. }
            | Self::ReportAddresses { nodes } => nodes,
        }
    }
}

impl ReportStep {
    fn node(&self) -> &NodeName {
        match self {
            Self::Refuse { node, .. }
            | Self::GiveUp { node, .. }
            | Self::Nothing { node, .. }
            | Self::NoteBad { node, .. }
            | Self::Rest { node, .. } => node,
        }
    }
}
