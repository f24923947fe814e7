//! Choices and bounds of a run.

use hostlist::Hostlist;
use slurmconf::Config;
use std::time::Duration;

/// How long before Slurm's own deadline a run ends: slurmctld kills it there.
const MARGIN: Duration = Duration::from_secs(30);

/// The time that slurmctld leaves a program which it has called for these nodes.
#[must_use]
pub fn before_timeout(slurm: &Config, nodes: &Hostlist) -> Duration {
    let timeout = *slurm.resume_timeouts(nodes).end();
    // Of a short one, most: less would be no time to start a node in.
    timeout.saturating_sub(MARGIN.min(timeout / 4))
}

/// Choices and bounds of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// With a stopped instance of a node that is to start.
    pub stopped: Stopped,
    /// With the nodes of a job that cannot get all of them.
    pub on_partial: OnPartial,
    /// How a node gets another image.
    pub rebuild: RebuildHow,
    /// How long a pool or node that failed is left alone.
    pub cooldown: Duration,
    /// Requests under way at a time.
    pub concurrency: usize,
    /// How long a run may take; below `ResumeTimeout`, where slurmctld would kill it.
    pub deadline: Duration,
    /// How long a new instance is left alone by reconciliation.
    pub grace: Duration,
    /// How old a running instance may be that Slurm, which has just asked for its node, can be waiting
    /// for; any age if it has not just asked. It never believes in a machine that booted before.
    pub oldest: Option<Duration>,
    /// How many machines of the cluster may run at a time; as many as there are nodes if not given.
    pub max_nodes: Option<usize>,
    /// What the reasons begin with by which a health check drains nodes.
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
    /// Give back those that no other job uses.
    #[default]
    Release,
    /// Start them all the same.
    Keep,
}

/// How a node gets another image.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RebuildHow {
    /// Over its boot disk; instance and address stay.
    #[default]
    InPlace,
    /// With another instance in its place.
    Recreate,
}
