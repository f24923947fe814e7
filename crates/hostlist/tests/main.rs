//! The tests of the hostlist crate, in one program.

#![expect(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod bad_input;
mod commands;
mod properties;
#[cfg(feature = "serde")]
mod serde;
mod slurm;
