//! The cloud's two clocks: the calendar that timestamps show, and the one that lifecycles run on.

use crate::error::Error;
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// A moment on the lifecycle clock: milliseconds since the epoch, as it was at the start.
pub(crate) type Moment = i64;

/// How many times as fast as ours a clock runs: not at all, or from a thousandth to a million.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed(f64);

impl Speed {
    pub(crate) fn new(speed: f64) -> Result<Self, Error> {
        if speed == 0.0 || (1e-3..=1e6).contains(&speed) {
            return Ok(Self(speed));
        }
        Err(Error::Speed { speed })
    }

    pub(crate) fn factor(self) -> f64 {
        self.0
    }
}

/// Time as the cloud sees it.
///
/// The calendar is the wall clock plus whatever was [advanced](Change::advance); it is never sped
/// up, so that an instance launched a second ago is a second old to a client too. Lifecycles do
/// not know the wall clock: when that is set back, instances still boot.
#[derive(Debug)]
pub(crate) struct Clock {
    advanced: Duration,
    speed: Speed,
    /// The moment, and when in real time it was, at which the clock was last set.
    anchor: (Moment, Instant),
    dates: Dates,
}

/// The clock that requests' dates are checked against, which can be off. All copies are one clock,
/// so that it can be read without the world's lock.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dates {
    /// By how many seconds.
    skew: Arc<AtomicI64>,
}

impl Dates {
    /// What requests' dates are compared with, and what the `Date` header says, when the wall
    /// clock shows this.
    pub(crate) fn date(&self, wall: SystemTime) -> SystemTime {
        let skew = self.skew();
        let by = Duration::from_secs(skew.unsigned_abs());
        let date = if skew < 0 { wall.checked_sub(by) } else { wall.checked_add(by) };
        // What a date header can say.
        let last = SystemTime::UNIX_EPOCH + LAST_DATE;
        date.unwrap_or(SystemTime::UNIX_EPOCH).clamp(SystemTime::UNIX_EPOCH, last)
    }

    pub(crate) fn skew(&self) -> i64 {
        self.skew.load(Ordering::Relaxed)
    }

    fn set(&self, skew: i64) {
        self.skew.store(skew, Ordering::Relaxed);
    }
}

/// What can be said about the clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Change {
    /// Lifecycles run this many times as fast from here on; nought stops them.
    pub(crate) speed: Option<Speed>,
    /// Moves both clocks forward, by [`FURTHEST`] in all.
    pub(crate) advance: Option<Duration>,
    /// Puts the clock that dates are checked against this many seconds off.
    pub(crate) skew: Option<i64>,
}

impl Clock {
    pub(crate) fn new(speed: Speed) -> Self {
        let anchor = (millis(SystemTime::now()), Instant::now());
        Self { advanced: Duration::ZERO, speed, anchor, dates: Dates::default() }
    }

    /// The lifecycle clock at this time of ours.
    pub(crate) fn now(&self, at: Instant) -> Moment {
        let (moment, since) = self.anchor;
        let passed = at.saturating_duration_since(since);
        moment.saturating_add(whole_millis(passed.mul_f64(self.speed.factor())))
    }

    /// How long until `moment`, in real time from `at` on; `None` while the clock stands still.
    pub(crate) fn until(&self, moment: Moment, at: Instant) -> Option<Duration> {
        let left = u64::try_from(moment.saturating_sub(self.now(at))).unwrap_or(0);
        if left == 0 {
            return Some(Duration::ZERO);
        }
        // Who waits looks again after a day, so that nothing here can be too long.
        let day = Duration::from_hours(24);
        let speed = self.speed.factor();
        let real = Duration::from_millis(left).as_secs_f64() / speed;
        (speed > 0.0).then(|| Duration::try_from_secs_f64(real).unwrap_or(day).min(day))
    }

    /// The calendar, for timestamps, when the wall clock shows this.
    fn calendar(&self, wall: SystemTime) -> SystemTime {
        wall + self.advanced
    }

    /// The calendar in RFC 3339 with milliseconds, as OCI writes it.
    pub(crate) fn stamp(&self) -> String {
        stamp(self.calendar(SystemTime::now()))
    }

    /// Sets the clock, or says what of it cannot be and leaves it as it is.
    pub(crate) fn change(&mut self, change: Change, at: Instant) -> Result<(), Error> {
        let by = change.advance.unwrap_or_default();
        if by > FURTHEST.saturating_sub(self.advanced) {
            return Err(Error::Beyond { what: "advance_seconds", most: "100 years in all" });
        }
        let skew = change.skew.unwrap_or(self.dates.skew());
        if !(-MOST_SKEW..=MOST_SKEW).contains(&skew) {
            return Err(Error::Beyond { what: "skew_seconds", most: "10 years" });
        }
        self.anchor = (self.now(at).saturating_add(whole_millis(by)), at);
        self.advanced += by;
        self.speed = change.speed.unwrap_or(self.speed);
        self.dates.set(skew);
        Ok(())
    }

    pub(crate) fn speed(&self) -> Speed {
        self.speed
    }

    pub(crate) fn dates(&self) -> &Dates {
        &self.dates
    }
}

/// How far the clocks can be moved forward.
const FURTHEST: Duration = Duration::from_hours(24 * 36_500);

/// How many seconds the clock that dates are checked against can be off.
const MOST_SKEW: i64 = 10 * 365 * 24 * 3600;

/// The last second of the year 9999.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_799);

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

    fn clock(speed: f64) -> Clock {
        Clock::new(Speed::new(speed).unwrap())
    }

    fn advance(by: Duration) -> Change {
        Change { advance: Some(by), ..Change::default() }
    }

    #[test]
    fn a_clock_that_stands_still_moves_only_when_told() {
        let mut clock = clock(0.0);
        let at = Instant::now() + Duration::from_hours(1);
        let start = clock.now(at);
        assert_eq!(clock.until(start + 1, at), None);
        clock.change(advance(Duration::from_secs(5)), at).unwrap();
        assert_eq!(clock.now(at), start + 5000);
        assert_eq!(clock.until(start + 5000, at), Some(Duration::ZERO));
    }

    #[test]
    fn the_clock_goes_at_each_speed_that_it_is_given() {
        // From a speed to another, how far the clock goes in 10 s at each, and how long 20 s of
        // it take at the second.
        let table: [(f64, f64, [i64; 2], Option<u64>); 5] = [
            (0.0, 100.0, [0, 1_000_000], Some(200)),
            (100.0, 1.0, [1_000_000, 10_000], Some(20_000)),
            (1.0, 10.0, [10_000, 100_000], Some(2000)),
            (10.0, 0.0, [100_000, 0], None),
            (0.0, 0.0, [0, 0], None),
        ];
        for (first, second, [before, after], left) in table {
            let mut clock = clock(first);
            let (start, since) = clock.anchor;
            let at = |seconds| since + Duration::from_secs(seconds);
            assert_eq!(clock.now(at(10)), start + before, "{first} to {second}");
            let speed = Some(Speed::new(second).unwrap());
            clock.change(Change { speed, ..Change::default() }, at(10)).unwrap();
            assert_eq!(clock.now(at(10)), start + before, "{first} to {second}: no jump");
            assert_eq!(clock.now(at(20)), start + before + after, "{first} to {second}");
            let until = clock.until(clock.now(at(20)) + 20_000, at(20));
            assert_eq!(until, left.map(Duration::from_millis), "{first} to {second}");
        }
    }

    #[test]
    fn no_number_makes_the_clock_panic() {
        for speed in [1e-30, 1e30, f64::NAN, f64::INFINITY, -1.0] {
            assert!(Speed::new(speed).is_err(), "{speed}");
        }
        let at = Instant::now() + Duration::from_hours(24 * 36_500);
        for speed in [1e-3, 1e6] {
            let mut clock = clock(speed);
            clock.change(advance(FURTHEST), at).unwrap();
            let _ = (clock.stamp(), clock.now(at), clock.until(Moment::MAX, at));
        }
        let early = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for skew in [-MOST_SKEW, MOST_SKEW] {
            let mut clock = clock(1.0);
            clock.change(Change { skew: Some(skew), ..Change::default() }, at).unwrap();
            let _ = httpdate::fmt_http_date(clock.dates().date(early));
        }
    }

    #[test]
    fn an_impossible_change_is_refused() {
        let mut clock = clock(1.0);
        let at = Instant::now();
        let skew = |seconds| Change { skew: Some(seconds), ..Change::default() };
        for skewed in [i64::MIN, -300_000_000_000, 300_000_000_000, i64::MAX] {
            clock.change(skew(skewed), at).unwrap_err();
        }
        clock.change(advance(Duration::MAX), at).unwrap_err();
        clock.change(Change { skew: Some(5), ..advance(Duration::MAX) }, at).unwrap_err();
        assert_eq!((clock.dates().skew(), clock.advanced), (0, Duration::ZERO));
        clock.change(advance(FURTHEST), at).unwrap();
        clock.change(advance(Duration::from_millis(1)), at).unwrap_err();
    }

    #[test]
    fn skew_moves_the_date_and_not_the_calendar() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let mut clock = clock(1.0);
        clock.change(Change { skew: Some(-600), ..Change::default() }, Instant::now()).unwrap();
        assert_eq!(clock.dates().date(wall), wall - Duration::from_mins(10));
        assert_eq!(clock.calendar(wall), wall);
    }
}
