//! What is between programs and their state.

use crate::simulation::judge::Judge;
use history::Position;
use hostlist::NodeName;
use provision::state::{
    Error, Event, MemoryState, NodeLock, NodeRecord, Result, State, StateDir, StateFile,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The state as one host sees it: at times it can only be read. The judge reads the log of events.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) state: Box<dyn State>,
    pub(crate) judge: Arc<Judge>,
    pub(crate) read_only: Arc<AtomicBool>,
    /// The nodes that have a file.
    pub(crate) files: Arc<Mutex<BTreeSet<NodeName>>>,
}

/// A lock whose record can only be read.
#[derive(Debug)]
struct Fixed {
    lock: Box<dyn NodeLock>,
    read_only: Arc<AtomicBool>,
}

impl NodeLock for Fixed {
    fn record(&self) -> NodeRecord {
        self.lock.record()
    }

    fn keep(&mut self, record: &NodeRecord) -> Result<()> {
        if self.read_only.load(Ordering::Relaxed) {
            return Err(refusal());
        }
        self.lock.keep(record)
    }
}

/// An error of a state directory that cannot be written.
fn refusal() -> Error {
    StateDir::open("/dev/null/state").unwrap_err()
}

/// A state that is lost, or replaced by what it was.
#[derive(Debug, Default)]
pub(crate) struct Backup(Mutex<MemoryState>);

impl Backup {
    pub(crate) fn make(&self, state: &MemoryState) {
        *self.0.lock().unwrap() = state.backup();
    }

    pub(crate) fn restore(&self, state: &MemoryState) {
        state.restore(&self.0.lock().unwrap());
    }
}

impl Disk {
    fn check(&self) -> Result<()> {
        if self.read_only.load(Ordering::Relaxed) { Err(refusal()) } else { Ok(()) }
    }
}

impl State for Disk {
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        if !self.files.lock().unwrap().contains(node) {
            self.check()?;
        }
        let Some(lock) = self.state.try_lock(node)? else {
            return Ok(None);
        };
        self.files.lock().unwrap().insert(node.clone());
        Ok(Some(Box::new(Fixed { lock, read_only: Arc::clone(&self.read_only) })))
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
        self.state.load(document)
    }

    fn change(
        &self,
        document: StateFile,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        self.check()?;
        self.state.change(document, change)
    }

    fn note(&self, event: &Event) -> Result<()> {
        self.judge.notes(event);
        self.check()?;
        self.state.note(event)
    }

    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()> {
        self.check()?;
        self.state.ask_to_yield(nodes, until)
    }

    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()> {
        self.check()?;
        self.state.stop_asking(nodes)
    }

    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>> {
        self.state.asked_to_yield(now)
    }
}
