//! Values, read and written as Slurm does.

use crate::{
    document::{Pair, encoded},
    error::Problem,
};
use hostlist::Hostlist;
use std::fmt;

/// A whole number with an optional suffix, each step of which is 1024.
pub(super) fn number<T: TryFrom<u64>>(pair: &Pair<'_>) -> Result<T, Problem> {
    scaled(&pair.value).and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        Problem::BadNumber { key: pair.key.to_string(), value: pair.value.to_string() }
    })
}

pub(super) fn scaled(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match text.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1024_u64.checked_pow(power)?)
}

pub(super) fn truth(pair: &Pair<'_>) -> Result<bool, Problem> {
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(&pair.value));
    if is(&["YES", "TRUE", "UP", "1"]) {
        return Ok(true);
    }
    if is(&["NO", "FALSE", "DOWN", "0"]) {
        return Ok(false);
    }
    Err(Problem::BadTruth { key: pair.key.to_string(), value: pair.value.to_string() })
}

pub(super) fn hostlist(pair: &Pair<'_>) -> Result<Hostlist, Problem> {
    pair.value.parse().map_err(|source| Problem::BadHostlist { key: pair.key.to_string(), source })
}

/// Remembers a pair that has no field of its own; a second one of its key takes the place of the first.
pub(super) fn remember(other: &mut Vec<(String, String)>, pair: &Pair<'_>) {
    let value = pair.value.to_string();
    match other.iter_mut().find(|(key, _)| key.eq_ignore_ascii_case(&pair.key)) {
        Some(known) => known.1 = value,
        None => other.push((pair.key.to_string(), value)),
    }
}

/// Writes ` key=value` for values that are there.
pub(super) struct Attributes<'a, 'b>(pub(super) &'a mut fmt::Formatter<'b>);

impl Attributes<'_, '_> {
    pub(super) fn put(&mut self, key: &str, value: &str) -> fmt::Result {
        write!(self.0, " {key}={}", encoded(value))
    }

    pub(super) fn option(&mut self, key: &str, value: Option<&impl ToString>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.put(key, &value.to_string()))
    }

    pub(super) fn truth(&mut self, key: &str, value: Option<bool>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.put(key, if value { "YES" } else { "NO" }))
    }

    pub(super) fn all(&mut self, other: &[(String, String)]) -> fmt::Result {
        other.iter().try_for_each(|(key, value)| self.put(key, value))
    }
}
