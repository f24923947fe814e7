//! What a node does, and for how long.

use serde::{Deserialize, Serialize};

/// What a node does between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is asked for: the cloud has not accepted a launch yet.
    Asked,
    /// The cloud makes the machine.
    Launched,
    /// The machine runs, and Slurm does not know its address yet.
    Running,
    /// Slurm knows the address; the operating system boots, and slurmd has not registered yet.
    Booting,
    /// Jobs run on it.
    Busy,
    /// It is registered, and no job runs on it.
    Idle,
}

impl Phase {
    /// All phases, in the order in which a node goes through them.
    pub const ALL: [Self; 6] =
        [Self::Asked, Self::Launched, Self::Running, Self::Booting, Self::Busy, Self::Idle];

    /// The phases of a start, whose sum is the time that a job waits for its node.
    pub const START: [Self; 4] = [Self::Asked, Self::Launched, Self::Running, Self::Booting];

    /// Its name, one word that does not change.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Launched => "launched",
            Self::Running => "running",
            Self::Booting => "booting",
            Self::Busy => "job",
            Self::Idle => "idle",
        }
    }
}

/// A time in which a node is in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The phase.
    pub phase: Phase,
    /// Its begin, in milliseconds since 1970.
    pub from: u64,
    /// Its end, in milliseconds since 1970.
    pub to: u64,
    /// The jobs that run, where they are known.
    pub jobs: Vec<u32>,
}

impl Span {
    /// How long it is, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}
