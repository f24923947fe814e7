//! How tests wait.

use std::time::Duration;

/// Generous: a machine busy with other tests is no reason to fail, nor is slurmctld, which does some things every 30 seconds.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Asks again and again, up to a deadline; none if it passed.
pub fn wait<T>(condition: impl FnMut() -> Option<T>) -> Option<T> {
    wait_for(PATIENCE, condition)
}

/// Asks again and again, up to this deadline; none if it passed.
pub fn wait_for<T>(patience: Duration, condition: impl FnMut() -> Option<T>) -> Option<T> {
    slurm_testbed::wait(patience, condition)
}
