//! Instants in the future, computed without overflow.

use std::time::Duration;
use tokio::time::Instant;

/// Maximum duration; longer ones are cut to it.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The instant this long from now.
pub(crate) fn from_now(pause: Duration) -> Instant {
    after(Instant::now(), pause)
}

/// The instant this long after another.
pub(crate) fn after(moment: Instant, pause: Duration) -> Instant {
    moment + pause.min(LONGEST)
}
