//! The cloud's two clocks: the calendar that timestamps show, and the one that lifecycles run on.

use jiff::Timestamp;
use std::time::{Duration, SystemTime};

/// A moment on the lifecycle clock: milliseconds since the epoch.
pub(crate) type Moment = i64;

/// Time as the cloud sees it.
///
/// The calendar is the wall clock plus whatever was [advanced](Self::advance); it is never sped
/// up, so that an instance launched a second ago is a second old to a client too.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Where the calendar stands still, if it does.
    pinned: Option<SystemTime>,
    advanced: Duration,
    speed: f64,
    /// The moment and the wall-clock time at which the speed was last set.
    anchor: (Moment, SystemTime),
    /// How far the clock that requests are checked against is off, in seconds.
    skew: i64,
}

impl Clock {
    pub(crate) fn new(pinned: Option<SystemTime>, speed: f64) -> Self {
        let wall = SystemTime::now();
        let anchor = (millis(pinned.unwrap_or(wall)), wall);
        Self { pinned, advanced: Duration::ZERO, speed: sane(speed), anchor, skew: 0 }
    }

    /// The lifecycle clock.
    pub(crate) fn now(&self) -> Moment {
        let (moment, wall) = self.anchor;
        let passed = SystemTime::now().duration_since(wall).unwrap_or_default();
        moment.saturating_add(whole_millis(passed.mul_f64(self.speed)))
    }

    /// How long until `moment`, in real time; `None` while the clock stands still.
    pub(crate) fn until(&self, moment: Moment) -> Option<Duration> {
        let left = u64::try_from(moment.saturating_sub(self.now())).unwrap_or(0);
        if left == 0 {
            return Some(Duration::ZERO);
        }
        (self.speed > 0.0).then(|| Duration::from_millis(left).div_f64(self.speed))
    }

    /// The calendar, for timestamps.
    pub(crate) fn calendar(&self) -> SystemTime {
        self.pinned.unwrap_or_else(SystemTime::now) + self.advanced
    }

    /// What requests' dates are compared with, and what the `Date` header says.
    pub(crate) fn date(&self) -> SystemTime {
        let date = self.pinned.unwrap_or_else(SystemTime::now);
        let by = Duration::from_secs(self.skew.unsigned_abs());
        if self.skew < 0 { date - by } else { date + by }
    }

    /// The calendar in RFC 3339 with milliseconds, as OCI writes it.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.calendar())
    }

    /// Lets lifecycles run this many times as fast from here on; nought stops them.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        self.anchor = (self.now(), SystemTime::now());
        self.speed = sane(speed);
    }

    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    /// Moves both clocks forward.
    pub(crate) fn advance(&mut self, by: Duration) {
        self.advanced += by;
        self.anchor = (self.now().saturating_add(whole_millis(by)), SystemTime::now());
    }

    /// Puts the clock that dates are checked against this many seconds off.
    pub(crate) fn set_skew(&mut self, seconds: i64) {
        self.skew = seconds;
    }

    pub(crate) fn skew(&self) -> i64 {
        self.skew
    }
}

fn sane(speed: f64) -> f64 {
    if speed.is_finite() { speed.clamp(0.0, 1e6) } else { 1.0 }
}

fn whole_millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn millis(time: SystemTime) -> Moment {
    whole_millis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// RFC 3339 with milliseconds and `Z`.
pub(crate) fn stamp(time: SystemTime) -> String {
    let time = Timestamp::from_millisecond(millis(time)).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_look_like_the_clouds() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_794_787_928_347);
        assert_eq!(stamp(time), "2026-11-16T00:12:08.347Z");
        assert_eq!(stamp(SystemTime::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_clock_that_stands_still_moves_only_when_told() {
        let mut clock = Clock::new(None, 0.0);
        let start = clock.now();
        assert_eq!(clock.until(start + 1), None);
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.now(), start + 5000);
        assert_eq!(clock.until(start + 5000), Some(Duration::ZERO));
    }

    #[test]
    fn changing_the_speed_does_not_jump() {
        let mut clock = Clock::new(None, 0.0);
        clock.advance(Duration::from_mins(1));
        let before = clock.now();
        clock.set_speed(0.0);
        assert_eq!(clock.now(), before);
    }

    #[test]
    fn skew_moves_the_date_and_not_the_calendar() {
        let pinned = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut clock = Clock::new(Some(pinned), 1.0);
        clock.set_skew(-600);
        assert_eq!(clock.date(), pinned - Duration::from_mins(10));
        assert_eq!(clock.calendar(), pinned);
    }
}
