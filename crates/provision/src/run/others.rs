//! Nodes that are rebuilt, rolled out, deployed, or that become more or fewer.

use super::Run;
use super::locks::Known;
use super::look::{Asked, Look};
use super::pass::{busy, merge, unknown};
use crate::outcome::{NodeReport, Outcome, Report};
use crate::plan::{
    self, Finish, Operation, Plan, RebuildOptions, Refusal, Resize, Rollout, Stage, Step, Target,
};
use crate::report::Cause;
use crate::state::NodeLock;
use cloud_core::InstanceId;
use hostlist::{Hostlist, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How long a node that another process has in hand is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// How often it is looked, planned and acted: once more after the cloud has refused to replace images
/// in place, and for those nodes alone.
const ROUNDS: usize = 2;

/// Gives nodes their image, or a reboot.
///
/// An instance that a node's file names is looked for by its id, so that one without our tags can be
/// rebuilt, too. What cannot be looked at fails for its node, and for no other. Where the cloud cannot
/// replace an image in place, which is so for bare metal, the next round plans another instance.
pub async fn rebuild(run: &Run<'_>, targets: &[Target], options: RebuildOptions) -> Report {
    let begun = run.begun("rebuild");
    let deadline = run.deadline(begun);
    let nodes: Vec<NodeName> = targets.iter().map(|target| target.node.clone()).collect();
    let Known { known, strange } = run.known(&nodes).await;
    let locked = run.lock(&known, (begun + PATIENCE).min(deadline)).await;
    let mut report = Report::new(Operation::Rebuild);
    let mut left = Left { locks: locked.locks, fixed: BTreeMap::new() };
    for _ in 0..ROUNDS {
        let ours: Vec<Target> = targets
            .iter()
            .filter(|target| left.locks.contains_key(&target.node))
            .cloned()
            .collect();
        let mut round;
        (round, left) = rebuild_round(run, ours, options, left, deadline).await;
        keep_words(&report, &mut round);
        merge(&mut report, round);
        if left.locks.is_empty() || run.tools.cancel.is_cancelled() {
            break;
        }
    }
    busy(&mut report, locked.busy);
    unknown(&mut report, strange);
    if options.slurm_asks {
        tell_not_rebuilt(run, &mut report).await;
    }
    run.ended(report, begun)
}

/// Tells Slurm why nodes that it waits for will not come.
///
/// [`rebuild`] does so by itself; this is for nodes that never got that far. The cloud is not asked: it may be why.
pub async fn tell_not_rebuilt(run: &Run<'_>, report: &mut Report) {
    let mut failed = report.nodes.iter().filter(|(_, node)| !node.outcome.is_success()).peekable();
    if failed.peek().is_none() {
        return;
    }
    let (look, deadline) = (run.look_at_slurm().await, run.deadline(Instant::now()));
    let plan = plan::not_rebuilt(failed, look.world(run));
    let told = run.act(&plan, look, BTreeMap::new(), deadline).await;
    told.warnings.into_iter().for_each(|warning| report.warn(warning));
    for (node, untold) in told.nodes.into_iter().filter(|(_, node)| !node.outcome.is_success()) {
        let why = untold.reason.unwrap_or_default();
        report.warn(format!("Slurm could not be told why {node} is not rebuilt: {why}"));
    }
}

/// What the next round is about: nodes in hand whose instances cannot get another image.
struct Left {
    locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    fixed: BTreeMap<NodeName, InstanceId>,
}

/// Keeps what the cloud has said to a rebuild in place, where we refuse to recreate the node.
fn keep_words(before: &Report, round: &mut Report) {
    for (node, refused) in &mut round.nodes {
        let Some(failed) = before.nodes.get(node) else {
            continue;
        };
        if refused.outcome == Outcome::Refused {
            let words = |report: &NodeReport| report.reason.clone().unwrap_or_default();
            let reason = format!("{}; it is not recreated: {}", words(failed), words(refused));
            *refused = NodeReport { reason: Some(reason), ..failed.clone() };
        }
    }
}

async fn rebuild_round(
    run: &Run<'_>,
    mut targets: Vec<Target>,
    options: RebuildOptions,
    mut left: Left,
    deadline: Instant,
) -> (Report, Left) {
    let mut look = run.look_for(&mut left.locks, Asked::NodesAndJobs, deadline).await;
    // The record says so, too, where it could be kept.
    look.fleet = look.fleet.with_fixed(left.fixed.into_values());
    let named = targets.iter().filter_map(|it| Some((it.node.clone(), it.named()?.clone())));
    let unseen = run.look_for_named(named.collect(), &mut look, deadline).await;
    targets.retain(|target| !unseen.contains_key(&target.node));
    let plan = plan::rebuild(&targets, options, look.world(run));
    let mut executor = run.executor(&plan, look, left.locks, deadline);
    executor.carry_out(&plan).await;
    let (mut report, fixed, mut locks) = (executor.report, executor.fixed, executor.locks);
    for (node, error) in unseen {
        let mut failed =
            NodeReport::new(Outcome::Failed).because(Cause::from(error.kind()), error.to_string());
        failed.request_id = error.request_id().map(str::to_owned);
        report.note(node, failed);
    }
    locks.retain(|node, _| fixed.contains_key(node));
    (report, Left { locks, fixed })
}

/// Begins the next batch of a rollout, and notes in the request what it has begun.
///
/// Where slurmctld did not answer, and does not say that it reboots the node, nothing has begun: the
/// next batch has the node again. So it is where we were told to end before it was begun.
pub async fn rollout(run: &Run<'_>, request: &mut Rollout) -> Result<Report, Refusal> {
    let begun = run.begun("rollout");
    let deadline = run.deadline(begun);
    let look = run.look_at_rollout(request).await;
    let plan = plan::rollout(request, look.world(run))?;
    if run.tools.cancel.is_cancelled() {
        let mut report = Report::new(Operation::Rollout);
        let next = plan.steps().filter(|step| step.reboots_by_slurm()).flat_map(Step::nodes);
        cancelled(&mut report, &next.cloned().collect());
        return Ok(run.ended(report, begun));
    }
    let now = look.now;
    let mut executor = run.executor(&plan, look, BTreeMap::new(), deadline);
    executor.carry_out(&plan).await;
    let untouched = untouched(run, executor.unanswered).await;
    request.note_but(&plan, &untouched, now);
    Ok(run.ended(executor.report, begun))
}

/// Those of the nodes of which slurmctld does not say that it reboots them.
async fn untouched(run: &Run<'_>, mut nodes: BTreeSet<NodeName>) -> BTreeSet<NodeName> {
    if nodes.is_empty() {
        return nodes;
    }
    let list: Hostlist = nodes.iter().collect();
    let known = run.tools.slurm.nodes(Some(&list)).await.unwrap_or_default();
    for node in known {
        if node.state.is_reboot_requested() || node.state.is_reboot_issued() {
            nodes.remove(&node.name);
        }
    }
    nodes
}

/// Makes persistent nodes be there: these, or all.
pub async fn deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> Report {
    let plan = |look: &Look| plan::deploy(nodes, look.world(run));
    let asked = (Operation::Deploy, Duration::ZERO);
    let report = under_locks(run, asked, |look| Ok::<_, Refusal>(plan(look))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Deploy))
}

/// Makes persistent nodes more or fewer.
///
/// A node leaves slurm.conf only when its instance is confirmed gone. If jobs do not end in time,
/// what we drained takes jobs again and nothing is deleted.
pub async fn resize(run: &Run<'_>, request: &Resize<'_>) -> Report {
    let plan = |look: &Look| plan::resize(request, look.world(run));
    let asked = (Operation::Resize, request.patience);
    let report = under_locks(run, asked, |look| Ok::<_, Refusal>(plan(look))).await;
    report.unwrap_or_else(|_| Report::new(Operation::Resize))
}

/// Brings the cluster to the nodes that slurm.conf is to have: jobs of those that go are waited for,
/// and those that are always there are started.
pub async fn resize_to(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Resize, request.patience);
    under_locks(run, asked, |look| plan::resize_to(request, look.world(run))).await
}

/// Gives slurm.conf other nodes.
pub async fn finish(run: &Run<'_>, request: &Finish<'_>) -> slurmconf::Result<Report> {
    let asked = (Operation::Finish, request.patience);
    under_locks(run, asked, |look| plan::finish(request, look.world(run))).await
}

/// Plans, locks the nodes of the plan, and plans again: only then is it known that nobody else has
/// changed anything in between. Nothing is done at all while another has one of the nodes in hand.
///
/// A wait for jobs may take a day, and lets go of nodes that others want: behind it, all of this is done
/// once more. The deadline bounds how often.
async fn under_locks<E>(
    run: &Run<'_>,
    (operation, patience): (Operation, Duration),
    plan: impl Fn(&Look) -> Result<Plan, E>,
) -> Result<Report, E> {
    let begun = run.begun(operation.as_str());
    // Nobody but an operator waits for it: jobs get all the time that they were given.
    let deadline = run.deadline(begun + patience);
    let mut nodes = nodes_of(&plan(&run.look().await)?);
    let mut report = Report::new(operation);
    let mut half = Half::default();
    loop {
        let taken = half.lock(run, &nodes, deadline).await;
        if !taken.is_empty() {
            half.undo(run, &mut report, deadline).await;
            busy(&mut report, taken);
            break;
        }
        let look = half.look(run, deadline).await;
        if run.tools.cancel.is_cancelled() {
            half.undo(run, &mut report, deadline).await;
            cancelled(&mut report, &nodes);
            report.failures.extend(nodes.is_empty().then(not_begun));
            break;
        }
        let plan = plan(&look);
        let wanted = plan.as_ref().map(nodes_of).unwrap_or_default();
        if !wanted.is_subset(&nodes) {
            nodes.extend(wanted);
            continue;
        }
        // One that goes on without some nodes needs what was begun.
        let refuses = |plan: &Plan| {
            plan.is_idle() && plan.steps().any(|step| matches!(step, Step::Refuse { .. }))
        };
        if plan.as_ref().map_or(true, refuses) {
            half.undo(run, &mut report, deadline).await;
        }
        let plan = plan?;
        let mut executor = run.executor(&plan, look, half.locks, deadline);
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

/// Says of nodes that nothing more was done to them because we were told to end.
fn cancelled(report: &mut Report, nodes: &BTreeSet<NodeName>) {
    for node in nodes {
        let failed = NodeReport::new(Outcome::Failed);
        report.note(node.clone(), failed.because(Cause::Cancelled, Cause::Cancelled.words()));
    }
}

/// The same of a plan without nodes, which is about files alone.
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
        let locked = run.lock(&missing, (Instant::now() + PATIENCE).min(deadline)).await;
        self.locks.extend(locked.locks);
        locked.busy
    }

    async fn look(&mut self, run: &Run<'_>, deadline: Instant) -> Look {
        let mut look = run.look_for(&mut self.locks, Asked::NodesAndJobs, deadline).await;
        if self.waited {
            // One call that is not answered must not undo a day's wait.
            run.ask_slurm_again(&mut look, Asked::NodesAndJobs, deadline).await;
        }
        look
    }

    /// Takes back what was done so far.
    async fn undo(&mut self, run: &Run<'_>, report: &mut Report, deadline: Instant) {
        let undo = std::mem::take(&mut self.undo);
        if undo.is_empty() {
            return;
        }
        let plan = Plan::new(report.operation).stage(Stage::new("undo", undo));
        merge(report, run.act(&plan, run.look().await, BTreeMap::new(), deadline).await);
    }
}
