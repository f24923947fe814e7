//! A job of [`MemorySlurm`](super::MemorySlurm).

use super::{node::Seconds, settings::JobSpec};
use crate::{Job, JobId, JobState};
use hostlist::NodeName;

#[derive(Clone, Debug)]
pub(super) struct JobRecord {
    pub(super) id: JobId,
    pub(super) spec: JobSpec,
    pub(super) state: JobState,
    pub(super) reason: Option<&'static str>,
    pub(super) nodes: Vec<NodeName>,
    /// The earliest start.
    pub(super) begin: Seconds,
    /// When it ends, once it runs.
    pub(super) end: Option<Seconds>,
    pub(super) restarts: u32,
    pub(super) admin_comment: Option<String>,
}

impl JobRecord {
    pub(super) fn new(id: JobId, spec: JobSpec, now: Seconds) -> Self {
        Self {
            id,
            spec,
            state: JobState::Pending,
            reason: None,
            nodes: Vec::new(),
            begin: now,
            end: None,
            restarts: 0,
            admin_comment: None,
        }
    }

    /// True while the job has nodes.
    pub(super) fn is_placed(&self) -> bool {
        matches!(self.state, JobState::Configuring | JobState::Running)
    }

    /// The job as squeue shows it.
    pub(super) fn show(&self) -> Job {
        let mut job = Job::new(self.id, self.state.clone());
        job.reason = self.reason.map(str::to_owned);
        job.nodes = self.nodes.iter().collect();
        job.wanted = self.spec.wanted.iter().collect();
        job.node_count = u32::try_from(self.spec.nodes).unwrap_or(u32::MAX);
        job.partition.clone_from(&self.spec.partition);
        job.reboot = self.spec.reboot;
        job.restarts = self.restarts;
        job.features.clone_from(&self.spec.feature);
        job.admin_comment.clone_from(&self.admin_comment);
        job
    }
}
