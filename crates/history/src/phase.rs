//! Phases in the life of a node.

use serde::{Deserialize, Serialize};

/// A phase in the life of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Requested: the cloud has not accepted a launch yet.
    Asked,
    /// Launched: the cloud builds the machine.
    Launched,
    /// The machine runs, but Slurm does not have its address yet.
    Running,
    /// Slurm has the address, but slurmd has not registered yet.
    Booting,
    /// Busy: jobs run on the node.
    Busy,
    /// Idle: registered, without a job.
    Idle,
}

impl Phase {
    /// All phases, in their usual order.
    pub const ALL: [Self; 6] =
        [Self::Asked, Self::Launched, Self::Running, Self::Booting, Self::Busy, Self::Idle];

    /// The phases of a start, whose sum is the time that a job waits for its node.
    pub const START: [Self; 4] = [Self::Asked, Self::Launched, Self::Running, Self::Booting];

    /// The stable name of the phase.
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

/// A period in one phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSpan {
    /// The phase.
    pub phase: Phase,
    /// The start, in milliseconds since 1970.
    pub from: u64,
    /// The end, in milliseconds since 1970.
    pub to: u64,
    /// The jobs that run, if known.
    pub jobs: Vec<u32>,
}

impl PhaseSpan {
    /// The duration in milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}
