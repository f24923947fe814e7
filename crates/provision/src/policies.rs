//! The operator's policies for a run.

use hostlist::Hostlist;
use slurmconf::Config;
use std::time::Duration;

/// How long before Slurm's timeout a run ends; slurmctld then kills it.
const MARGIN: Duration = Duration::from_secs(30);

/// How long a program that slurmctld calls for these nodes may take.
#[must_use]
pub fn before_timeout(slurm: &Config, nodes: &Hostlist) -> Duration {
    let timeout = *slurm.resume_timeouts(nodes).end();
    // A short timeout keeps most of its time, so that nodes can start at all.
    timeout.saturating_sub(MARGIN.min(timeout / 4))
}

/// The operator's policies for a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// What to do with a stopped instance of a node that is to start.
    pub stopped: Stopped,
    /// What to do with the nodes of a job that cannot get all of them.
    pub on_partial: OnPartial,
    /// How a node gets another image.
    pub rebuild: RebuildHow,
    /// How long a pool or node cools down after a failure.
    pub cooldown: Duration,
    /// Maximum number of concurrent requests.
    pub concurrency: usize,
    /// How long a run may take; below `ResumeTimeout`, where slurmctld would kill it.
    pub deadline: Duration,
    /// How long reconcile ignores a new instance.
    pub grace: Duration,
    /// Maximum age of a running instance that a start adopts; any age if none. Slurm, when it has just asked for a node,
    /// does not accept a machine that booted before.
    pub oldest: Option<Duration>,
    /// Maximum number of running machines of the cluster; the number of nodes if none.
    pub max_nodes: Option<usize>,
    /// Prefixes of the reasons by which a health check drains nodes.
    pub health_reasons: Vec<String>,
    /// Keep inventory and hosts up to date whenever machines come and go.
    pub files: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            stopped: Stopped::default(),
            on_partial: OnPartial::default(),
            rebuild: RebuildHow::default(),
            cooldown: Duration::from_mins(10),
            concurrency: 32,
            deadline: Duration::from_mins(9),
            grace: Duration::from_mins(5),
            oldest: None,
            max_nodes: None,
            health_reasons: vec!["NHC:".to_owned()],
            files: false,
        }
    }
}

/// What to do with a stopped instance of a node that is to start.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// Start it.
    Start,
    /// Terminate it and launch another.
    #[default]
    Replace,
}

/// What to do with the nodes of a job that cannot get all of them.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum OnPartial {
    /// Return those that no other job uses to Slurm.
    #[default]
    Release,
    /// Start them anyway.
    Keep,
}

/// How a node gets another image.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RebuildHow {
    /// Replace the boot disk; instance and address stay.
    #[default]
    InPlace,
    /// Replace the instance.
    Recreate,
}
