//! Retrying while slurmctld is busy or restarting.

use crate::{PATIENCE, wait};
use std::process::Output;

/// The errors of Slurm's programs while slurmctld is busy or restarting.
const TRANSIENT: [&str; 9] = [
    "Unable to contact slurm controller",
    "Zero Bytes were transmitted",
    "Socket timed out",
    "Communication connection failure",
    "Communication shutdown failure",
    "Message send failure",
    "Message receive failure",
    "Connection refused",
    "Connection reset by peer",
];

/// True if a program failed because slurmctld is busy or restarting.
#[must_use]
pub fn is_busy(output: &Output) -> bool {
    let words = String::from_utf8_lossy(&output.stderr);
    !output.status.success() && TRANSIENT.iter().any(|error| words.contains(error))
}

/// Runs one of Slurm's programs, again and again while slurmctld is busy or restarting.
pub fn answer(mut run: impl FnMut() -> Output) -> Output {
    let mut output = run();
    let _ = wait(PATIENCE, || {
        let late = is_busy(&output);
        if late {
            output = run();
        }
        (!late).then_some(())
    });
    output
}
