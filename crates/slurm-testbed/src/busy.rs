//! Asking a slurmctld that is too busy to answer once more.

use crate::{PATIENCE, wait};
use std::process::Output;

/// What Slurm's programs say of a slurmctld that is between its end and its next start, or has no time.
const EXCUSES: [&str; 9] = [
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

/// True if slurmctld was too busy to answer, or between its end and its next start.
#[must_use]
pub fn is_busy(output: &Output) -> bool {
    let words = String::from_utf8_lossy(&output.stderr);
    !output.status.success() && EXCUSES.iter().any(|excuse| words.contains(excuse))
}

/// What one of Slurm's programs answers; it is run again while slurmctld is too busy.
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
