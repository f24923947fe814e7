//! A node's features.

use std::fmt;

/// The features of a node, some of them `key=value`.
///
/// ```
/// use slurmconf::Features;
///
/// let features = Features::from("shape=VM.Standard2.1,ad=1,fast");
/// assert_eq!(features.value("shape"), Some("VM.Standard2.1"));
/// assert!(features.has("fast") && !features.has("shape"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features(Vec<String>);

impl Features {
    /// True if there are no features.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the node has this feature.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.iter().any(|known| known == word)
    }

    /// The value of the feature `key=value`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// The features in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds a feature.
    pub fn push(&mut self, word: impl Into<String>) {
        self.0.push(word.into());
    }
}

impl From<&str> for Features {
    fn from(text: &str) -> Self {
        Self(text.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect())
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}
