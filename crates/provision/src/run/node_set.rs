//! Adds and removes nodes, in the cloud and in slurm.conf.

use super::Run;
use super::locks::HAND_WAIT;
use super::observe::{Observation, SlurmQuery};
use super::pass::{cancelled, merge, report_busy};
use super::request::{RequestError, RunRequest};
use crate::cause::Cause;
use crate::plan::{Plan, ReportStep, Stage, Step};
use crate::report::Report;
use crate::state::NodeLock;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// Plans, locks the nodes of the plan, and plans again, because another process may have changed something in between. Does
/// nothing while another process has locked one of the nodes.
///
/// Waiting for jobs may take a day and yields nodes to other processes, so after it everything is repeated. The deadline
/// bounds the repetitions.
pub(super) async fn change_nodes(
    run: &Run<'_>,
    request: &RunRequest<'_>,
    deadline: Instant,
) -> Result<Report, RequestError> {
    let first = request.plan(run.observe().await.world(run))?;
    let mut nodes = nodes_of(&first);
    let mut report = Report::new(first.operation);
    let mut partial = Partial::default();
    loop {
        let taken = partial.lock(run, &nodes, deadline).await;
        if !taken.is_empty() {
            partial.undo(run, &mut report, deadline).await;
            report_busy(&mut report, taken);
            break;
        }
        let observation = partial.observe(run, deadline).await;
        if run.tools.cancel.is_cancelled() {
            partial.undo(run, &mut report, deadline).await;
            cancelled(&mut report, &nodes);
            report.failures.extend(nodes.is_empty().then(not_begun));
            break;
        }
        let plan = request.plan(observation.world(run));
        let wanted = plan.as_ref().map(nodes_of).unwrap_or_default();
        if !wanted.is_subset(&nodes) {
            nodes.extend(wanted);
            continue;
        }
        // A plan that continues without some nodes needs the earlier changes.
        let refuses = |plan: &Plan| {
            plan.is_idle()
                && plan.steps().any(|step| matches!(step, Step::Report(ReportStep::Refuse { .. })))
        };
        if plan.as_ref().map_or(true, refuses) {
            partial.undo(run, &mut report, deadline).await;
        }
        let plan = plan?;
        let mut executor = run.executor(&plan, observation, partial.locks, deadline);
        executor.carry_out(&plan).await;
        merge(&mut report, executor.report);
        let Some(undo) = executor.undo_of_half else {
            break;
        };
        partial = Partial { locks: executor.locks, undo, waited: true };
    }
    Ok(report)
}

fn nodes_of(plan: &Plan) -> BTreeSet<NodeName> {
    plan.steps().flat_map(Step::nodes).cloned().collect()
}

/// The message for a cancelled plan without nodes, which only concerns files.
fn not_begun() -> String {
    format!("{}: nothing is changed", Cause::Cancelled.words())
}

/// A change that was interrupted by waiting for jobs, or has not started.
#[derive(Default)]
struct Partial {
    locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    undo: Vec<Step>,
    waited: bool,
}

impl Partial {
    /// Takes the missing locks. Returns the nodes that another process has locked.
    async fn lock(
        &mut self,
        run: &Run<'_>,
        nodes: &BTreeSet<NodeName>,
        deadline: Instant,
    ) -> Vec<NodeName> {
        let missing = nodes.iter().filter(|node| !self.locks.contains_key(*node));
        let missing: Vec<NodeName> = missing.cloned().collect();
        let locked = run.lock(&missing, (Instant::now() + HAND_WAIT).min(deadline)).await;
        self.locks.extend(locked.locks);
        locked.busy
    }

    async fn observe(&mut self, run: &Run<'_>, deadline: Instant) -> Observation {
        let mut observation =
            run.observe_nodes(&mut self.locks, SlurmQuery::NodesAndJobs, deadline).await;
        if self.waited {
            // A single call without a response must not undo a day's wait.
            run.retry_slurm(&mut observation, SlurmQuery::NodesAndJobs, deadline).await;
        }
        observation
    }

    /// Undoes the changes so far.
    async fn undo(&mut self, run: &Run<'_>, report: &mut Report, deadline: Instant) {
        let undo = std::mem::take(&mut self.undo);
        if undo.is_empty() {
            return;
        }
        let plan = Plan::new(report.operation).stage(Stage::new("undo", undo));
        merge(report, run.act(&plan, run.observe().await, BTreeMap::new(), deadline).await);
    }
}
