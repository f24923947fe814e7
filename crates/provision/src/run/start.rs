//! Starts nodes.

use super::locks::{Known, Locked};
use super::pass::{merge, report_busy, unknown};
use super::{Observation, Run};
use crate::plan::{self, JobGroup, Operation};
use crate::report::Report;
use crate::state::{EventKind, NodeLock};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::NodeName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a round waits for further nodes that another process has locked, such as one that stops them.
const PATIENCE: Duration = Duration::from_secs(3);
const LONGEST_PATIENCE: Duration = Duration::from_secs(48);

/// The result of locking nodes or of a pass, in a start.
enum Round {
    Locked(Locked),
    Passed(Report),
}

/// Starts nodes. Those that cannot start are returned to Slurm immediately, with the reason.
///
/// `jobs` are the jobs of the resume file. It waits for nodes that another process has locked while it works on the others,
/// and never returns them to Slurm.
pub(super) async fn start(
    run: &Run<'_>,
    nodes: &[NodeName],
    jobs: &[JobGroup],
    deadline: Instant,
) -> Report {
    note_owners(run, jobs);
    let mut report = Report::new(Operation::Start);
    let Known { known, unknown: unknown_names } = run.known(nodes).await;
    unknown(&mut report, unknown_names);
    let mut patience = PATIENCE;
    let first = (Instant::now() + patience).min(deadline);
    let mut rounds: FuturesUnordered<LocalBoxFuture<'_, Round>> = FuturesUnordered::new();
    rounds.push(Box::pin(async { Round::Locked(run.lock(&known, first).await) }));
    while let Some(round) = rounds.next().await {
        let Locked { locks, busy: waiting } = match round {
            Round::Locked(locked) => locked,
            Round::Passed(passed) => {
                merge(&mut report, passed);
                continue;
            }
        };
        if !locks.is_empty() {
            rounds.push(Box::pin(bring_up(run, locks, jobs, deadline)));
        }
        if Instant::now() >= deadline || run.tools.cancel.is_cancelled() {
            report_busy(&mut report, waiting);
        } else if !waiting.is_empty() {
            rounds.push(Box::pin(wait(run, waiting, patience, deadline)));
            // Each round observes again.
            patience = (patience * 2).min(LONGEST_PATIENCE);
        }
    }
    report
}

/// Notes whose jobs they are: Slurm need not keep accounts, and forgets jobs that have ended.
fn note_owners(run: &Run<'_>, jobs: &[JobGroup]) {
    for group in jobs {
        if let Some(user) = group.labels.get("user") {
            let event = run.tools.event(EventKind::Owner).for_jobs([group.job.get()]);
            run.tools.note(&event.owned_by(user, group.labels.get("account")));
        }
    }
}

async fn bring_up(
    run: &Run<'_>,
    locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    jobs: &[JobGroup],
    deadline: Instant,
) -> Round {
    let ours: Vec<NodeName> = locks.keys().cloned().collect();
    let plan = |observation: &Observation| plan::start(&ours, jobs, observation.world(run));
    Round::Passed(run.pass(locks, deadline, plan).await)
}

/// Waits for nodes that another process has locked. After the first lock, it waits a while for others.
async fn wait(run: &Run<'_>, nodes: Vec<NodeName>, patience: Duration, deadline: Instant) -> Round {
    let mut locked = run.lock_any(&nodes, deadline).await;
    if !locked.locks.is_empty() {
        let soon = (Instant::now() + patience).min(deadline);
        let more = run.lock(&locked.busy, soon).await;
        locked.locks.extend(more.locks);
        locked.busy = more.busy;
    }
    Round::Locked(locked)
}
