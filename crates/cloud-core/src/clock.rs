//! Points in time that cannot overflow.

use std::time::Duration;
use tokio::time::Instant;

/// Longer times are cut to this; nobody waits for a year.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The moment so long from now.
pub(crate) fn from_now(pause: Duration) -> Instant {
    after(Instant::now(), pause)
}

/// The moment so long after another.
pub(crate) fn after(moment: Instant, pause: Duration) -> Instant {
    moment + pause.min(LONGEST)
}
