//! Points in time for people and logs, and those that others wrote down.

use history::cost::date;
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How far the clocks of those who share a state may be apart.
const SKEW: Duration = Duration::from_mins(1);

/// True for a time that has yet to come, though it was written down as one that had: by a clock that
/// was ahead. Whatever lasts from then on would last until that time has come.
pub(crate) fn is_ahead(at: SystemTime, now: SystemTime) -> bool {
    at.duration_since(now).is_ok_and(|ahead| ahead > SKEW)
}

/// A point in time, printed as `2026-11-16T12:00:00Z`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Utc(pub(crate) SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (days, rest) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// A length of time in the largest units that it is whole in, such as `1 h 30 min`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let parts = [(seconds / 3_600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = parts.map(|(count, unit)| format!("{count} {unit}")).collect();
        f.write_str(if words.is_empty() { "0 s" } else { "" })?;
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_printed_to_the_second() {
        let leap = UNIX_EPOCH + Duration::from_secs(951_782_399);
        assert_eq!(Utc(leap).to_string(), "2000-02-28T23:59:59Z");
    }

    #[test]
    fn a_length_of_time_is_in_the_units_that_people_use() {
        for (seconds, text) in [
            (0, "0 s"),
            (45, "45 s"),
            (90, "1 min 30 s"),
            (600, "10 min"),
            (86_400, "24 h"),
            (5_400, "1 h 30 min"),
        ] {
            assert_eq!(Span(Duration::from_secs(seconds)).to_string(), text);
        }
    }

    #[test]
    fn days_are_dates() {
        let table = [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_015, (2000, 2, 28)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_773, (2026, 11, 16)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ];
        for (days, expected) in table {
            assert_eq!(date(days), expected, "day {days}");
        }
    }
}
