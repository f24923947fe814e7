//! Durations in configuration files.

use std::time::Duration;

/// Parses a duration: seconds, or a whole number with `s`, `m` or `h`.
///
/// ```
/// use slurmconf::yaml::duration;
/// use std::time::Duration;
///
/// assert_eq!(duration("90"), Some(Duration::from_secs(90)));
/// assert_eq!(duration("15m"), Some(Duration::from_secs(900)));
/// assert_eq!(duration("1.5h"), None);
/// ```
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| Duration::from_secs(u64::from(number) * scale))
}
