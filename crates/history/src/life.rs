//! The life of one machine for one node, from the request to its end.

use crate::phase::{Phase, Span};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What shares one supply of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The shape, with its size if the shape leaves that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// True if the machine may be taken away at any time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
}

impl Place {
    /// True if nothing is known of it.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.shape.is_none() && self.zone.is_none()
    }
}

/// The name of the pool: `VM.Standard2.1 preemptible in AD-1`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shape.as_deref().unwrap_or("unknown shape"))?;
        if self.preemptible {
            f.write_str(" preemptible")?;
        }
        self.zone.as_ref().map_or(Ok(()), |zone| write!(f, " in {zone}"))
    }
}

/// A launch that was refused, or a machine that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The code of the cause; none in lines of older versions.
    pub cause: Option<String>,
    /// The reason in words.
    pub reason: String,
    /// Where.
    pub place: Place,
}

/// A time in which jobs run on the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Its begin, in milliseconds since 1970.
    pub from: u64,
    /// Its end, unless it goes on.
    pub to: Option<u64>,
    /// The jobs, where they are known.
    pub jobs: Vec<u32>,
}

/// How a life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The machine was terminated, after use or because nobody needed it.
    Terminated,
    /// The node did not come up.
    Failed,
    /// Another machine took its place, and its end is not in the log.
    Unseen,
}

/// When and how a life ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// How.
    pub how: Ending,
    /// The reason in words, of a failure.
    pub reason: Option<String>,
    /// The code of the cause, of a failure.
    pub cause: Option<String>,
}

/// The life of one machine for one node, or of a node that got none. Times are in milliseconds since 1970; one that
/// is not in the log is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Life {
    /// The node; none for a machine of this cluster that belongs to no node.
    pub node: Option<String>,
    /// The machine; none if there was none, or none yet.
    pub instance: Option<String>,
    /// Where the machine is.
    pub place: Place,
    /// The jobs for which it was launched.
    pub jobs: Vec<u32>,
    /// The node was asked for.
    pub asked: Option<u64>,
    /// The cloud accepted the launch, or an existing machine was adopted.
    pub launched: Option<u64>,
    /// The machine was first seen running.
    pub running: Option<u64>,
    /// Slurm got its address.
    pub up: Option<u64>,
    /// Its slurmd registered.
    pub registered: Option<u64>,
    /// When jobs ran on it, as far as the log says.
    pub work: Vec<Work>,
    /// It was rebuilt or rebooted at these times.
    pub rebuilt: Vec<u64>,
    /// What was refused on the way.
    pub refusals: Vec<Refusal>,
    /// Why it was returned to Slurm, if it was.
    pub returned: Option<Refusal>,
    /// Its end, unless it goes on.
    pub end: Option<End>,
}

impl Life {
    /// The first moment in the log.
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

    /// From when to when there was a machine, in milliseconds since 1970; none if there was none. A machine without an
    /// end goes on until `now`.
    #[must_use]
    pub fn machine(&self, now: u64) -> Option<(u64, u64)> {
        self.instance.as_ref()?;
        let from = self.launched.unwrap_or_else(|| self.begin());
        let to = self.end.as_ref().map_or(now, |end| end.at);
        Some((from, to.max(from)))
    }

    /// What the node did, without gaps and in order, until its end or until `now`. A clock that was set back shortens a
    /// phase to nothing, and never below.
    #[must_use]
    pub fn phases(&self, now: u64) -> Vec<Span> {
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
        let mut spans: Vec<Span> = Vec::new();
        let mut last = 0;
        for (index, (at, phase, jobs)) in starts.iter().enumerate() {
            let next = starts.get(index + 1).map_or(end, |(next, ..)| *next);
            let from = (*at).max(last);
            let to = next.min(end).max(from);
            last = to;
            if to > from {
                spans.push(Span { phase: *phase, from, to, jobs: jobs.to_vec() });
            }
        }
        spans
    }
}
