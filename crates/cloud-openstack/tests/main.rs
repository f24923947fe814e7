//! The tests of the cloud-openstack crate, in one program.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stop at the first surprise"
)]

mod config;
mod loopback;
mod real;
