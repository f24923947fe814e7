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
        // Who waits looks again after a day, so that nothing here can be too long.
        let day = Duration::from_hours(24);
        let real = Duration::from_millis(left).as_secs_f64() / self.speed;
        (self.speed > 0.0).then(|| Duration::try_from_secs_f64(real).unwrap_or(day).min(day))
    }

    /// The calendar, for timestamps.
    pub(crate) fn calendar(&self) -> SystemTime {
        self.pinned.unwrap_or_else(SystemTime::now) + self.advanced
    }

    /// What requests' dates are compared with, and what the `Date` header says.
    pub(crate) fn date(&self) -> SystemTime {
        let date = self.pinned.unwrap_or_else(SystemTime::now);
        let by = Duration::from_secs(self.skew.unsigned_abs());
        let date = if self.skew < 0 { date.checked_sub(by) } else { date.checked_add(by) };
        // What a date header can say.
        let last = SystemTime::UNIX_EPOCH + LAST_DATE;
        date.unwrap_or(SystemTime::UNIX_EPOCH).clamp(SystemTime::UNIX_EPOCH, last)
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

    /// Moves both clocks forward, by [`FURTHEST`] in all.
    pub(crate) fn advance(&mut self, by: Duration) {
        let by = by.min(FURTHEST.saturating_sub(self.advanced));
        self.advanced += by;
        self.anchor = (self.now().saturating_add(whole_millis(by)), SystemTime::now());
    }

    /// Puts the clock that dates are checked against this many seconds off.
    pub(crate) fn set_skew(&mut self, seconds: i64) {
        self.skew = seconds.clamp(-MOST_SKEW, MOST_SKEW);
    }

    pub(crate) fn skew(&self) -> i64 {
        self.skew
    }
}

/// How far the clocks can be moved forward.
pub(crate) const FURTHEST: Duration = Duration::from_hours(24 * 36_500);

/// How many seconds the clock that dates are checked against can be off.
pub(crate) const MOST_SKEW: i64 = 10 * 365 * 24 * 3600;

/// The last second of the year 9999.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

/// True for a speed that the clock can have: none, or from a thousandth to a million.
pub(crate) fn is_speed(speed: f64) -> bool {
    speed == 0.0 || (1e-3..=1e6).contains(&speed)
}

/// The nearest speed that the clock can have.
fn sane(speed: f64) -> f64 {
    if is_speed(speed) {
        speed
    } else if speed.is_finite() && speed > 0.0 {
        speed.clamp(1e-3, 1e6)
    } else if speed < 0.0 {
        0.0
    } else {
        1.0
    }
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
    fn no_number_makes_the_clock_panic() {
        for speed in [1e-30, 1e30, f64::NAN, f64::INFINITY, -1.0] {
            let mut clock = Clock::new(None, speed);
            clock.set_speed(speed);
            assert!(is_speed(clock.speed()), "{speed}");
            let _ = (clock.now(), clock.until(Moment::MAX));
        }
        for skew in [i64::MIN, -300_000_000_000, 300_000_000_000, i64::MAX] {
            let pinned = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let mut clock = Clock::new(Some(pinned), 1.0);
            clock.set_skew(skew);
            let _ = httpdate::fmt_http_date(clock.date());
            clock.advance(Duration::MAX);
            clock.advance(Duration::MAX);
            let _ = (clock.stamp(), clock.now(), clock.until(Moment::MAX));
        }
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
