//! How tests wait.

use std::time::Duration;

/// Generous: a machine busy with other tests is no reason to fail, nor is slurmctld, which does some things every 30 seconds.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Asks again and again, up to a deadline; none if it passed.
pub fn wait<T>(look: impl FnMut() -> Option<T>) -> Option<T> {
    wait_for(PATIENCE, look)
}

/// The same, with a deadline of its own.
pub fn wait_for<T>(patience: Duration, look: impl FnMut() -> Option<T>) -> Option<T> {
    slurm_testbed::wait(patience, look)
}
