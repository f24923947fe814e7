//! The tests of the cloud-sim crate, in one program.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod admin;
mod catalog;
mod ec2_proxy;
mod fail_later;
mod late;
mod launches;
mod lifecycle;
mod listing;
mod machines;
mod principal;
mod program;
mod refusals;
mod replay;
mod rules;
mod support;
mod vnics;
