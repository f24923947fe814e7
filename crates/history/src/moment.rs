//! Times as people write them.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp, tz};

/// Whose days and hours are meant where a time does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeZone {
    /// Those of UTC, by which clouds bill.
    Utc,
    /// Those of this machine.
    Local,
}

/// A text that is no moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no time: write 2026-11-18, 2026-11-18T10:00, or 90m, 2h or 7d for so long ago")]
pub struct BadMoment(String);

/// A moment in milliseconds since 1970: a day such as `2026-11-18`, a time such as `2026-11-18T10:00`, in this zone unless it has
/// its own, or `2h` for so long before now.
///
/// ```
/// use history::{TimeZone, moment};
///
/// assert_eq!(moment("2m", 125_000, TimeZone::Utc), Ok(5_000));
/// assert_eq!(moment("1970-01-02", 0, TimeZone::Utc), Ok(86_400_000));
/// assert_eq!(moment("1970-01-01T00:01:00Z", 0, TimeZone::Local), Ok(60_000));
/// assert!(moment("soon", 0, TimeZone::Local).is_err());
/// ```
pub fn moment(text: &str, now: u64, zone: TimeZone) -> Result<u64, BadMoment> {
    ago(text, now).or_else(|| written(text, zone)).ok_or_else(|| BadMoment(text.to_owned()))
}

fn ago(text: &str, now: u64) -> Option<u64> {
    let units = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let millis = units.iter().find_map(|(unit, millis)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(*millis)
    });
    now.checked_sub(millis?)
}

fn written(text: &str, zone: TimeZone) -> Option<u64> {
    let zone = match zone {
        TimeZone::Utc => tz::TimeZone::UTC,
        TimeZone::Local => tz::TimeZone::system(),
    };
    let stamp: Timestamp = match text.parse::<Timestamp>() {
        Ok(stamp) => stamp,
        Err(_) => text.parse::<DateTime>().ok()?.to_zoned(zone).ok()?.timestamp(),
    };
    let since = stamp.duration_since(Timestamp::UNIX_EPOCH);
    (since >= SignedDuration::ZERO).then(|| u64::try_from(since.as_millis()).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_a_time_or_so_long_ago() {
        let rows = [
            ("2026-11-16T12:01:41", 1_794_830_501_000),
            ("2026-11-16T12:01:41Z", 1_794_830_501_000),
            ("2000-02-29", 951_782_400_000),
            ("1970-01-01T01:30", 5_400_000),
        ];
        for (text, millis) in rows {
            assert_eq!(moment(text, 0, TimeZone::Utc), Ok(millis), "{text}");
        }
        assert_eq!(moment("2h", 7_200_001, TimeZone::Utc), Ok(1));
        for text in [
            "",
            "d",
            "5",
            "1d",
            "2026-02-31",
            "2026-13-01",
            "2026-11-16T24:00",
            "-1d",
            "2026-11",
            "1969-01-01",
        ] {
            assert_eq!(moment(text, 0, TimeZone::Utc), Err(BadMoment(text.to_owned())), "{text}");
        }
    }
}
