//! Generic resources, such as GPUs.

use std::fmt;

/// A node's generic resources, as written.
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
    /// Such as `gpu`.
    pub name: &'a str,
    /// Such as `a100`.
    pub kind: Option<&'a str>,
    /// How many of them the node has.
    pub count: u64,
}

impl GresList {
    /// The text as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The resources one by one. A count left out is 1; what stands in parentheses is left out.
    pub fn iter(&self) -> impl Iterator<Item = Gres<'_>> {
        self.0.split(',').map(str::trim).filter(|item| !item.is_empty()).map(|item| {
            let item = item.split_once('(').map_or(item, |(item, _)| item);
            let mut parts = item.split(':');
            let mut gres = Gres { name: parts.next().unwrap_or_default(), kind: None, count: 1 };
            for part in parts {
                match scaled(part) {
                    Some(count) => gres.count = count,
                    None if part != "no_consume" => gres.kind = Some(part),
                    None => {}
                }
            }
            gres
        })
    }
}

/// A count with an optional suffix, each step of which is 1024.
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
