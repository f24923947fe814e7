//! A controller in memory, with Slurm's rules.
//!
//! [`MemorySlurm`] lives on tokio's clock: with the clock paused, an hour passes in microseconds.
//! Nothing in it is left to chance, so that a run that went wrong can be had again.

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

pub use settings::{Call, JobSpec, NodeSpec, Registration, ReturnToService, Settings};
pub use slurm::MemorySlurm;
pub use watch::StateChange;
