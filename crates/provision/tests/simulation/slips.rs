//! Bugs of our own, planted between the programs and what they remember or hear.

use cloud_core::memory::MemoryCloud;
use history::Position;
use hostlist::NodeName;
use provision::plan::FindingKind;
use provision::state::{Event, MemoryState, NodeLock, NodeRecord, Result, State, StateFile};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
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
    /// A lock that another controller does not see.
    LocksApart,
    /// What was written down by a clock that was ahead lasts until then.
    TrustsClocks,
}

/// A state with a bug in it.
#[derive(Debug)]
pub(crate) struct Slipping {
    state: MemoryState,
    cloud: MemoryCloud,
    slip: Slip,
    /// The nodes that this controller has locked.
    locked: Arc<Mutex<BTreeSet<NodeName>>>,
}

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

/// The lock of one controller.
#[derive(Debug)]
struct Apart {
    lock: Option<Box<dyn NodeLock>>,
    record: NodeRecord,
    node: NodeName,
    locked: Arc<Mutex<BTreeSet<NodeName>>>,
}

impl NodeLock for Apart {
    fn record(&self) -> NodeRecord {
        self.record.clone()
    }

    fn keep(&mut self, record: &NodeRecord) -> Result<()> {
        self.record = record.clone();
        self.lock.as_mut().map_or(Ok(()), |lock| lock.keep(record))
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.locked.lock().unwrap().remove(&self.node);
    }
}

impl Slipping {
    pub(crate) fn new(state: MemoryState, cloud: MemoryCloud, slip: Slip) -> Self {
        Self { state, cloud, slip, locked: Arc::default() }
    }

    fn lock_apart(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        if !self.locked.lock().unwrap().insert(node.clone()) {
            return Ok(None);
        }
        let lock = self.state.try_lock(node)?;
        let (record, locked) = (self.state.record(node), Arc::clone(&self.locked));
        Ok(Some(Box::new(Apart { lock, record, node: node.clone(), locked })))
    }

    /// The cool-downs as if all of them had begun long ago.
    fn trusted(&self) -> Result<Option<String>> {
        let stored = self.state.load(StateFile::Cooldowns)?;
        Ok(stored.map(|text| {
            let mut parts = text.split("\"opened\":");
            let first = parts.next().unwrap().to_owned();
            parts.fold(first, |text, part| {
                let rest = part.trim_start_matches(|digit: char| digit.is_ascii_digit());
                format!("{text}\"opened\":0{rest}")
            })
        }))
    }

    /// A sighting, long ago, of whatever can be seen.
    fn all_seen(&self) -> String {
        let mut seen = Vec::new();
        for kind in [FindingKind::Orphan, FindingKind::Stuck, FindingKind::Ghost] {
            for instance in self.cloud.instances() {
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
        if self.slip == Slip::LocksApart {
            return self.lock_apart(node);
        }
        let lock = self.state.try_lock(node)?;
        Ok(match (self.slip, lock) {
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
        self.state.record(node)
    }

    fn history(&self) -> Result<history::Log> {
        self.state.history()
    }

    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)> {
        self.state.events_after(position)
    }

    fn load(&self, document: StateFile) -> Result<Option<String>> {
        match (self.slip, document) {
            (Slip::AllSeen, StateFile::Sightings) => Ok(Some(self.all_seen())),
            (Slip::TrustsClocks, StateFile::Cooldowns) => self.trusted(),
            _ => self.state.load(document),
        }
    }

    fn change(
        &self,
        document: StateFile,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        self.state.change(document, change)
    }

    fn note(&self, event: &Event) -> Result<()> {
        self.state.note(event)
    }

    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()> {
        self.state.ask_to_yield(nodes, until)
    }

    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()> {
        self.state.stop_asking(nodes)
    }

    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>> {
        self.state.asked_to_yield(now)
    }
}
