//! The provider against a loopback cloud, over real HTTP.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stop at the first surprise"
)]

mod conformance;
mod lost;
mod principal;
mod restart;
mod stage;
mod surprises;
