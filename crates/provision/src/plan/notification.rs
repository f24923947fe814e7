//! What Slurm is told about nodes.

use super::Step;
use super::print::{Details, said};
use super::step::SlurmStep;
use crate::cause::Cause;
use hostlist::NodeName;
use slurmctl::{BatchJob, JobId, Reason};

/// What Slurm is told about nodes, or about none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// Nodes are off, if they are still in this state: `power_down_force` requeues their jobs and calls our stop program, and
    /// the reason stays.
    ReturnToSlurm {
        /// The state.
        still: Still,
        /// Why, as a code.
        cause: Cause,
        /// Why, for the jobs' owners.
        reason: Reason,
    },
    /// Nodes are back in service, if they are still down and nobody holds them.
    ReturnToService,
    /// Nodes take no new jobs.
    Drain {
        /// Why.
        reason: Reason,
        /// Only those that are powered down and that nobody else holds.
        only_asleep: bool,
    },
    /// A node takes no new jobs until its machine is replaced, if it is still out of service for the reason seen.
    Condemn {
        /// The reason that a health check has given.
        seen: String,
        /// Why.
        reason: Reason,
    },
    /// The reservations of ours for the maintenance of nodes are over.
    ReleaseReservation,
    /// Nodes are in this place of the topology, in Slurm's words.
    SetTopology(String),
    /// Nodes take jobs again, if the drain is still ours.
    Undrain,
    /// Nodes reboot by our own reboot program when their jobs have ended; it reads the image from the reason.
    Reboot(Reason),
    /// A job that has its node rebooted.
    Submit(BatchJob),
    /// Why a job waits, for its owner.
    Comment(JobId, String),
    /// slurmctld takes up its configuration.
    Reload(Reload),
}

/// The state that a node must still have to be powered down. It is asked for just before, because it may have
/// changed since the node was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Still {
    /// On its way up.
    PoweringUp,
    /// Up or on its way, without a job.
    Unused,
    /// On, with jobs or without: an operator has decided.
    On,
    /// On, but it does not respond. A node that responds again may have kept its job.
    Silent,
    /// Drained until its machine is replaced, and without a job. Nobody else has taken it in hand.
    Condemned,
    /// Slurm waits for it or has given it up. It has not come up in the meantime.
    Awaited,
}

/// How slurmctld takes up its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// `scontrol reconfigure`
    Reconfigure,
    /// A stop and a start.
    Restart,
}

impl Step {
    /// Tells Slurm something about nodes, or about none.
    pub fn notify(nodes: impl IntoIterator<Item = NodeName>, what: Notification) -> Self {
        Self::Slurm(SlurmStep::Notify { nodes: nodes.into_iter().collect(), what })
    }

    /// What Slurm is told, if that is the step.
    #[must_use]
    pub fn notification(&self) -> Option<&Notification> {
        match self {
            Self::Slurm(SlurmStep::Notify { what, .. }) => Some(what),
            Self::Slurm(_) | Self::Machine(_) | Self::File(_) | Self::Report(_) => None,
        }
    }
}

impl Notification {
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Self::ReturnToSlurm { .. } => "return to slurm",
            Self::ReturnToService => "return to service",
            Self::Drain { .. } | Self::Condemn { .. } => "drain",
            Self::ReleaseReservation => "release reservation",
            Self::SetTopology(_) => "set topology",
            Self::Undrain => "undrain",
            Self::Reboot(_) => "reboot by slurm",
            Self::Submit(_) => "submit",
            Self::Comment(..) => "comment",
            Self::Reload(Reload::Reconfigure) => "reconfigure slurmctld",
            Self::Reload(Reload::Restart) => "restart slurmctld",
        }
    }

    pub(super) fn details(&self) -> Details {
        match self {
            Self::ReturnToSlurm { cause, reason, .. } => {
                vec![said("cause", cause), said("reason", reason)]
            }
            Self::SetTopology(place) => vec![said("place", place)],
            Self::Drain { reason, .. } | Self::Condemn { reason, .. } | Self::Reboot(reason) => {
                vec![said("reason", reason)]
            }
            Self::Submit(job) => vec![said("job", &job.name), said("partition", &job.partition)],
            Self::Comment(job, text) => vec![said("job", job), said("text", text)],
            Self::ReturnToService | Self::ReleaseReservation | Self::Undrain | Self::Reload(_) => {
                Vec::new()
            }
        }
    }
}
