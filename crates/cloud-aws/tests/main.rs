//! The tests of the cloud-aws crate, in one program.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise"
)]

mod captures;
mod config;
mod credentials;
mod fake;
mod loopback;
mod metadata_service;
mod moto;
mod signing;
