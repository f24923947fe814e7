//! Adds and removes nodes, in the cloud and in slurm.conf.

use super::Run;
use super::locks::HAND_WAIT;
use super::observe::{Observation, SlurmQuery};
use super::pass::{cancelled, merge, report_busy};
use crate::cause::Cause;
use crate::plan::{self, Finish, Operation, Plan, Refusal, ReportStep, Resize, Stage, Step};
use crate::report::Report;
use crate::state::NodeLock;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Starts persistent nodes that have no instance: these, or all.
pub async fn deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> Report {
    let plan = |observation: &Observation| plan::deploy(nodes, observation.world(run));
    let asked = (Operation::Deploy, Duration::ZERO);
    let report = under_locks(run, asked, |observation| Ok::<_, Refusal>(plan(observation))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Deploy))
}

/// Grows or shrinks groups of persistent nodes.
///
/// A node leaves slurm.conf only when its instance is confirmed gone. If jobs do not end in time, drained nodes are
/// returned to service and nothing is deleted.
pub async fn resize(run: &Run<'_>, request: &Resize<'_>) -> Report {
    let plan = |observation: &Observation| plan::resize(request, observation.world(run));
    let asked = (Operation::Resize, request.patience);
    let report = under_locks(run, asked, |observation| Ok::<_, Refusal>(plan(observation))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Resize))
}

/// Resizes the cluster to the new nodes of slurm.conf: waits for jobs on removed nodes, and starts persistent ones.
pub async fn resize_to(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Resize, request.patience);
    under_locks(run, asked, |observation| plan::resize_to(request, observation.world(run))).await
}

/// Replaces the nodes of slurm.conf.
pub async fn finish(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Finish, request.patience);
    under_locks(run, asked, |observation| plan::finish(request, observation.world(run))).await
}

/// Plans, locks the nodes of the plan, and plans again, because another process may have changed something in between. Does
/// nothing while another process has locked one of the nodes.
///
/// Waiting for jobs may take a day and yields nodes to other processes, so after it everything is repeated. The deadline
/// bounds the repetitions.
async fn under_locks<E>(
    run: &Run<'_>,
    (operation, patience): (Operation, Duration),
    plan: impl Fn(&Observation) -> Result<Plan, E>,
) -> Result<Report, E> {
    let begun = run.log_start(operation.as_str());
    // Only an operator waits, so jobs get all of `patience`.
    let deadline = run.deadline(begun + patience);
    let mut nodes = nodes_of(&plan(&run.observe().await)?);
    let mut report = Report::new(operation);
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
        let plan = plan(&observation);
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
    Ok(run.log_end(report, begun))
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
