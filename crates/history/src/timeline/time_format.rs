//! Parses and formats times and durations.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats a duration: `850 ms`, `4.2 s`, `3 min 20 s`, `5 h 10 min`, `3 d 4 h`.
pub(super) fn length(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        1..=9 => format!("{seconds}.{} s", millis % 1000 / 100),
        10..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min {} s", seconds / 60, seconds % 60),
        7200..=172_799 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        172_800.. => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// Formats a time in the time zone of this machine.
pub(super) fn local(millis: u64, format: &str) -> String {
    let stamp = i64::try_from(millis).ok().and_then(|it| Timestamp::from_millisecond(it).ok());
    let stamp = stamp.unwrap_or(Timestamp::UNIX_EPOCH);
    stamp.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// Possible distances between the marks of an axis, in seconds.
const STEPS: [u64; 22] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_419_200,
];

/// The marks of an axis, up to a maximum number: their times and labels.
pub(super) fn ticks(from: u64, to: u64, most: u64) -> Vec<(u64, String)> {
    let length = to.saturating_sub(from);
    let fits = |step: &&u64| length / (**step * 1000) <= most;
    let step = STEPS.iter().find(fits).copied().unwrap_or(31_536_000) * 1000;
    let format = match step {
        ..60_000 => "%H:%M:%S",
        60_000..86_400_000 => "%H:%M",
        86_400_000.. => "%Y-%m-%d",
    };
    let first = from.div_ceil(step);
    let marks = (first..).map(|index| index * step).take_while(|at| *at <= to);
    marks.take(1000).map(|at| (at, local(at, format))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_two_units_at_most() {
        let rows = [
            (0, "0 ms"),
            (850, "850 ms"),
            (4_240, "4.2 s"),
            (61_000, "61 s"),
            (200_000, "3 min 20 s"),
            (18_600_000, "5 h 10 min"),
            (273_600_000, "3 d 4 h"),
        ];
        for (millis, words) in rows {
            assert_eq!(length(millis), words);
        }
    }

    #[test]
    fn an_axis_has_no_more_marks_than_fit() {
        for to in [1, 999, 60_000, 3_600_000, 86_400_000, 31_536_000_000, u64::MAX / 2] {
            assert!(ticks(0, to, 10).len() <= 1000);
        }
        assert_eq!(ticks(0, 60_000, 10).len(), 7);
    }
}
