//! The mapping `elastic`: policies and limits.

use super::value::{between, positive, texts, time};
use provision::{OnPartial, Stopped};
use serde::Deserialize;
use std::time::Duration;

/// Policies and limits; what is absent has a default that fits most clusters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Elastic {
    /// How many machines are worked on at a time.
    #[serde(deserialize_with = "between::<_, 1, 1024>")]
    pub concurrency: Option<u32>,
    /// How many requests a second the cloud is sent at most.
    #[serde(deserialize_with = "positive")]
    pub requests_per_second: Option<f64>,
    /// When a run gives up; else a little before Slurm's `ResumeTimeout`.
    #[serde(deserialize_with = "time")]
    pub deadline: Option<Duration>,
    /// What becomes of a job's machines when it cannot have all.
    pub on_partial: Option<OnPartial>,
    /// The cool-down of a shape in a zone that has no capacity.
    #[serde(deserialize_with = "time")]
    pub cooldown: Option<Duration>,
    /// How old a machine has to be before `reconcile` ends it.
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,
    /// How many machines of the cluster may run at a time.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    pub max_nodes: Option<u32>,
    /// What the reasons begin with by which a health check drains nodes.
    #[serde(deserialize_with = "texts")]
    pub health_reasons: Vec<String>,
    /// What becomes of a machine that is found stopped.
    pub stopped: Option<Stopped>,
    /// Where locks, cool-downs and events are kept.
    pub state_dir: Option<String>,
    /// The log.
    pub log: Option<String>,
    /// Numbers for Prometheus, in a directory that its `node_exporter` reads.
    pub metrics: Option<String>,
}
