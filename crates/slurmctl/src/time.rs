//! Parsing times that Slurm prints.

use std::time::{Duration, SystemTime};

/// Parses `2026-11-16T12:01:41` as UTC, the zone that Slurm's programs are started with; `None` for other text.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let (date, time) = text.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let real = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    real.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && part.len() <= 4;
    let number = |part: &str| digits(part).then(|| part.parse().ok())?;
    let mut parts = text.split(separator);
    let mut next = || parts.next().and_then(number);
    let found = [next()?, next()?, next()?];
    parts.next().is_none().then_some(found)
}

/// Days since 1970, for years from then on.
fn days(year: u64, month: u64, day: u64) -> u64 {
    // Years begin in March, so that the leap day is the last.
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.saturating_sub(1), month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let day_of_year = (153 * month + 2) / 5 + day.saturating_sub(1);
    (year * 365 + leap_days + day_of_year).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_as_utc() {
        let table = [
            ("1970-01-01T00:00:00", 0),
            ("2000-02-29T12:00:00", 951_825_600),
            ("2000-03-01T00:00:00", 951_868_800),
            ("2026-11-16T12:01:41", 1_794_830_501),
            ("2100-03-01T00:00:00", 4_107_542_400),
        ];
        for (text, seconds) in table {
            let time = parse(text).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(time.as_secs(), seconds, "{text}");
        }
    }

    #[test]
    fn other_text_is_not_a_time() {
        for text in [
            "None",
            "Unknown",
            "N/A",
            "",
            "T",
            "2026-11-16",
            "2026-13-01T00:00:00",
            "1-1-1T1:1:1",
            "2026-11-16T12:01",
            "2026-11-16T12:01:41:00",
            "2026-11-16T+2:01:41",
            "99999-01-01T00:00:00",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
