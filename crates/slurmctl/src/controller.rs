//! The controller as a port.

use crate::{
    config::ControllerConfig,
    error::{Error, ErrorKind, Result},
    job::{BatchJob, Job, JobFilter, JobId},
    node::Node,
    reason::Reason,
    reservation::Reservation,
};
use async_trait::async_trait;
use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::{fmt, net::IpAddr};

/// The Slurm controller, with the operations that an elastic cluster needs.
///
/// Node names must come from `NodeName=` lines: Slurm expands the name of a `NodeSet`. `ALL`, which Slurm expands to
/// every node, is refused.
///
/// Every call has a deadline. After an ambiguous failure, queries and calls that set addresses, comments, drain or
/// undrain may be repeated. Query the state before repeating any other: a second [`submit`](Self::submit) is a second
/// job, a finished reboot starts again, [`PowerUp`](NodeAction::PowerUp) and [`PowerDown`](NodeAction::PowerDown) call
/// Slurm's programs again, and [`PowerDownForce`](NodeAction::PowerDownForce) and [`Down`](NodeAction::Down) end
/// whatever job has the node by then.
#[async_trait]
pub trait Controller: fmt::Debug + Send + Sync + 'static {
    /// The release of Slurm.
    fn version(&self) -> SlurmVersion;

    /// All nodes, or those of a list; unknown names are ignored.
    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>>;

    /// The jobs that pass a filter.
    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>>;

    /// The configuration that slurmctld runs with, which may differ from slurm.conf.
    async fn config(&self) -> Result<ControllerConfig>;

    /// Sets the addresses of many nodes.
    ///
    /// A node that is unknown or refused is an error; the others are set all the same.
    /// [`Error::also`](crate::Error::also) has further errors. An invalid instance id is an error, and the address is
    /// still set. Releases before 25.11 take one id per command: they are told the ids after the addresses.
    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()>;

    /// Changes the state of nodes. An unknown node is an error; the others are changed all the same.
    ///
    /// Slurm requires a reason for [`Down`](NodeAction::Down) and [`Drain`](NodeAction::Drain).
    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()>;

    /// Sets the admin comment of a job, which its owner can read.
    async fn comment(&self, job: JobId, text: &str) -> Result<()>;

    /// Reboots nodes as soon as their jobs have ended, and returns them to service.
    ///
    /// Slurm silently ignores nodes that are powered down or powering down. An unknown node is an error; the others are
    /// rebooted all the same.
    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()>;

    /// Sends a signal, such as `USR1`, to the steps of a job and to its batch script.
    async fn signal(&self, job: JobId, signal: &str) -> Result<()> {
        Err(unable(&format!("a signal {signal} to job {job}")))
    }

    /// Ends a job and puts it back in the queue: its processes get SIGTERM, and SIGKILL after `KillWait`.
    async fn requeue(&self, job: JobId) -> Result<()> {
        Err(unable(&format!("a requeue of job {job}")))
    }

    /// The reservations of ours for maintenance.
    async fn reservations(&self) -> Result<Vec<Reservation>> {
        Ok(Vec::new())
    }

    /// Reserves a node for its maintenance; one that is reserved already gets the new time.
    async fn reserve(&self, reservation: &Reservation) -> Result<()> {
        Err(unable(&format!("a reservation of {}", reservation.node)))
    }

    /// Deletes the reservation of a node for its maintenance.
    async fn release_reservation(&self, node: &NodeName) -> Result<()> {
        Err(unable(&format!("a reservation of {node}")))
    }

    /// Moves nodes to another place of a topology, such as `default:root:rack1`, which Slurm knows since 25.05.
    async fn set_topology(&self, nodes: &Hostlist, place: &str) -> Result<()> {
        Err(unable(&format!("topology={place} of {nodes}")))
    }

    /// Sets the free text `extra` of a node, which it keeps when it is powered down.
    async fn set_extra(&self, node: &NodeName, text: &str) -> Result<()> {
        Err(unable(&format!("extra={text} of {node}")))
    }

    /// Submits a batch job.
    async fn submit(&self, job: &BatchJob) -> Result<JobId>;

    /// True if slurmctld answers; an error if `scontrol` cannot be started.
    async fn ping(&self) -> Result<bool>;

    /// Makes slurmctld read its configuration again. Before 23.11 a changed set of nodes kills it: see
    /// [`SlurmVersion::reconfigures_nodes`].
    async fn reconfigure(&self) -> Result<()>;

    /// Restarts slurmctld and waits until it answers.
    async fn restart(&self) -> Result<()>;
}

/// The error of what a controller cannot do.
fn unable(tried: &str) -> Error {
    Error::new(ErrorKind::Refused, tried).because("this controller cannot do that")
}

/// A state to request for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeAction {
    /// Power down at once: jobs are requeued, `SuspendProgram` is called and the reason stays. This returns a node to
    /// Slurm when the cloud refuses it.
    PowerDownForce,
    /// Power down when jobs have ended; no effect on a node that is powering up.
    PowerDown,
    /// Power down when jobs have ended, and drain until then.
    PowerDownAsap,
    /// Power up without a job.
    PowerUp,
    /// Take out of service; jobs are requeued.
    Down,
    /// Return to service.
    Resume,
    /// Take no new jobs.
    Drain,
    /// Take new jobs again.
    Undrain,
}

impl NodeAction {
    /// Slurm's spelling, as in `state=`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PowerDownForce => "power_down_force",
            Self::PowerDown => "power_down",
            Self::PowerDownAsap => "power_down_asap",
            Self::PowerUp => "power_up",
            Self::Down => "down",
            Self::Resume => "resume",
            Self::Drain => "drain",
            Self::Undrain => "undrain",
        }
    }
}

impl fmt::Display for NodeAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The address of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The node.
    pub node: NodeName,
    /// The address by which slurmctld reaches it.
    pub address: IpAddr,
    /// The host name of the machine, if it is to be set.
    pub hostname: Option<NodeName>,
    /// The id of the instance, which Slurm accepts since 23.11.
    pub instance_id: Option<String>,
    /// The node's comment, which replaces any other.
    pub comment: Option<String>,
}

impl NodeAddress {
    /// Creates the address of a node.
    #[must_use]
    pub fn new(node: NodeName, address: IpAddr) -> Self {
        Self { node, address, hostname: None, instance_id: None, comment: None }
    }
}
