//! The name of one node, safe to use in a path, an argument or a URL.

use crate::list::Hostlist;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use core::str::FromStr;

/// The longest node name, that of a DNS name.
const MAX_LENGTH: usize = 253;

/// The name of one node: valid by construction, cheap to clone.
///
/// ASCII letters, digits, `-`, `_` and `.`, beginning with a letter, a digit or `_`: it can be neither
/// an option, nor a hidden file, nor lead out of a directory.
///
/// ```
/// use hostlist::NodeName;
///
/// let name: NodeName = "vm-standard2-1-ad1-0001".parse().unwrap();
/// assert_eq!(name.as_str(), "vm-standard2-1-ad1-0001");
/// assert!("../etc/passwd".parse::<NodeName>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// Checks `name`.
    pub fn new(name: &str) -> Result<Self, NodeNameError> {
        let reason = reason_against(name);
        reason.map_or_else(
            || Ok(Self(name.into())),
            |reason| Err(NodeNameError { name: excerpt(name), reason }),
        )
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Hostlist {
    /// Every name, checked; the first that no node can have is the error.
    ///
    /// ```
    /// let list: hostlist::Hostlist = "n[1-3]".parse()?;
    /// assert_eq!(list.node_names()?.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn node_names(&self) -> Result<Vec<NodeName>, NodeNameError> {
        self.iter().map(|name| NodeName::new(&name)).collect()
    }
}

fn reason_against(name: &str) -> Option<&'static str> {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    match name.bytes().next() {
        None => Some("is empty"),
        Some(b'-' | b'.') => Some("begins with `-` or `.`"),
        Some(_) if name.len() > MAX_LENGTH => Some("is longer than 253 bytes"),
        Some(_) if !name.bytes().all(part) => {
            Some("has a character other than letters, digits, `-`, `_` and `.`")
        }
        Some(_) => None,
    }
}

/// Enough of a bad name to recognise it, with nothing that disturbs a terminal or a log.
fn excerpt(name: &str) -> String {
    name.chars().take(64).flat_map(char::escape_debug).collect()
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::new(name)
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for NodeName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for NodeName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A name that no node can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeNameError {
    name: String,
    reason: &'static str,
}

impl NodeNameError {
    /// The name, or the beginning of a long one, with control characters escaped.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for NodeNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason } = self;
        write!(f, "node name `{name}` {reason}; name nodes as slurm.conf does, such as n[001-004]")
    }
}

impl core::error::Error for NodeNameError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_harm_are_refused() {
        for name in ["", "-n1", ".", "..", "a/b", "a b", "n\n", "n;m", "$(x)", "é1", "n[1]", "a\0"]
        {
            assert!(NodeName::new(name).is_err(), "{name:?}");
        }
        assert!(NodeName::new(&"n".repeat(254)).is_err());
    }

    #[test]
    fn ordinary_names_are_taken() {
        for name in ["n1", "vm-standard-e4-flex-16-256-ad1-0001", "gpu_01", "n1.cluster.local", "7"]
        {
            assert_eq!(NodeName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn one_bad_name_refuses_the_list() {
        let list: Hostlist = "n[1-2],a!b".parse().unwrap();
        assert_eq!(list.node_names(), Err(NodeName::new("a!b").unwrap_err()));
    }

    #[test]
    fn the_error_names_the_name_and_the_reason() {
        let error = NodeName::new("a\tb").unwrap_err().to_string();
        assert!(error.starts_with("node name `a\\tb` has a character other"), "{error}");
    }
}
