//! Values in Slurm's syntax.

use crate::{
    document::{Pair, encoded},
    error::Problem,
};
use hostlist::Hostlist;
use std::{collections::HashMap, fmt};

/// A number in C's syntax (`0x` is hexadecimal, a leading `0` octal); `INFINITE` is the largest one.
pub(super) fn number<T: TryFrom<u64>>(pair: &Pair<'_>) -> Result<T, Problem> {
    let bad = || Problem::BadNumber { key: pair.key.to_string(), value: pair.value.to_string() };
    if ["INFINITE", "UNLIMITED"].iter().any(|word| word.eq_ignore_ascii_case(&pair.value)) {
        let largest = [u64::MAX, u32::MAX.into(), u16::MAX.into()];
        return largest.into_iter().find_map(|number| T::try_from(number).ok()).ok_or_else(bad);
    }
    whole(&pair.value).and_then(|number| T::try_from(number).ok()).ok_or_else(bad)
}

/// A number that may have the suffix `K` for 1024, as Slurm's longer numbers may.
pub(super) fn long_number<T: TryFrom<u64>>(pair: &Pair<'_>) -> Result<T, Problem> {
    let Some(digits) = pair.value.strip_suffix(['k', 'K']) else {
        return number(pair);
    };
    let scaled = whole(digits).and_then(|number| T::try_from(number.checked_mul(1024)?).ok());
    scaled.ok_or_else(|| Problem::BadNumber {
        key: pair.key.to_string(),
        value: pair.value.to_string(),
    })
}

/// A number in C's syntax, without other text.
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', ..] => (text, 8),
        _ => (text, 10),
    };
    // Rust would take another sign here.
    u64::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with('+'))
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

/// Keeps a pair that has no field; call [`deduplicate`] at the end of the line.
pub(super) fn remember(other: &mut Vec<(String, String)>, pair: &Pair<'_>) {
    other.push((pair.key.to_string(), pair.value.to_string()));
}

/// Of pairs with the same key keeps the position of the first and the value of the last.
///
/// Once for a line, because a search for each pair takes minutes on a very long line.
pub(super) fn deduplicate(other: &mut Vec<(String, String)>) {
    if other.len() < 2 {
        return;
    }
    let mut places = HashMap::with_capacity(other.len());
    let mut unique: Vec<(String, String)> = Vec::with_capacity(other.len());
    for (key, value) in other.drain(..) {
        let place = *places.entry(key.to_ascii_lowercase()).or_insert(unique.len());
        match unique.get_mut(place) {
            Some(known) => known.1 = value,
            None => unique.push((key, value)),
        }
    }
    *other = unique;
}

/// Writes ` key=value` for each value.
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
