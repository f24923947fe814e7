//! Rebuilds or reboots nodes.

use super::Run;
use super::locks::{HAND_WAIT, Known};
use super::observe::{Observation, SlurmQuery};
use super::pass::{merge, report_busy, unknown};
use crate::cause::Cause;
use crate::plan::{
    self, Operation, Plan, RebuildOptions, ReportStep, Stage, Step, Target, our_reason,
};
use crate::report::{NodeReport, Outcome, Report};
use crate::state::NodeLock;
use crate::targets::Targets;
use cloud_core::{Error, InstanceId};
use hostlist::NodeName;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Number of rounds of observing, planning and acting: a second one only for nodes whose images the cloud refused to
/// replace in place.
const ROUNDS: usize = 2;

/// Rebuilds nodes with their image, or reboots them.
///
/// Instances that a node's file names are found by id, so that they may lack the cluster's tags. An instance that cannot be
/// observed fails only its node. If the cloud cannot replace an image in place, as with bare metal, the next round plans
/// another instance.
pub async fn rebuild(run: &Run<'_>, targets: &[Target], options: RebuildOptions) -> Report {
    let begun = run.log_start("rebuild");
    let deadline = run.deadline(begun);
    let nodes: Vec<NodeName> = targets.iter().map(|target| target.node.clone()).collect();
    let Known { known, unknown: unknown_names } = run.known(&nodes).await;
    let locked = run.lock(&known, (begun + HAND_WAIT).min(deadline)).await;
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
    report_busy(&mut report, locked.busy);
    unknown(&mut report, unknown_names);
    if options.slurm_asks {
        notify_not_rebuilt(run, &mut report).await;
    }
    run.log_end(report, begun)
}

/// Rebuilds or reboots nodes, and reports those with an unknown target to Slurm.
///
/// `may_wait` means that Slurm may be waiting for the nodes although it did not call directly: a script may have detached
/// from slurmctld.
pub async fn rebuild_targets(
    run: &Run<'_>,
    targets: Targets,
    options: RebuildOptions,
    may_wait: bool,
) -> Report {
    let mut report = match targets.known[..] {
        [] => Report::new(Operation::Rebuild),
        _ => rebuild(run, &targets.known, options).await,
    };
    if may_wait {
        // Nodes that another process has locked are reported by that process, which slurmctld may have called.
        let busy = |_: &NodeName, node: &mut NodeReport| node.outcome == Outcome::Busy;
        let theirs: BTreeMap<_, _> = report.nodes.extract_if(.., busy).collect();
        notify_not_rebuilt(run, &mut report).await;
        report.nodes.extend(theirs);
    }
    let mut untried = Report::new(Operation::Rebuild);
    let failed = |(node, why)| (node, NodeReport::failed(Cause::Refused, why));
    untried.nodes.extend(targets.failed.into_iter().map(failed));
    notify_not_rebuilt(run, &mut untried).await;
    report.nodes.extend(untried.nodes);
    report.warnings.extend(untried.warnings);
    report
}

/// Sets the reason of nodes that Slurm waits for and that are not rebuilt.
///
/// [`rebuild`] does this itself; this is for nodes that failed earlier. It sends no request to the cloud, which may be the
/// reason.
pub(crate) async fn notify_not_rebuilt(run: &Run<'_>, report: &mut Report) {
    let mut failed = report.nodes.iter().filter(|(_, node)| !node.outcome.is_success()).peekable();
    if failed.peek().is_none() {
        return;
    }
    let (observation, deadline) = (run.observe_slurm().await, run.deadline(Instant::now()));
    let plan = plan::not_rebuilt(failed, observation.world(run));
    let reported = run.act(&plan, observation, BTreeMap::new(), deadline).await;
    reported.warnings.into_iter().for_each(|warning| report.warn(warning));
    let failed = reported.nodes.into_iter().filter(|(_, node)| !node.outcome.is_success());
    for (node, unreported) in failed {
        let why = unreported.reason.unwrap_or_default();
        report.warn(format!("cannot report to Slurm why {node} is not rebuilt: {why}"));
    }
}

/// The locked nodes of the next round, whose instances cannot get another image.
struct Left {
    locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    fixed: BTreeMap<NodeName, InstanceId>,
}

/// Keeps the cloud's error of a rebuild in place if recreating the node is refused.
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

/// What [`rebuild`] would do first now. Changes nothing.
pub async fn preview_rebuild(
    run: &Run<'_>,
    targets: &[Target],
    options: RebuildOptions,
) -> (Plan, Observation) {
    let nodes: Vec<NodeName> = targets.iter().map(|target| target.node.clone()).collect();
    let mut left = Left { locks: run.peek(&nodes), fixed: BTreeMap::new() };
    let deadline = run.deadline(Instant::now());
    let (observation, plan, unseen) =
        plan_round(run, targets.to_vec(), options, &mut left, deadline).await;
    let given_up = unseen.into_iter().map(|(node, error)| {
        let (cause, reason) = (Cause::from(error.kind()), our_reason(&error.to_string()));
        Step::Report(ReportStep::GiveUp { node, cause, reason })
    });
    let plan = plan.stage(Stage::new("not seen", given_up.collect()));
    (plan, observation)
}

/// Observes and plans one round. Returns instances that could not be observed, with the reason.
async fn plan_round(
    run: &Run<'_>,
    mut targets: Vec<Target>,
    options: RebuildOptions,
    left: &mut Left,
    deadline: Instant,
) -> (Observation, Plan, BTreeMap<NodeName, Error>) {
    // A node for which Slurm has issued a reboot may go down, whatever the queue shows.
    let mut observation =
        run.observe_nodes(&mut left.locks, SlurmQuery::NodesAndPerhapsJobs, deadline).await;
    // The record has it, too, if it could be stored.
    observation.fleet = observation.fleet.with_fixed(std::mem::take(&mut left.fixed).into_values());
    let named = targets.iter().filter_map(|it| Some((it.node.clone(), it.named()?.clone())));
    let unseen = run.observe_named(named.collect(), &mut observation, deadline).await;
    targets.retain(|target| !unseen.contains_key(&target.node));
    let plan = plan::rebuild(&targets, options, observation.world(run));
    (observation, plan, unseen)
}

async fn rebuild_round(
    run: &Run<'_>,
    targets: Vec<Target>,
    options: RebuildOptions,
    mut left: Left,
    deadline: Instant,
) -> (Report, Left) {
    let (observation, plan, unseen) = plan_round(run, targets, options, &mut left, deadline).await;
    let mut executor = run.executor(&plan, observation, left.locks, deadline);
    executor.carry_out(&plan).await;
    let (mut report, fixed, mut locks) = (executor.report, executor.fixed, executor.locks);
    for (node, error) in unseen {
        report.note(node, NodeReport::failed_by(&error));
    }
    locks.retain(|node, _| fixed.contains_key(node));
    (report, Left { locks, fixed })
}
