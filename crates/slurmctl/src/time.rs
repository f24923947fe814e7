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

/// The time in the form that [`parse`] reads.
pub(crate) fn print(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let (day, rest) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that the day that comes and goes is the last one: the inverse of `days`.
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
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

    #[test]
    fn what_is_printed_reads_back() {
        for seconds in [0, 951_825_600, 951_868_800, 1_794_830_501, 4_107_542_400, 1_798_768_800] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(parse(&print(at)), Some(at), "{}", print(at));
        }
    }
}
