//! Deserializers for values with a special format.

use cloud_core::Secret;
use history::cost::Price;
use serde::de::{Deserialize, Deserializer, Error};
use slurmconf::yaml::duration;
use std::time::Duration;

/// Reads a whole number within bounds.
pub(crate) fn between<'de, D: Deserializer<'de>, const LEAST: u32, const MOST: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    let number = u32::deserialize(deserializer).ok().filter(|it| (LEAST..=MOST).contains(it));
    let expected = || Error::custom(format!("a whole number from {LEAST} to {MOST}"));
    number.map(Some).ok_or_else(expected)
}

/// Reads a number above 0.
pub(super) fn positive<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let number = f64::deserialize(deserializer).ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.map(Some).ok_or_else(|| Error::custom("a number above 0"))
}

/// Reads a duration: seconds, or a number with `s`, `m` or `h`.
pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let time = String::deserialize(deserializer).ok().as_deref().and_then(duration);
    time.map(Some).ok_or_else(|| Error::custom("a time such as 90, 90s, 15m or 2h"))
}

/// Reads a string or a list of strings.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    OneOrMany::deserialize(deserializer).map(|texts| match texts {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    })
}

/// Reads a command: a list of arguments, or one string that is split at spaces.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    OneOrMany::deserialize(deserializer).map(|words| match words {
        OneOrMany::One(text) => text.split_whitespace().map(str::to_owned).collect(),
        OneOrMany::Many(words) => words,
    })
}

#[derive(serde::Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Reads an amount of money without rounding.
pub(super) fn amount<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Price>, D::Error> {
    let price = Written::deserialize(deserializer).ok().and_then(|it| it.text().parse().ok());
    price.map(Some).ok_or_else(|| Error::custom("an amount such as 250 or 99.50"))
}

/// Reads a percentage, with or without `%`.
pub(super) fn percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = Written::deserialize(deserializer).ok().map(Written::text).unwrap_or_default();
    let number = text.strip_suffix('%').unwrap_or(&text).trim().parse::<u64>().ok();
    let number = number.filter(|number| (1..=100).contains(number));
    number.map(Some).ok_or_else(|| Error::custom("a percentage from 1% to 100%"))
}

/// Reads a secret address. It is validated where it is used, because an error here would show it.
pub(super) fn secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret<String>>, D::Error> {
    String::deserialize(deserializer).map(|text| Some(Secret::new(text)))
}

/// A scalar in its original notation.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Written {
    Whole(i64),
    Part(f64),
    Text(String),
}

impl Written {
    fn text(self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Part(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }
}
