//! Bugs of our own, planted between the programs and what they remember or hear.

use cloud_core::memory::MemoryCloud;
use history::Position;
use hostlist::NodeName;
use provision::plan::FindingKind;
use provision::state::{Document, Event, MemoryState, NodeLock, NodeRecord, Result, State};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// What goes wrong with what is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// A lock that does not lock.
    NeverLocked,
    /// What was asked of the cloud is not written down: neither launches nor their generation.
    NeverKept,
    /// Everything has been seen before.
    AllSeen,
}

/// A state with a bug in it.
#[derive(Debug)]
pub(crate) struct Slipping(pub(crate) MemoryState, pub(crate) MemoryCloud, pub(crate) Slip);

/// A lock that is none, or that keeps nothing.
#[derive(Debug)]
struct Loose {
    _held: Option<Box<dyn NodeLock>>,
    record: NodeRecord,
}

impl NodeLock for Loose {
    fn record(&self) -> NodeRecord {
        self.record.clone()
    }

    fn keep(&mut self, record: &NodeRecord) -> Result<()> {
        self.record = record.clone();
        Ok(())
    }
}

impl Slipping {
    /// A sighting, long ago, of whatever can be seen.
    fn all_seen(&self) -> String {
        let mut seen = Vec::new();
        for kind in [FindingKind::Orphan, FindingKind::Stuck, FindingKind::Ghost] {
            for instance in self.1.instances() {
                let node = instance.tags.get("node").unwrap_or_default();
                seen.push((kind.as_str(), format!("{node} {}", instance.id), 0));
                seen.push((kind.as_str(), node.to_owned(), 0));
            }
        }
        serde_json::to_string(&seen).unwrap()
    }
}

impl State for Slipping {
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        let lock = self.0.try_lock(node)?;
        Ok(match (self.2, lock) {
            (Slip::NeverLocked, None) => {
                Some(Box::new(Loose { _held: None, record: NodeRecord::default() }))
            }
            (Slip::NeverKept, Some(lock)) => {
                Some(Box::new(Loose { _held: Some(lock), record: NodeRecord::default() }))
            }
            (_, lock) => lock,
        })
    }

    fn record(&self, node: &NodeName) -> NodeRecord {
        self.0.record(node)
    }

    fn history(&self) -> Result<history::Log> {
        self.0.history()
    }

    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)> {
        self.0.events_after(position)
    }

    fn load(&self, document: Document) -> Result<Option<String>> {
        match (self.2, document) {
            (Slip::AllSeen, Document::Sightings) => Ok(Some(self.all_seen())),
            _ => self.0.load(document),
        }
    }

    fn change(
        &self,
        document: Document,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        self.0.change(document, change)
    }

    fn note(&self, event: &Event) -> Result<()> {
        self.0.note(event)
    }

    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()> {
        self.0.ask_to_yield(nodes, until)
    }

    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()> {
        self.0.stop_asking(nodes)
    }

    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>> {
        self.0.asked_to_yield(now)
    }
}
