//! Lives of machines, from the request to the end.

use crate::phase::{Phase, PhaseSpan};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A pool: machines that share one supply in the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordedPlace {
    /// The shape, with the size of a flexible shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// True for preemptible machines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
}

impl RecordedPlace {
    /// True if neither shape nor zone is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.shape.is_none() && self.zone.is_none()
    }
}

/// The name of the pool: `VM.Standard2.1 preemptible in AD-1`.
impl fmt::Display for RecordedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shape.as_deref().unwrap_or("unknown shape"))?;
        if self.preemptible {
            f.write_str(" preemptible")?;
        }
        self.zone.as_ref().map_or(Ok(()), |zone| write!(f, " in {zone}"))
    }
}

/// A refused launch or a failed machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The code of the cause; none in lines of older versions.
    pub cause: Option<String>,
    /// The reason.
    pub reason: String,
    /// The pool.
    pub place: RecordedPlace,
}

/// A period in which jobs run on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The start, in milliseconds since 1970.
    pub from: u64,
    /// The end; none while it continues.
    pub to: Option<u64>,
    /// The jobs, if known.
    pub jobs: Vec<u32>,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The machine was terminated, after use or because nobody needed it.
    Terminated,
    /// The node did not come up, or its slurmd never registered.
    Failed,
    /// It was replaced by another machine, and its end is not in the log.
    Unseen,
}

/// The end of a life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The kind of end.
    pub how: Ending,
    /// The reason of a failure.
    pub reason: Option<String>,
    /// The code of the cause of a failure.
    pub cause: Option<String>,
}

/// The life of one machine for one node, or of a node that got none. Times are in milliseconds since 1970, and none if they
/// are not in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Life {
    /// The node; none for a machine of this cluster that belongs to no node.
    pub node: Option<String>,
    /// The machine; none if the node has or had none.
    pub instance: Option<String>,
    /// The pool of the machine.
    pub place: RecordedPlace,
    /// The jobs for which it was launched.
    pub jobs: Vec<u32>,
    /// Time of the request for the node.
    pub asked: Option<u64>,
    /// Time at which the cloud accepted the launch, or an existing machine was adopted.
    pub launched: Option<u64>,
    /// Time at which the machine was first seen running.
    pub running: Option<u64>,
    /// Time at which Slurm got its address.
    pub up: Option<u64>,
    /// Time at which its slurmd registered.
    pub registered: Option<u64>,
    /// Periods in which jobs ran on it, as far as they are in the log.
    pub work: Vec<Work>,
    /// Times of rebuilds and reboots.
    pub rebuilt: Vec<u64>,
    /// Launches that were refused on the way.
    pub refusals: Vec<Failure>,
    /// Why it was returned to Slurm, if it was.
    pub returned: Option<Failure>,
    /// The end; none while it continues.
    pub end: Option<End>,
}

impl Life {
    /// The earliest time of this life in the log.
    #[must_use]
    pub fn begin(&self) -> u64 {
        let known = [self.asked, self.launched, self.running, self.up, self.registered];
        let first = known.into_iter().flatten().next();
        let refused = self.refusals.first().map(|refusal| refusal.at);
        first.or(refused).or(self.end.as_ref().map(|end| end.at)).unwrap_or_default()
    }

    /// True if the node did not come up.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.how == Ending::Failed)
    }

    /// The period in which there was a machine, in milliseconds since 1970. A machine without an end lasts until `now`.
    #[must_use]
    pub fn machine(&self, now: u64) -> Option<(u64, u64)> {
        self.instance.as_ref()?;
        let from = self.launched.unwrap_or_else(|| self.begin());
        let to = self.end.as_ref().map_or(now, |end| end.at);
        Some((from, to.max(from)))
    }

    /// The phases of the node, in order and without gaps, until its end or `now`. A clock that was set back makes a phase
    /// empty, never negative.
    #[must_use]
    pub fn phases(&self, now: u64) -> Vec<PhaseSpan> {
        let end = self.end.as_ref().map_or(now, |end| end.at);
        let mut starts: Vec<(u64, Phase, &[u32])> = Vec::new();
        let known = [
            (self.asked.or(Some(self.begin())), Phase::Asked),
            (self.launched, Phase::Launched),
            (self.running, Phase::Running),
            (self.up, Phase::Booting),
            (self.registered, Phase::Idle),
        ];
        for (at, phase) in known {
            starts.extend(at.map(|at| (at, phase, &[][..])));
        }
        for work in &self.work {
            starts.push((work.from, Phase::Busy, &work.jobs));
            starts.extend(work.to.map(|to| (to, Phase::Idle, &[][..])));
        }
        let mut spans: Vec<PhaseSpan> = Vec::new();
        let mut last = 0;
        for (index, (at, phase, jobs)) in starts.iter().enumerate() {
            let next = starts.get(index + 1).map_or(end, |(next, ..)| *next);
            let from = (*at).max(last);
            let to = next.min(end).max(from);
            last = to;
            if to > from {
                spans.push(PhaseSpan { phase: *phase, from, to, jobs: jobs.to_vec() });
            }
        }
        spans
    }
}
