//! Tags of instances and images.

use std::collections::BTreeMap;

/// Tags of an instance or image: OCI's free-form tags, OpenStack's metadata.
///
/// ```
/// use cloud_core::Tags;
///
/// let ours = Tags::from([("cluster", "blue")]);
/// let seen = Tags::from([("cluster", "blue"), ("node", "vm-0001")]);
/// assert!(seen.include(&ours));
/// assert!(!ours.include(&seen));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(BTreeMap<String, String>);

impl Tags {
    /// No tags.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tag, or replaces its value.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.insert(key.into(), value.into());
        self
    }

    /// The value of a tag.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// True if all of the wanted tags are here with the same values.
    #[must_use]
    pub fn include(&self, wanted: &Self) -> bool {
        wanted.iter().all(|(key, value)| self.get(key) == Some(value))
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Tags {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl<K: Into<String>, V: Into<String>, const N: usize> From<[(K, V); N]> for Tags {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}
