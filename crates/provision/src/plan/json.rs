//! Plans as JSON: without the text of files, and not read back.

use super::Step;
use super::print::Said;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::fmt::Display;

impl Serialize for Said {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(text) => serializer.serialize_str(text),
            Self::Many(texts) => texts.serialize(serializer),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let row = self.row();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("step", row.verb)?;
        map.serialize_entry("nodes", &texts(row.nodes))?;
        map.serialize_entry("instances", &texts(self.instances()))?;
        for (key, value) in row.details.iter().filter(|(key, _)| *key != "id") {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

fn texts(items: impl IntoIterator<Item = impl Display>) -> Vec<String> {
    items.into_iter().map(|item| item.to_string()).collect()
}

/// Writes each item as its text.
pub(super) fn as_texts<T: Display, S: Serializer>(
    items: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(items.iter().map(T::to_string))
}
