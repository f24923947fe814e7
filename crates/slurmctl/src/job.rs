//! Jobs, and jobs to submit.

use crate::{JobRef, state::slurm_names};
use hostlist::{Hostlist, NodeName};
use std::{
    fmt,
    path::PathBuf,
    str::FromStr,
    time::{Duration, SystemTime},
};

/// The id of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(u32);

impl JobId {
    /// The job with this id.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The id as a number.
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

slurm_names! {
    /// The state of a job.
    JobState {
        /// Waits in the queue.
        Pending = "PENDING",
        /// Waits for its nodes to boot.
        Configuring = "CONFIGURING",
        /// Runs.
        Running = "RUNNING",
        /// Has ended; its nodes are being cleaned up.
        Completing = "COMPLETING",
        /// Ended successfully.
        Completed = "COMPLETED",
        /// Ended with an error.
        Failed = "FAILED",
        /// Was cancelled.
        Cancelled = "CANCELLED",
        /// Exceeded its time limit.
        Timeout = "TIMEOUT",
        /// Lost a node, and was not requeued.
        NodeFail = "NODE_FAIL",
        /// Its nodes did not boot, and it was not requeued.
        BootFail = "BOOT_FAIL",
        /// Was preempted.
        Preempted = "PREEMPTED",
        /// Used more memory than it asked for.
        OutOfMemory = "OUT_OF_MEMORY",
        /// Could not end before its deadline.
        Deadline = "DEADLINE",
        /// Runs in another cluster of a federation.
        Revoked = "REVOKED",
        /// Is paused.
        Suspended = "SUSPENDED",
        /// Is being requeued.
        Requeued = "REQUEUED",
        /// Waits for an administrator after it was requeued.
        RequeueHold = "REQUEUE_HOLD",
    }
}

impl JobState {
    /// True if the job has ended; false for unknown states.
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

/// A job.
///
/// It has no free text of the job's owner, who could forge anything there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Job {
    /// The id.
    pub id: JobId,
    /// What squeue calls it, if that is not its id: `17_3`, `17_[4-9%2]` or `17+1`.
    pub shown_as: Option<String>,
    /// The state.
    pub state: JobState,
    /// Why it waits, as Slurm prints it.
    pub reason: Option<String>,
    /// Its nodes.
    pub nodes: Hostlist,
    /// Nodes that it requested by name; none if the list cannot be read.
    pub wanted: Hostlist,
    /// The number of nodes that it requested or has.
    pub node_count: u32,
    /// Its partition, or a comma-separated list while it waits.
    pub partition: String,
    /// The user id of its owner.
    pub user: u32,
    /// True if its nodes are rebooted first.
    pub reboot: bool,
    /// How often it was requeued.
    pub restarts: u32,
    /// Its `--constraint`.
    pub features: Option<String>,
    /// The number of CPUs that it requested or has.
    pub cpus: u32,
    /// Its time limit, in Slurm's spelling.
    pub time_limit: Option<String>,
    /// When it may start, or could have started at the earliest.
    pub eligible: Option<SystemTime>,
    /// The jobs that it waits for, in Slurm's spelling.
    pub dependency: Option<String>,
    /// The admin comment.
    pub admin_comment: Option<String>,
}

impl Job {
    /// A job of which only id and state are known.
    #[must_use]
    pub fn new(id: JobId, state: JobState) -> Self {
        Self {
            id,
            shown_as: None,
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
            cpus: 0,
            time_limit: None,
            eligible: None,
            dependency: None,
            admin_comment: None,
        }
    }
}

/// Which jobs to list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobFilter {
    /// All unfinished jobs.
    All,
    /// Jobs by id, finished or not, as long as slurmctld keeps them (`MinJobAge`).
    Ids(Vec<JobId>),
    /// What people call this, finished or not, as long as slurmctld keeps it.
    Called(JobRef),
    /// Unfinished jobs on one of these nodes.
    On(Hostlist),
    /// Unfinished jobs in this partition.
    In(String),
}

impl JobFilter {
    /// True if the job passes the filter.
    #[must_use]
    pub fn matches(&self, job: &Job) -> bool {
        let active = !job.state.is_finished();
        match self {
            Self::All => active,
            Self::Ids(ids) => ids.contains(&job.id),
            Self::Called(name) => name.matches(job),
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
    /// The node it runs on.
    pub node: NodeName,
    /// The command line, passed to `--wrap`.
    pub command: String,
    /// Reboot the node first; since 23.02 Slurm ignores that for a cloud node that is up.
    pub reboot: bool,
    /// Allocate the node exclusively.
    pub exclusive: bool,
    /// The time limit.
    pub time_limit: Option<Duration>,
    /// The working directory.
    pub directory: PathBuf,
    /// Its comment.
    pub comment: Option<String>,
    /// Further options of sbatch, which override the others. Arguments without `--` are ignored.
    pub options: Vec<String>,
}

impl BatchJob {
    /// A job that reboots a node and has it exclusively.
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
