//! The mapping `elastic`: how to go about it.

use super::reader::Reader;
use provision::{OnPartial, Stopped};
use std::time::Duration;

/// How to go about it; what is not said has a default that fits most clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elastic {
    /// How many machines are worked on at a time.
    pub concurrency: Option<u32>,
    /// How many requests a second the cloud is sent at most.
    pub requests_per_second: Option<f64>,
    /// When a run gives up; else a little before Slurm's `ResumeTimeout`.
    pub deadline: Option<Duration>,
    /// What becomes of a job's machines when it cannot have all.
    pub on_partial: Option<OnPartial>,
    /// How long a shape in a zone is left alone after the cloud said that it has none.
    pub cooldown: Option<Duration>,
    /// How old a machine has to be before `reconcile` ends it.
    pub grace: Option<Duration>,
    /// What becomes of a machine that is found stopped.
    pub stopped: Option<Stopped>,
    /// Where locks, cool-downs and events are kept.
    pub state_dir: Option<String>,
    /// The log.
    pub log: Option<String>,
}

const KEYS: [&str; 9] = [
    "concurrency",
    "requests_per_second",
    "deadline",
    "on_partial",
    "cooldown",
    "grace",
    "stopped",
    "state_dir",
    "log",
];

pub(super) fn read(reader: &mut Reader<'_>) -> Elastic {
    reader.map("elastic", entries).unwrap_or_default()
}

fn entries(reader: &mut Reader<'_>) -> Elastic {
    reader.warn_unknown(&KEYS);
    let on_partial = [("release", OnPartial::Release), ("keep", OnPartial::Keep)];
    let stopped = [("start", Stopped::Start), ("replace", Stopped::Replace)];
    Elastic {
        concurrency: reader.number("concurrency", (1, 1024)),
        requests_per_second: reader.rate("requests_per_second"),
        deadline: reader.duration("deadline"),
        on_partial: reader.choice("on_partial", &on_partial),
        cooldown: reader.duration("cooldown"),
        grace: reader.duration("grace"),
        stopped: reader.choice("stopped", &stopped),
        state_dir: reader.text("state_dir"),
        log: reader.text("log"),
    }
}
