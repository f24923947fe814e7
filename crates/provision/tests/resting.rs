//! Nodes that never came up, and rest.

use crate::common::run;
use crate::common::{Bed, groups, names, node};
use cloud_core::memory::{MemoryCloudSettings, Span};
use cloud_core::{InstanceState, Provider as _, ShapeName, Zone};
use history::Position;
use hostlist::NodeName;
use provision::state::{Event, MemoryState, NodeLock, NodeRecord, Result, State, StateFile};
use provision::{Cause, Outcome};
use slurmctl::memory::Call;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

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
async fn the_rests_of_many_nodes_are_stored_at_once() {
    let mut bed = Bed::new("n[1-50]");
    let counting = Counting::default();
    let (written, state) = (Arc::clone(&counting.written), counting.state.clone());
    bed.state = Box::new(counting);
    let nodes = names("n[1-50]");
    let report = bed.run(async |run| run::failed(run, &nodes).await).await;
    assert!(report.is_success(), "{report:?}");
    let stored = state.load(StateFile::Cooldowns).unwrap().unwrap();
    assert_eq!(stored.matches("\"node\":").count(), 50, "{stored}");
    assert_eq!(written.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_refuses_many_nodes_at_once_is_stored_once() {
    let mut bed = Bed::new("n[001-200]");
    bed.cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), Some(0));
    bed.cloud.set_late_capacity(true);
    let counting = Counting::default();
    let written = Arc::clone(&counting.written);
    bed.state = Box::new(counting);
    let nodes = names("n[001-200]");
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert!(report.nodes.values().all(|node| node.cause == Some(Cause::Capacity)), "{report:?}");
    let written = written.load(Ordering::Relaxed);
    assert!((1..=20).contains(&written), "{written} times");
}

/// What slurmctld asks for in the next four minutes, with a reconcile in each.
async fn four_minutes(bed: &Bed) -> BTreeSet<NodeName> {
    let mut called = BTreeSet::new();
    for second in 0..240 {
        sleep(Duration::from_secs(1)).await;
        for call in bed.slurm.tick() {
            match call {
                Call::Resume { request, .. } => called.extend(request.all.node_names().unwrap()),
                Call::Suspend { nodes } => {
                    let nodes = nodes.node_names().unwrap();
                    bed.run(async |run| run::stop(run, &nodes).await).await;
                }
                _ => {}
            }
        }
        if second % 60 == 0 {
            bed.run(async |run| run::reconcile(run).await).await;
        }
    }
    called
}

/// Its machine does not go, or somebody has it in hand: the node was the first in Slurm's order, and the job got no other.
#[tokio::test(start_paused = true)]
async fn a_job_leaves_a_node_that_cannot_come_up() {
    for state in [InstanceState::Terminating, InstanceState::Other("RESCUE".to_owned())] {
        let mut settings = MemoryCloudSettings::default();
        settings.terminate = Span::millis(36_000_000, 36_000_000);
        let bed = Bed::with("n[1-2]", settings);
        bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
        let old = bed.live().remove(0).id;
        if state == InstanceState::Terminating {
            bed.cloud.terminate(&old).await.unwrap();
        } else {
            assert!(bed.cloud.force(&old, state.clone()));
        }
        // What is listed is a little behind.
        sleep(Duration::from_secs(5)).await;
        let (_, request) = bed.job(1).await;
        let (nodes, jobs) = (names("n1"), groups(&request));
        let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
        assert_eq!(
            report.nodes[&node("n1")].outcome,
            Outcome::ReturnedToSlurm,
            "{state}: {report:?}"
        );
        assert_eq!(four_minutes(&bed).await, BTreeSet::from([node("n2")]), "{state}");
        let known = bed.slurm.node("n1").unwrap();
        assert!(known.state.has_drain(), "{state}: {}", known.state);
        assert!(known.reason_text().contains("want of a machine"), "{}", known.reason_text());
        assert!(bed.cloud.force(&old, InstanceState::Terminated));
        sleep(bed.site.policies.cooldown).await;
        bed.run(async |run| run::reconcile(run).await).await;
        assert!(!bed.slurm.node("n1").unwrap().state.has_drain(), "{state}: tried again");
    }
}
