//! A job as the controller sees it, and one to be submitted.

use crate::state::words;
use hostlist::{Hostlist, NodeName};
use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// The job with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JobId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

words! {
    /// What a job is doing.
    JobState {
        /// Waits for its turn, for nodes, or for a time.
        Pending = "PENDING",
        /// Has its nodes and waits for them to come up.
        Configuring = "CONFIGURING",
        /// Runs.
        Running = "RUNNING",
        /// Has ended; its nodes are being cleaned up.
        Completing = "COMPLETING",
        /// Ended well.
        Completed = "COMPLETED",
        /// Ended badly.
        Failed = "FAILED",
        /// Was cancelled.
        Cancelled = "CANCELLED",
        /// Ran into its time limit.
        Timeout = "TIMEOUT",
        /// Lost a node, and was not requeued.
        NodeFail = "NODE_FAIL",
        /// Its nodes did not come up, and it was not requeued.
        BootFail = "BOOT_FAIL",
        /// Gave way to another.
        Preempted = "PREEMPTED",
        /// Used more memory than it asked for.
        OutOfMemory = "OUT_OF_MEMORY",
        /// Could not end before its deadline.
        Deadline = "DEADLINE",
        /// Runs in another cluster of a federation.
        Revoked = "REVOKED",
        /// Is paused.
        Suspended = "SUSPENDED",
        /// Is on its way back into the queue.
        Requeued = "REQUEUED",
        /// Waits for an administrator after it was requeued.
        RequeueHold = "REQUEUE_HOLD",
    }
}

impl JobState {
    /// True once nothing more will come of it; false for states that we do not know.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Completed
            | Self::Failed
            | Self::Cancelled
            | Self::Timeout
            | Self::NodeFail
            | Self::BootFail
            | Self::Preempted
            | Self::OutOfMemory
            | Self::Deadline
            | Self::Revoked => true,
            Self::Pending
            | Self::Configuring
            | Self::Running
            | Self::Completing
            | Self::Suspended
            | Self::Requeued
            | Self::RequeueHold
            | Self::Other(_) => false,
        }
    }
}

/// A job as the controller sees it.
///
/// Nothing in it is free text of the job's owner, so that no owner can pretend anything: `wanted` and
/// `features` are chosen by the owner, from what Slurm knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What it is doing.
    pub state: JobState,
    /// Why it waits, in Slurm's word; `None` means no reason.
    pub reason: Option<String>,
    /// Nodes that it has.
    pub nodes: Hostlist,
    /// Nodes that it asked for by name; none if the list cannot be read.
    pub wanted: Hostlist,
    /// How many nodes it asked for, or has.
    pub node_count: u32,
    /// Its partition, or several of them with commas while it waits.
    pub partition: String,
    /// The number of its owner.
    pub user: u32,
    /// True if its nodes are to be rebooted first.
    pub reboot: bool,
    /// How often it was requeued.
    pub restarts: u32,
    /// Its `--constraint`.
    pub features: Option<String>,
    /// What the administrator, or we, said about it.
    pub admin_comment: Option<String>,
}

impl Job {
    /// A job about which only number and state are known.
    #[must_use]
    pub fn new(id: JobId, state: JobState) -> Self {
        Self {
            id,
            state,
            reason: None,
            nodes: Hostlist::new(),
            wanted: Hostlist::new(),
            node_count: 0,
            partition: String::new(),
            user: 0,
            reboot: false,
            restarts: 0,
            features: None,
            admin_comment: None,
        }
    }
}

/// Which jobs to list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobFilter {
    /// All that are not finished.
    All,
    /// These, finished or not, as long as slurmctld remembers them (`MinJobAge`).
    Ids(Vec<JobId>),
    /// Those that are not finished and have one of these nodes.
    On(Hostlist),
    /// Those that are not finished, in this partition.
    In(String),
}

impl JobFilter {
    /// True if the job is wanted.
    #[must_use]
    pub fn wants(&self, job: &Job) -> bool {
        let active = !job.state.is_finished();
        match self {
            Self::All => active,
            Self::Ids(ids) => ids.contains(&job.id),
            Self::On(nodes) => active && job.nodes.iter().any(|node| nodes.contains(&node)),
            Self::In(partition) => active && job.partition.split(',').any(|name| name == partition),
        }
    }
}

/// A batch job to submit: a program on one node, as for a rebuild.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchJob {
    /// Its name.
    pub name: String,
    /// Its partition.
    pub partition: String,
    /// The node it must have.
    pub node: NodeName,
    /// The command line that it runs, given to `--wrap` as it is.
    pub command: String,
    /// Reboot the node first. On a cloud node that is up, Slurm since 23.02 does *nothing* for this.
    pub reboot: bool,
    /// The whole node, and nobody else there.
    pub exclusive: bool,
    /// At most this long.
    pub time_limit: Option<Duration>,
    /// Where its command runs.
    pub directory: PathBuf,
    /// Its comment.
    pub comment: Option<String>,
    /// Further options of sbatch, each as one word: behind the others, so that they count. What is no
    /// option is left out.
    pub options: Vec<String>,
}

impl BatchJob {
    /// A job that has a whole node and reboots it first.
    #[must_use]
    pub fn reboot(name: impl Into<String>, partition: impl Into<String>, node: NodeName) -> Self {
        Self {
            name: name.into(),
            partition: partition.into(),
            node,
            command: "true".into(),
            reboot: true,
            exclusive: true,
            time_limit: None,
            directory: "/".into(),
            comment: None,
            options: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_ended_in_any_way_is_finished() {
        let ended = "COMPLETED FAILED CANCELLED TIMEOUT NODE_FAIL BOOT_FAIL PREEMPTED OUT_OF_MEMORY \
            DEADLINE REVOKED";
        for word in ended.split_whitespace() {
            assert!(JobState::from(word).is_finished(), "{word}");
        }
        let active = "PENDING CONFIGURING RUNNING COMPLETING SUSPENDED REQUEUED REQUEUE_HOLD \
            SPECIAL_EXIT RESIZING STAGE_OUT STOPPED SIGNALING";
        for word in active.split_whitespace() {
            assert!(!JobState::from(word).is_finished(), "{word}");
        }
    }
}
