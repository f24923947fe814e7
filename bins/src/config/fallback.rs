//! Where to go when there is no room at a node's own place.

use super::reader::Reader;

/// One more place to try: another shape, another zone, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fallback {
    /// Another shape; else the node's own.
    pub shape: Option<String>,
    /// Another zone; else the node's own. On OCI a number is that of an availability domain.
    pub zone: Option<String>,
    /// Machines that may be taken away at any time, or not; else as the node's own.
    pub preemptible: Option<bool>,
}

pub(super) fn read(reader: &mut Reader<'_>) -> Vec<Fallback> {
    reader.list("fallback", |entry| {
        entry.warn_unknown(&["shape", "zone", "ad", "preemptible"]);
        let zone = entry.text("zone").or_else(|| entry.text("ad"));
        let preemptible = entry.truth("preemptible");
        let fallback = Fallback { shape: entry.text("shape"), zone, preemptible };
        (fallback != Fallback::default()).then_some(fallback)
    })
}
