//! What a reconcile puts right, and what it says when it cannot.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod common;

use common::{Bed, node};
use provision::exec::Cancel;
use provision::state::StateDir;
use provision::{Cause, Outcome, Report, run};
use slurmctl::{Controller as _, NodeAction, Reason};
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn reconcile(bed: &Bed) -> Report {
    bed.run(async |run| run::reconcile(run).await).await
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_could_not_remember_what_it_saw_never_said_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = Bed::new("n1");
    bed.state = Box::new(StateDir::open(directory.path()).unwrap());
    // What is no text cannot be read, and a directory in its place cannot be replaced.
    let path = directory.path().join("sightings.json");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("file"), "").unwrap();
    let report = reconcile(&bed).await;
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert!(report.failures.iter().any(|text| text.contains("sightings.json")), "{report:?}");
    let (_, look) = bed.run(async |run| run::preview_reconcile(run).await).await;
    assert!(look.warnings.iter().any(|text| text.contains("sightings.json")), "{look:?}");
}

/// Nodes that a run of ours drained and forgot, seen once.
async fn forgotten() -> Bed {
    let bed = Bed::new("n[1-200]");
    let (all, reason) = ("n[1-200]".parse().unwrap(), Reason::new("elastic: drained for resize"));
    bed.slurm.set_state(&all, NodeAction::Drain, Some(&reason)).await.unwrap();
    reconcile(&bed).await;
    sleep(Duration::from_mins(1)).await;
    bed
}

fn drained(bed: &Bed) -> usize {
    bed.slurm.all_nodes().iter().filter(|node| node.state.has_drain()).count()
}

#[tokio::test(start_paused = true)]
async fn slurm_was_told_of_each_node_in_a_call_of_its_own() {
    let bed = forgotten().await;
    let begun = Instant::now();
    let report = reconcile(&bed).await;
    assert_eq!(report.with(Outcome::Done).count(), 200, "{report:?}");
    assert_eq!(drained(&bed), 0);
    // In virtual time: a call takes 20 ms, and 200 of them took four seconds.
    let took = Instant::now() - begun;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_was_told_to_end_went_on() {
    let mut bed = forgotten().await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    signal.cancel();
    let report = reconcile(&bed).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Cancelled), "{report:?}");
    assert_eq!(drained(&bed), 200);
}
