//! A test double of slurmctld that follows Slurm's rules.
//!
//! [`MemorySlurm`] uses tokio's clock: while that is paused, an hour passes in microseconds. Nothing in it is random, so
//! that a failed run can be repeated.

mod conf;
mod controller;
mod job;
mod node;
mod power;
mod register;
mod schedule;
mod settings;
mod slurm;
mod update;
mod watch;
mod world;

pub use settings::{Call, JobSpec, MemorySlurmSettings, NodeSpec, Registration, ReturnToService};
pub use slurm::MemorySlurm;
pub use watch::StateChange;
