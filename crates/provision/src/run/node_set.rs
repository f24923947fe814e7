//! Nodes that become more or fewer, in the cloud and in slurm.conf.

use super::Run;
use super::locks::HAND_WAIT;
use super::observe::{Observation, SlurmQuery};
use super::pass::{busy, cancelled, merge};
use crate::cause::Cause;
use crate::plan::{self, Finish, Operation, Plan, Refusal, ReportStep, Resize, Stage, Step};
use crate::report::Report;
use crate::state::NodeLock;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// Makes persistent nodes be there: these, or all.
pub async fn deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> Report {
    let plan = |observation: &Observation| plan::deploy(nodes, observation.world(run));
    let asked = (Operation::Deploy, Duration::ZERO);
    let report = under_locks(run, asked, |observation| Ok::<_, Refusal>(plan(observation))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Deploy))
}

/// Makes persistent nodes more or fewer.
///
/// A node leaves slurm.conf only when its instance is confirmed gone. If jobs do not end in time,
/// what we drained takes jobs again and nothing is deleted.
pub async fn resize(run: &Run<'_>, request: &Resize<'_>) -> Report {
    let plan = |observation: &Observation| plan::resize(request, observation.world(run));
    let asked = (Operation::Resize, request.patience);
    let report = under_locks(run, asked, |observation| Ok::<_, Refusal>(plan(observation))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Resize))
}

/// Brings the cluster to the nodes that slurm.conf is to have: jobs of those that go are waited for,
/// and those that are always there are started.
pub async fn resize_to(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Resize, request.patience);
    under_locks(run, asked, |observation| plan::resize_to(request, observation.world(run))).await
}

/// Gives slurm.conf other nodes.
pub async fn finish(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Finish, request.patience);
    under_locks(run, asked, |observation| plan::finish(request, observation.world(run))).await
}

/// Plans, locks the nodes of the plan, and plans again: only then is it known that nobody else has
/// changed anything in between. Nothing is done at all while another has one of the nodes in hand.
///
/// A wait for jobs may take a day, and lets go of nodes that others want: behind it, all of this is done
/// once more. The deadline bounds how often.
async fn under_locks<E>(
    run: &Run<'_>,
    (operation, patience): (Operation, Duration),
    plan: impl Fn(&Observation) -> Result<Plan, E>,
) -> Result<Report, E> {
    let begun = run.begun(operation.as_str());
    // Nobody but an operator waits for it: jobs get all the time that they were given.
    let deadline = run.deadline(begun + patience);
    let mut nodes = nodes_of(&plan(&run.observe().await)?);
    let mut report = Report::new(operation);
    let mut half = Half::default();
    loop {
        let taken = half.lock(run, &nodes, deadline).await;
        if !taken.is_empty() {
            half.undo(run, &mut report, deadline).await;
            busy(&mut report, taken);
            break;
        }
        let observation = half.observe(run, deadline).await;
        if run.tools.cancel.is_cancelled() {
            half.undo(run, &mut report, deadline).await;
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
        // One that goes on without some nodes needs what was begun.
        let refuses = |plan: &Plan| {
            plan.is_idle()
                && plan.steps().any(|step| matches!(step, Step::Report(ReportStep::Refuse { .. })))
        };
        if plan.as_ref().map_or(true, refuses) {
            half.undo(run, &mut report, deadline).await;
        }
        let plan = plan?;
        let mut executor = run.executor(&plan, observation, half.locks, deadline);
        executor.carry_out(&plan).await;
        merge(&mut report, executor.report);
        let Some(undo) = executor.undo_of_half else {
            break;
        };
        half = Half { locks: executor.locks, undo, waited: true };
    }
    Ok(run.ended(report, begun))
}

fn nodes_of(plan: &Plan) -> BTreeSet<NodeName> {
    plan.steps().flat_map(Step::nodes).cloned().collect()
}

/// What is said of a plan without nodes, which is about files alone, when we were told to end.
fn not_begun() -> String {
    format!("{}: nothing is changed", Cause::Cancelled.words())
}

/// A change that has got as far as a wait, or has yet to begin.
#[derive(Default)]
struct Half {
    locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    undo: Vec<Step>,
    waited: bool,
}

impl Half {
    /// Takes the locks that it does not have; gives the nodes that another has in hand.
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
            // One call that is not answered must not undo a day's wait.
            run.retry_slurm(&mut observation, SlurmQuery::NodesAndJobs, deadline).await;
        }
        observation
    }

    /// Takes back what was done so far.
    async fn undo(&mut self, run: &Run<'_>, report: &mut Report, deadline: Instant) {
        let undo = std::mem::take(&mut self.undo);
        if undo.is_empty() {
            return;
        }
        let plan = Plan::new(report.operation).stage(Stage::new("undo", undo));
        merge(report, run.act(&plan, run.observe().await, BTreeMap::new(), deadline).await);
    }
}
