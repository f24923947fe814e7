//! A node of [`MemorySlurm`](super::MemorySlurm).

use super::settings::NodeSpec;
use crate::{BaseState, JobId, Node, NodeReason, NodeState, StateFlag};
use hostlist::NodeName;
use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

/// Seconds since the start of the controller, the resolution of Slurm's clock.
pub(super) type Seconds = u64;

/// The power state, as slurmctld knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Power {
    Up,
    Down,
    GoingDown { since: Seconds },
    ComingUp { since: Seconds },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reboot {
    Requested,
    Issued { since: Seconds },
}

/// A node; of its jobs it knows the id and the CPUs.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one of Slurm's flags, and they mix freely"
)]
#[derive(Clone, Debug)]
pub(super) struct NodeRecord {
    pub(super) spec: NodeSpec,
    pub(super) power: Power,
    pub(super) down: bool,
    pub(super) drain: bool,
    pub(super) not_responding: bool,
    pub(super) wants_down: bool,
    pub(super) wants_up: bool,
    pub(super) reboot: Option<Reboot>,
    /// When the machine stopped responding.
    pub(super) lost: Option<Seconds>,
    /// Since when slurmctld cannot reach the machine, because it registered from another address.
    pub(super) missed: Option<Seconds>,
    pub(super) jobs: BTreeMap<JobId, u32>,
    pub(super) reason: Option<(String, Seconds)>,
    pub(super) address: String,
    pub(super) hostname: String,
    /// The address it registered from.
    pub(super) seen_at: Option<String>,
    pub(super) boot_time: Option<Seconds>,
    pub(super) last_busy: Option<Seconds>,
    pub(super) instance_id: Option<String>,
    pub(super) comment: Option<String>,
    /// Its place in the topology, if that is not the one of the file.
    pub(super) topology: Option<String>,
}

impl NodeRecord {
    pub(super) fn new(spec: NodeSpec) -> Self {
        Self {
            power: if spec.cloud { Power::Down } else { Power::Up },
            down: false,
            drain: false,
            not_responding: false,
            wants_down: false,
            wants_up: false,
            reboot: None,
            lost: None,
            missed: None,
            jobs: BTreeMap::new(),
            reason: None,
            address: spec.name.to_string(),
            hostname: spec.name.to_string(),
            seen_at: None,
            boot_time: (!spec.cloud).then_some(0),
            last_busy: (!spec.cloud).then_some(0),
            instance_id: None,
            comment: None,
            topology: None,
            spec,
        }
    }

    pub(super) fn name(&self) -> &NodeName {
        &self.spec.name
    }

    pub(super) fn used_cpus(&self) -> u32 {
        self.jobs.values().sum()
    }

    /// True if the base state is `IDLE`.
    pub(super) fn is_idle(&self) -> bool {
        !self.down && self.jobs.is_empty()
    }

    /// True if nothing prevents that the node is powered down.
    pub(super) fn is_suspendable(&self) -> bool {
        self.jobs.is_empty() && self.power == Power::Up && self.reboot.is_none()
    }

    /// True if slurmctld has the address of the machine.
    pub(super) fn is_reached(&self) -> bool {
        !self.spec.cloud || self.seen_at.as_ref() == Some(&self.address)
    }

    /// Since when the machine has not responded.
    pub(super) fn silent_since(&self) -> Option<Seconds> {
        [self.lost, self.missed].into_iter().flatten().min()
    }

    /// True if a job may get this many of its CPUs; without a number, all of them.
    pub(super) fn takes(&self, cpus: Option<u32>) -> bool {
        let going = matches!(self.power, Power::GoingDown { .. });
        let silent = self.not_responding && self.power == Power::Up;
        let closed = self.down || self.drain || going || silent || self.reboot.is_some();
        let leaving = self.wants_down && self.jobs.is_empty();
        let free = self.spec.cpus.saturating_sub(self.used_cpus());
        let room = cpus.map_or(self.jobs.is_empty(), |cpus| cpus <= free);
        !closed && !leaving && room
    }

    pub(super) fn set_reason(&mut self, text: impl Into<String>, now: Seconds) {
        self.reason = Some((text.into(), now));
    }

    /// Appends to the reason, as slurmctld does.
    pub(super) fn append_reason(&mut self, text: &str, now: Seconds) {
        let text = match &self.reason {
            Some((before, _)) => format!("{before} : {text}"),
            None => text.to_owned(),
        };
        self.set_reason(text, now);
    }

    /// Sets the reason of a node that slurmctld itself sets down.
    pub(super) fn explain_down(&mut self, text: &str, appends: bool, now: Seconds) {
        if appends {
            self.append_reason(text, now);
        } else {
            self.set_reason(text, now);
        }
    }

    fn base(&self) -> BaseState {
        match (self.down, self.used_cpus()) {
            (true, _) => BaseState::Down,
            (false, 0) => BaseState::Idle,
            (false, used) if used >= self.spec.cpus => BaseState::Allocated,
            (false, _) => BaseState::Mixed,
        }
    }

    fn flags(&self) -> impl Iterator<Item = StateFlag> {
        let power = match self.power {
            Power::Up => None,
            Power::Down => Some(StateFlag::PoweredDown),
            Power::GoingDown { .. } => Some(StateFlag::PoweringDown),
            Power::ComingUp { .. } => Some(StateFlag::PoweringUp),
        };
        let reboot = self.reboot.map(|reboot| match reboot {
            Reboot::Requested => StateFlag::RebootRequested,
            Reboot::Issued { .. } => StateFlag::RebootIssued,
        });
        let set = |on: bool, flag: StateFlag| on.then_some(flag);
        let others = [
            set(self.spec.cloud, StateFlag::Cloud),
            set(self.drain, StateFlag::Drain),
            set(self.not_responding, StateFlag::NotResponding),
            set(self.wants_down, StateFlag::PowerDown),
            set(self.wants_up, StateFlag::PowerUp),
        ];
        others.into_iter().chain([power, reboot]).flatten()
    }

    pub(super) fn state(&self) -> NodeState {
        NodeState::new(self.base(), self.flags())
    }

    /// The node as scontrol shows it.
    pub(super) fn show(&self, epoch: SystemTime) -> Node {
        let time = |seconds: Seconds| epoch + Duration::from_secs(seconds);
        let mut node = Node::new(self.name().clone(), self.state());
        node.address.clone_from(&self.address);
        node.hostname.clone_from(&self.hostname);
        node.reason = self.reason.as_ref().map(|(text, at)| NodeReason {
            text: text.clone(),
            by: Some("root".into()),
            at: Some(time(*at)),
        });
        node.features.clone_from(&self.spec.features);
        node.partitions.clone_from(&self.spec.partitions);
        node.boot_time = self.boot_time.map(time);
        node.instance_id.clone_from(&self.instance_id);
        node.comment.clone_from(&self.comment);
        node.topology.clone_from(&self.topology);
        node
    }
}
