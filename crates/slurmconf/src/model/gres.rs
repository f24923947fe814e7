//! Generic resources, such as GPUs.

use std::fmt;

/// The generic resources of a node.
///
/// ```
/// use slurmconf::GresList;
///
/// let gres = GresList::from("gpu:a100:4,nic");
/// let found: Vec<_> = gres.iter().collect();
/// assert_eq!((found[0].name, found[0].kind, found[0].count), ("gpu", Some("a100"), 4));
/// assert_eq!((found[1].name, found[1].kind, found[1].count), ("nic", None, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GresList(String);

/// One generic resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gres<'a> {
    /// The name, such as `gpu`.
    pub name: &'a str,
    /// The type, such as `a100`.
    pub kind: Option<&'a str>,
    /// The count.
    pub count: u64,
}

impl GresList {
    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Each resource; the default count is 1, and text in parentheses is ignored.
    pub fn iter(&self) -> impl Iterator<Item = Gres<'_>> {
        let mut depth = 0_usize;
        let items = self.0.split(move |c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        items.map(str::trim).filter(|item| !item.is_empty()).map(one)
    }
}

/// By position: between a name and a count even a number is a type, such as `4090`.
fn one(item: &str) -> Gres<'_> {
    let item = item.split_once('(').map_or(item, |(item, _)| item);
    let mut parts = item.split(':').filter(|part| *part != "no_consume");
    let name = parts.next().unwrap_or_default();
    let (kind, count) = match (parts.next(), parts.next()) {
        (None, _) => (None, None),
        (Some(kind), Some(count)) => (Some(kind), scaled(count)),
        (Some(part), None) => match scaled(part) {
            Some(count) => (None, Some(count)),
            None => (Some(part), None),
        },
    };
    Gres { name, kind, count: count.unwrap_or(1) }
}

/// A count with an optional suffix: K, M, G, T or P.
fn scaled(text: &str) -> Option<u64> {
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

impl From<&str> for GresList {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for GresList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parts = (&'static str, Option<&'static str>, u64);

    #[test]
    fn a_type_that_looks_like_a_number_is_a_type() {
        let cases: [(&str, &[Parts]); 9] = [
            ("gpu:4090:2", &[("gpu", Some("4090"), 2)]),
            ("gpu:1g:4", &[("gpu", Some("1g"), 4)]),
            ("gpu:2", &[("gpu", None, 2)]),
            ("gpu:a100", &[("gpu", Some("a100"), 1)]),
            ("gpu", &[("gpu", None, 1)]),
            ("gpu:a100:4(S:0,1),nic:2K", &[("gpu", Some("a100"), 4), ("nic", None, 2048)]),
            ("gpu(S:0-1,3)", &[("gpu", None, 1)]),
            ("lustre:no_consume:4", &[("lustre", None, 4)]),
            ("gpu:a:1(S:0", &[("gpu", Some("a"), 1)]),
        ];
        for (text, expected) in cases {
            let list = GresList::from(text);
            let found: Vec<_> =
                list.iter().map(|gres| (gres.name, gres.kind, gres.count)).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
