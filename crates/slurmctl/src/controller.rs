//! The controller as a port.

use crate::{
    config::ControllerConfig,
    error::Result,
    job::{BatchJob, Job, JobFilter, JobId},
    node::Node,
    reason::Reason,
};
use async_trait::async_trait;
use hostlist::{Hostlist, NodeName};
use slurmconf::SlurmVersion;
use std::{fmt, net::IpAddr};

/// The Slurm controller, as far as an elastic cluster needs it.
///
/// Names of nodes must come from slurm.conf's `NodeName=`: Slurm takes the name of a `NodeSet` for all
/// nodes in it. `ALL` alone, which it takes for every node there is, is refused here.
///
/// Every call has a deadline of its own. A call of which it is not known whether it worked may be repeated
/// if it asks or writes something down (addresses, comments, drain, undrain). Look first before the
/// others are: a second [`submit`](Self::submit) is a second job, a reboot that is over begins again,
/// [`PowerUp`](NodeAction::PowerUp) and [`PowerDown`](NodeAction::PowerDown) have Slurm's programs
/// called again, and [`PowerDownForce`](NodeAction::PowerDownForce) or [`Down`](NodeAction::Down) hits
/// whatever job has the node by then.
#[async_trait]
pub trait Controller: fmt::Debug + Send + Sync + 'static {
    /// Its version, found out once.
    fn version(&self) -> SlurmVersion;

    /// All nodes, or these; those that it does not know are left out.
    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>>;

    /// The jobs that are wanted.
    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>>;

    /// Its configuration, as it has it and not as the file has it.
    async fn config(&self) -> Result<ControllerConfig>;

    /// Tells where nodes are, many in a call.
    ///
    /// A node that Slurm does not know is an error, and so is one that it refuses, but the others are
    /// told all the same, as long as slurmctld answers. [`Error::also`](crate::Error::also) has the
    /// further errors. An instance id that is no plain word is an error too, and costs its node the id
    /// but not the address. Where each id is a call of its own, only those of some nodes are told.
    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()>;

    /// Puts nodes into a state; one that Slurm does not know is an error, but the others are changed
    /// all the same, as long as slurmctld answers.
    ///
    /// A reason is required for [`Down`](NodeAction::Down) and [`Drain`](NodeAction::Drain) by Slurm
    /// itself.
    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()>;

    /// Writes the administrator's comment on a job, where its owner can read it.
    async fn comment(&self, job: JobId, text: &str) -> Result<()>;

    /// Has nodes rebooted as soon as their jobs have ended, and back in service afterwards.
    ///
    /// Nodes that are powered down or on their way down are silently left out by Slurm; one that it
    /// does not know is an error, but the others are rebooted all the same.
    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()>;

    /// Submits a batch job. Must not be repeated blindly: there would be two.
    async fn submit(&self, job: &BatchJob) -> Result<JobId>;

    /// True if slurmctld answers. An error only if it could not be asked.
    async fn ping(&self) -> Result<bool>;

    /// Has slurmctld read its configuration again.
    ///
    /// With a changed set of nodes this kills slurmctld before 23.11:
    /// [`SlurmVersion::reconfigures_nodes`].
    async fn reconfigure(&self) -> Result<()>;

    /// Restarts slurmctld and waits until it answers.
    async fn restart(&self) -> Result<()>;
}

/// What to do with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeAction {
    /// Off with it at once: jobs are requeued, the suspend program is called, the reason stays.
    /// The right answer when the cloud said no.
    PowerDownForce,
    /// Off with it when its jobs have ended; no effect on a node that is powering up.
    PowerDown,
    /// The same, and no new jobs.
    PowerDownAsap,
    /// On with it, without a job.
    PowerUp,
    /// Not to be used; jobs are requeued.
    Down,
    /// Back in service.
    Resume,
    /// No new jobs.
    Drain,
    /// New jobs again, without touching anything else.
    Undrain,
}

impl NodeAction {
    /// Slurm's word for it, as in `state=`.
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

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// The node.
    pub node: NodeName,
    /// Where slurmctld reaches it.
    pub address: IpAddr,
    /// What the machine calls itself, if that is to be told.
    pub hostname: Option<NodeName>,
    /// The cloud's id of its instance, told where Slurm knows such a thing (since 23.11).
    pub instance_id: Option<String>,
}

impl NodeAddress {
    /// A node and its address.
    #[must_use]
    pub fn new(node: NodeName, address: IpAddr) -> Self {
        Self { node, address, hostname: None, instance_id: None }
    }
}
