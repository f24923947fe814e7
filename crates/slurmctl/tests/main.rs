//! The tests of the slurmctl crate, in one program.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod memory;
mod programs;
mod real;
mod resume_file;
