//! Monotonic counters of events, for metrics.

use crate::event::{Event, EventKind};
use crate::life::{Life, RecordedPlace};
use crate::lives::Lives;
use crate::position::Position;
use crate::timeline::{ended_phases, start_of};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The bounds of the histograms of phases, in seconds.
pub const BOUNDS: [u64; 14] = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 14_400, 86_400];

/// A histogram of durations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of values in each bucket.
    pub buckets: [u64; BOUNDS.len()],
    /// Number of values.
    pub count: u64,
    /// Sum in milliseconds.
    pub sum: u64,
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, millis: u64) {
        let bucket = BOUNDS.iter().position(|bound| millis <= bound * 1000);
        if let Some(bucket) = bucket.and_then(|index| self.buckets.get_mut(index)) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(millis);
    }
}

/// A counter: its name, and its labels as Prometheus writes them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Series {
    /// The name of the metric.
    pub name: String,
    /// The labels, such as `cause="capacity"`.
    pub labels: String,
}

/// Counters of events. They are stored with the position in the log, so that each event counts once. If they are lost, they
/// restart at zero, which Prometheus handles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tally {
    /// The position in the log up to which events are counted.
    pub position: Position,
    /// Lives that have not ended.
    pub open: Lives,
    /// Counters.
    #[serde(with = "pairs")]
    pub counters: BTreeMap<Series, u64>,
    /// Histograms of each phase and of the whole start.
    pub phases: BTreeMap<String, Histogram>,
}

/// JSON allows only strings as keys.
mod pairs {
    use super::Series;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use std::collections::BTreeMap;

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<Series, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Series, u64>, D::Error> {
        Vec::deserialize(deserializer).map(|pairs: Vec<(Series, u64)>| pairs.into_iter().collect())
    }
}

impl Tally {
    /// Counts an event.
    pub fn add(&mut self, event: &Event) {
        let place = place_labels(&event.place());
        let cause = label("cause", event.cause.as_deref().unwrap_or("unknown"));
        match event.event {
            EventKind::Launched => self.count_one("launches", place),
            EventKind::LaunchFailed => self.count_one("refusals", format!("{cause},{place}")),
            EventKind::ReturnedToSlurm => self.count_one("returned_nodes", cause),
            EventKind::Cooling => self.count_one("cooldowns", format!("{cause},{place}")),
            EventKind::Terminated => {
                self.count_one("terminations", String::new());
                // Slurm has taken the node back itself.
                if event.cause.is_some() {
                    self.count_one("returned_nodes", cause);
                }
            }
            EventKind::Stopped => self.count_one("stops", String::new()),
            EventKind::Started => self.count_one("starts", place),
            EventKind::Adopted => self.count_one("adoptions", String::new()),
            EventKind::Rebuilt => self.count_one("rebuilds", String::new()),
            EventKind::Begun
            | EventKind::Waiting
            | EventKind::Up
            | EventKind::Registered
            | EventKind::Busy
            | EventKind::Idle
            | EventKind::Returned
            | EventKind::Owner
            | EventKind::Ended
            | EventKind::Unknown => {}
        }
        self.open.add(event);
        let ends = [EventKind::Terminated, EventKind::Stopped, EventKind::ReturnedToSlurm];
        if ends.contains(&event.event) {
            for life in self.open.take_ended() {
                self.add_life(&life);
            }
        }
    }

    /// Increases a counter.
    pub fn count(&mut self, name: &str, labels: String, more: usize) {
        let name = format!("slurm_elastic_{name}_total");
        let more = u64::try_from(more).unwrap_or(u64::MAX);
        let counter = self.counters.entry(Series { name, labels }).or_default();
        // What is stored may be damaged.
        *counter = counter.saturating_add(more);
    }

    fn count_one(&mut self, name: &str, labels: String) {
        self.count(name, labels, 1);
    }

    fn add_life(&mut self, life: &Life) {
        for (phase, millis) in ended_phases(life) {
            self.phases.entry(phase.name().to_owned()).or_default().add(millis);
        }
        if let Some(millis) = start_of(life) {
            self.phases.entry("start".to_owned()).or_default().add(millis);
        }
    }
}

/// Formats a label for Prometheus.
#[must_use]
pub fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{name}=\"{value}\"")
}

/// The labels of a pool.
#[must_use]
pub fn place_labels(place: &RecordedPlace) -> String {
    let shape = place.shape.as_deref().unwrap_or_default();
    let kind = if place.preemptible { " preemptible" } else { "" };
    let zone = place.zone.as_deref().unwrap_or_default();
    format!("{},{}", label("pool", &format!("{shape}{kind}")), label("zone", zone))
}
