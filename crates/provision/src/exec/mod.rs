//! The executor: carries plans out, and chooses nothing.

mod ambiguous_launch;
mod bring_up;
mod cooldown;
mod files;
mod launch;
mod launch_batch;
mod listing;
mod message;
mod node;
mod outbox;
mod pass;
mod rebuild;
mod shared;
mod slurm_steps;
mod stage;
mod take_down;
mod terminate;
mod until_up;
mod wait_drained;
mod whole_jobs;

pub(crate) use stage::Executor;

use std::time::Duration;

/// How long requests under way may take to end once time is up; a run of half a minute or more
/// leaves as much of its time.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(10);
