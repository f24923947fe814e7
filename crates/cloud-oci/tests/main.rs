//! The tests of the cloud-oci crate, in one program.

#![expect(
    clippy::expect_used,
    clippy::format_push_string,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise"
)]

mod captures;
mod config;
mod signing;
mod sim;
