//! Lines of attributes that have no type of their own.

use super::value::Attributes;
use crate::document::{DefinitionKind, encoded};
use std::fmt;

/// A line of attributes that is kept as it is: `PowerAction`, `DownNodes` or `FrontendName`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDefinition {
    /// Of what.
    pub kind: DefinitionKind,
    /// What it is called; of `DownNodes`, the nodes as written.
    pub name: String,
    /// The attributes, in order.
    pub attributes: Vec<(String, String)>,
}

impl OtherDefinition {
    /// The value of an attribute.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let said = self.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
        said.map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for OtherDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, encoded(&self.name))?;
        Attributes(f).all(&self.attributes)
    }
}
