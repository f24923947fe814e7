//! The tests of the provision crate, in one program.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise"
)]

mod addresses;
mod batches;
mod budget;
mod common;
mod ending;
mod ending_all;
mod examples;
mod exclusions;
mod finishing;
mod interruptions;
mod lint;
mod no_queue;
mod peer_defects;
mod places;
mod plans;
mod processes;
mod properties;
mod random;
mod rebuild_jobs;
mod rebuilding;
mod reconciling;
mod requests;
mod resizing;
mod restart;
mod resting;
mod rolling;
mod scenario;
mod short_time;
mod simulation;
mod site;
mod slow_launch;
mod telling;
mod topology;
mod unfinished;
mod used_up;
mod waiting;
mod warm;
