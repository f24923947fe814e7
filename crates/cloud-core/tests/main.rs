//! The tests of the cloud-core crate, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stop at the first surprise"
)]

mod conformance;
mod error;
mod loopback;
mod memory;
mod pacing;
mod tls;
mod wait;
