//! Nodes that never came up, and rest.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod common;

use common::{Bed, names};
use hostlist::NodeName;
use provision::run;
use provision::state::{Document, Event, MemoryState, NodeLock, Result, State};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

/// A state that counts how often its documents are written.
#[derive(Debug, Default)]
struct Counting {
    state: MemoryState,
    written: Arc<AtomicUsize>,
}

impl State for Counting {
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        self.state.try_lock(node)
    }

    fn load(&self, document: Document) -> Result<Option<String>> {
        self.state.load(document)
    }

    fn change(
        &self,
        document: Document,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        self.written.fetch_add(1, Ordering::Relaxed);
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

#[tokio::test(start_paused = true)]
async fn the_rests_of_many_nodes_were_written_one_by_one() {
    let mut bed = Bed::new("n[1-50]");
    let counting = Counting::default();
    let (written, state) = (Arc::clone(&counting.written), counting.state.clone());
    bed.state = Box::new(counting);
    let nodes = names("n[1-50]");
    let report = bed.run(async |run| run::failed(run, &nodes).await).await;
    assert!(report.is_success(), "{report:?}");
    let stored = state.load(Document::Cooldowns).unwrap().unwrap();
    assert_eq!(stored.matches("\"node\":").count(), 50, "{stored}");
    assert_eq!(written.load(Ordering::Relaxed), 1);
}
