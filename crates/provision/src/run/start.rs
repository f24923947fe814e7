//! Nodes are to come up.

use super::Run;
use super::locks::Known;
use super::pass::{busy, merge, unknown};
use crate::outcome::Report;
use crate::plan::{self, JobGroup, Operation};
use hostlist::NodeName;
use std::time::Duration;
use tokio::time::Instant;

/// How long the first round waits for nodes that another process has in hand, such as one that
/// stops them, before it goes on with the others.
const PATIENCE: Duration = Duration::from_secs(3);

/// Brings nodes up; those that cannot be had go back to Slurm at once, with the reason.
///
/// `jobs` are the jobs of the resume file. A node that another process starts or stops is waited
/// for and looked at again, and never given back on account of it.
pub async fn start(run: &Run<'_>, nodes: &[NodeName], jobs: &[JobGroup]) -> Report {
    let begun = run.begun("start");
    let deadline = run.deadline(begun);
    let mut report = Report::new(Operation::Start);
    let Known { known: mut waiting, strange } = run.known(nodes).await;
    unknown(&mut report, strange);
    let mut locked = run.lock(&waiting, (Instant::now() + PATIENCE).min(deadline)).await;
    loop {
        waiting = std::mem::take(&mut locked.busy);
        let ours: Vec<NodeName> = locked.locks.keys().cloned().collect();
        if !ours.is_empty() {
            let passed =
                run.pass(locked.locks, deadline, |look| plan::start(&ours, jobs, look.world(run)));
            merge(&mut report, passed.await);
        }
        if waiting.is_empty() || Instant::now() >= deadline || run.tools.cancel.is_cancelled() {
            break;
        }
        locked = run.lock_any(&waiting, deadline).await;
    }
    busy(&mut report, waiting);
    run.ended(report, begun)
}
