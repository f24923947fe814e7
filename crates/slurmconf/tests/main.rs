//! The tests of the slurmconf crate, in one program.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod common;
mod diff;
mod document;
mod fetch;
mod generate;
mod golden;
mod large;
mod limits;
mod model;
mod places;
mod real_reading;
mod real_slurm;
mod suspendable;
