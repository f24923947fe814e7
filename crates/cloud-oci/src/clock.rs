//! The clock, passed in by the caller.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// The current time, passed in by the program so that this crate reads no clock.
///
/// ```
/// use cloud_oci::Clock;
/// use std::time::{Duration, SystemTime};
///
/// let clock = Clock::new(|| SystemTime::UNIX_EPOCH + Duration::from_secs(1_389_130_300));
/// assert_eq!(clock.http_date(), "Tue, 07 Jan 2014 21:31:40 GMT");
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Creates a clock from a function.
    #[must_use]
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// The current time in the format of the `Date` header.
    #[must_use]
    pub fn http_date(&self) -> String {
        httpdate::fmt_http_date(self.now())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
