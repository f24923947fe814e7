//! What was seen before.

use super::FindingKind;
use std::collections::BTreeMap;
use std::time::SystemTime;

/// What the runs before have seen, and when for the first time: an input and an output of
/// [`reconcile`](super::reconcile), kept in between by whoever calls it.
///
/// Losing it costs one more run before anything is put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    seen: BTreeMap<(FindingKind, String), SystemTime>,
}

impl Sightings {
    /// When this was first seen, without a run in between that did not see it.
    #[must_use]
    pub(crate) fn first(&self, kind: FindingKind, subject: &str) -> Option<SystemTime> {
        self.seen.get(&(kind, subject.to_owned())).copied()
    }

    /// Writes down when this was first seen.
    pub fn see(&mut self, kind: FindingKind, subject: String, first: SystemTime) {
        self.seen.insert((kind, subject), first);
    }

    /// All of it: what, about which node and instances, and since when.
    pub fn iter(&self) -> impl Iterator<Item = (FindingKind, &str, SystemTime)> {
        self.seen.iter().map(|((kind, subject), first)| (*kind, subject.as_str(), *first))
    }

    /// True if nothing was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}
