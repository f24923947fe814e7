//! A testbed for the whole system: a real slurmctld decides, our real programs act, the machines are real slurmd.

mod child;
mod cluster;
mod conf;
mod network;
mod release;

pub use child::{PATIENCE, wait};
pub use cluster::{Builder, Cluster};
pub use release::Release;
