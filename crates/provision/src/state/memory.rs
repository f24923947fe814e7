//! The state in memory, for tests and as a fallback.

use super::error::Result;
use super::{Event, NodeLock, NodeRecord, State, StateFile};
use history::Position;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// A state that ends with the process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryState {
    content: Arc<Mutex<Content>>,
    /// Separate, because the change of a document may read the rest of the state.
    documents: Arc<Mutex<BTreeMap<StateFile, String>>>,
}

#[derive(Clone, Debug, Default)]
struct Content {
    records: BTreeMap<NodeName, NodeRecord>,
    locked: BTreeSet<NodeName>,
    wishes: BTreeMap<NodeName, SystemTime>,
    events: Vec<Event>,
}

impl MemoryState {
    /// Creates an empty state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.content().events.clone()
    }

    /// Forgets everything but the locks, as if the directory were lost.
    pub fn forget(&self) {
        self.restore(&Self::default());
    }

    /// Copies everything but the locks.
    #[must_use]
    pub fn backup(&self) -> Self {
        let backup = Self::default();
        backup.restore(self);
        backup
    }

    /// Replaces everything but the locks by that of a backup.
    pub fn restore(&self, backup: &Self) {
        let mut restored = backup.content().clone();
        let content = &mut *self.content();
        restored.locked = std::mem::take(&mut content.locked);
        *content = restored;
        self.documents().clone_from(&backup.documents());
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn documents(&self) -> MutexGuard<'_, BTreeMap<StateFile, String>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State for MemoryState {
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        if !self.content().locked.insert(node.clone()) {
            return Ok(None);
        }
        Ok(Some(Box::new(Held { state: self.clone(), node: node.clone() })))
    }

    fn record(&self, node: &NodeName) -> NodeRecord {
        self.content().records.get(node).cloned().unwrap_or_default()
    }

    fn history(&self) -> Result<history::Log> {
        Ok(history::Log { events: self.events(), ..history::Log::default() })
    }

    fn load(&self, document: StateFile) -> Result<Option<String>> {
        Ok(self.documents().get(&document).cloned())
    }

    fn change(
        &self,
        document: StateFile,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        let mut documents = self.documents();
        let after = change(documents.get(&document).map(String::as_str));
        documents.insert(document, after);
        Ok(true)
    }

    fn note(&self, event: &Event) -> Result<()> {
        self.content().events.push(event.clone());
        Ok(())
    }

    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)> {
        let events = &self.content().events;
        let seen = usize::try_from(position.offset).unwrap_or(usize::MAX);
        let offset = u64::try_from(events.len()).unwrap_or(u64::MAX);
        Ok((events.get(seen..).unwrap_or_default().to_vec(), Position { offset, ..position }))
    }

    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()> {
        let wishes = &mut self.content().wishes;
        wishes.extend(nodes.iter().map(|node| (node.clone(), until)));
        Ok(())
    }

    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()> {
        let wishes = &mut self.content().wishes;
        for node in nodes {
            wishes.remove(node);
        }
        Ok(())
    }

    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>> {
        let content = self.content();
        let live = content.wishes.iter().filter(|(_, until)| super::is_wished(**until, now));
        Ok(live.map(|(node, _)| node.clone()).collect())
    }
}

#[derive(Debug)]
struct Held {
    state: MemoryState,
    node: NodeName,
}

impl NodeLock for Held {
    fn record(&self) -> NodeRecord {
        self.state.content().records.get(&self.node).cloned().unwrap_or_default()
    }

    fn keep(&mut self, record: &NodeRecord) -> Result<()> {
        self.state.content().records.insert(self.node.clone(), record.clone());
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.state.content().locked.remove(&self.node);
    }
}
