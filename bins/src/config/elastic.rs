//! The mapping `elastic`: policies and limits.

use super::value::{between, positive, time};
use provision::{OnPartial, Stopped};
use serde::Deserialize;
use std::time::Duration;

/// Policies and limits. Absent keys have defaults that fit most clusters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Elastic {
    /// Maximum number of machines that are worked on at a time.
    #[serde(deserialize_with = "between::<_, 1, 1024>")]
    pub concurrency: Option<u32>,
    /// Maximum rate of cloud API requests per second.
    #[serde(deserialize_with = "positive")]
    pub requests_per_second: Option<f64>,
    /// Deadline of a run; by default, shortly before Slurm's `ResumeTimeout`.
    #[serde(deserialize_with = "time")]
    pub deadline: Option<Duration>,
    /// What happens to a job's machines if it cannot get all of them.
    pub on_partial: Option<OnPartial>,
    /// The cool-down of a shape in a zone that has no capacity.
    #[serde(deserialize_with = "time")]
    pub cooldown: Option<Duration>,
    /// Minimum age of a machine that `reconcile` terminates.
    #[serde(deserialize_with = "time")]
    pub grace: Option<Duration>,
    /// Maximum number of machines of the cluster.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    pub max_nodes: Option<u32>,
    /// What happens to a machine that is found stopped.
    pub stopped: Option<Stopped>,
    /// Path of the state directory.
    pub state_dir: Option<String>,
    /// Path of the log.
    pub log: Option<String>,
    /// Path of a file with Prometheus metrics, in a directory that `node_exporter` reads.
    pub metrics: Option<String>,
}
