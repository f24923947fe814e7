//! The executor: carries plans out, and chooses nothing.

mod ambiguous_launch;
mod bring_up;
mod cooldown;
mod drained;
mod expected;
mod failure;
mod files;
mod gathered;
mod launch;
mod listing;
mod machines;
mod node;
mod notification;
mod outbox;
mod pass;
mod shared;
mod stage;
mod steps;
mod take_down;
mod terminate;
mod tools;
mod until_up;
mod whole_jobs;

pub use expected::{Expected, Patience};
pub use tools::{Cancel, CancelSignal, Files, Progress, Tools};

pub(crate) use stage::Executor;
pub(crate) use steps::chain;

use std::time::Duration;

/// How long requests under way may take to end once time is up; a run of half a minute or more
/// leaves as much of its time.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(10);
