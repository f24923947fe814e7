//! Other lines with attributes.

use super::value::Attributes;
use crate::document::{DefinitionKind, encoded};
use std::fmt;

/// A `PowerAction`, `DownNodes` or `FrontendName` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDefinition {
    /// The kind of line.
    pub kind: DefinitionKind,
    /// The value of the first key.
    pub name: String,
    /// The attributes, in order.
    pub attributes: Vec<(String, String)>,
}

impl OtherDefinition {
    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
        found.map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for OtherDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, encoded(&self.name))?;
        Attributes(f).all(&self.attributes)
    }
}
