//! Stops nodes.

use super::Run;
use super::locks::{Consent, Known};
use super::observe::Observation;
use super::pass::{merge, report_busy, wanted_again, without};
use super::request::StopReason;
use crate::plan::{self, Operation};
use crate::report::{Outcome, Report};
use hostlist::{Hostlist, NodeName};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a start may take to yield a node.
const PATIENCE: Duration = Duration::from_secs(90);

/// Maximum consecutive rounds of `stop_all` without effect, and the pause between rounds.
const MOST_FUTILE: u32 = 4;
const PAUSE: Duration = Duration::from_secs(5);

/// The message if it is unknown what is left.
const UNLISTED: &str = "the instances could not be listed";

/// Requests the process that starts these nodes to yield them, and then stops them.
pub(super) async fn stop(
    run: &Run<'_>,
    nodes: &[NodeName],
    reason: StopReason,
    deadline: Instant,
) -> Report {
    // Nobody starts unknown nodes, but a machine of that name is terminated.
    let Known { known, .. } = run.known(nodes).await;
    let free = run.lock(&known, Instant::now()).await;
    let wanted = free.busy;
    let pass = async |locks, left: &[NodeName]| {
        let mine = |observation: &Observation| {
            let mut plan = reason.plan(nodes, observation.world(run));
            without(&mut plan, left);
            plan
        };
        match consent(reason) {
            Consent::Slurms => run.pass_confirming(locks, deadline, mine).await,
            Consent::Nobodys => run.pass(locks, deadline, mine).await,
        }
    };
    if wanted.is_empty() {
        return pass(free.locks, &[]).await;
    }
    let ours: Vec<NodeName> = free.locks.keys().cloned().collect();
    let first = if ours.is_empty() { None } else { Some(pass(free.locks, &wanted).await) };
    let until = (Instant::now() + PATIENCE).min(deadline);
    let more = run.lock_asking(&wanted, consent(reason), until).await;
    let is_ours = |node: &NodeName| more.locks.contains_key(node);
    let others: Vec<NodeName> = wanted.into_iter().filter(|node| !is_ours(node)).collect();
    let left: Vec<NodeName> = ours.into_iter().chain(others.iter().cloned()).collect();
    let mut report = pass(more.locks, &left).await;
    if let Some(first) = first {
        merge(&mut report, first);
    }
    wanted_again(&mut report, others);
    report_busy(&mut report, more.busy);
    report
}

/// Whether Slurm is queried again before each termination, because it may need the node again.
fn consent(reason: StopReason) -> Consent {
    match reason {
        StopReason::PowerDown | StopReason::ByHand | StopReason::NeverUp => Consent::Slurms,
        StopReason::Now => Consent::Nobodys,
    }
}

/// Terminates every instance with the cluster's tags, whether slurmctld answers or not, and repeats until none is left: a
/// listing may lag, and a running start may still launch.
pub(super) async fn stop_all(run: &Run<'_>, deadline: Instant) -> Report {
    let mut report = Report::new(Operation::StopAll);
    let (mut quiet, mut futile, mut unlisted) = (0, 0, Vec::new());
    let left = loop {
        let Ended { report: round, left, given_up } = end_all(run, deadline).await;
        // Of rounds without an observation, the last one has the reason.
        report.warnings.retain(|warning| !unlisted.contains(warning));
        unlisted =
            if left.as_deref() == Some(UNLISTED) { round.warnings.clone() } else { Vec::new() };
        let ended = round.nodes.values().any(|node| node.outcome == Outcome::Down);
        merge(&mut report, round);
        (quiet, futile) = match (&left, ended) {
            (None, _) => (quiet + 1, 0),
            (Some(_), true) => (0, 0),
            (Some(_), false) => (0, futile + 1),
        };
        let late = Instant::now() >= deadline || run.tools.cancel.is_cancelled();
        if quiet >= 2 || late || given_up || futile >= MOST_FUTILE {
            break left;
        }
        sleep(PAUSE).await;
    };
    report.failures.extend(left);
    report
}

/// The result of one round of `stop_all`.
struct Ended {
    report: Report,
    /// A message about what may be left.
    left: Option<String>,
    /// True if the cloud cannot be reached, so that another round is useless.
    given_up: bool,
}

/// Terminates all listed instances once. Returns a message about what may be left.
async fn end_all(run: &Run<'_>, deadline: Instant) -> Ended {
    let observation = run.observe().await;
    if !observation.fleet.is_complete() {
        let mut report = Report::new(Operation::StopAll);
        observation.warnings.into_iter().for_each(|warning| report.warn(warning));
        let (left, given_up) = (Some(UNLISTED.to_owned()), observation.given_up);
        return Ended { report, left, given_up };
    }
    let mut nodes = observation.fleet.nodes();
    nodes.extend(in_hand(run));
    let until = (Instant::now() + PATIENCE).min(deadline);
    let locked = run.lock_asking(&nodes, Consent::Nobodys, until).await;
    let (mut ends, mut complete) = (false, true);
    let plan = |observation: &Observation| {
        let plan = plan::stop_all(observation.world(run));
        ends = plan.steps().any(|step| !step.instances().is_empty());
        complete = observation.fleet.is_complete();
        plan
    };
    // Nodes that are not yielded in time are stopped anyway.
    let report = run.pass(locked.locks, deadline, plan).await;
    let acted = ends || report.nodes.values().any(|node| node.outcome != Outcome::Nothing);
    // slurmctld is not needed, but the end must be observed.
    let left = if !complete {
        Some(UNLISTED.to_owned())
    } else if !locked.busy.is_empty() {
        let busy: Hostlist = locked.busy.iter().collect();
        Some(format!("another process works on {busy}, and may launch there"))
    } else {
        acted.then(|| "there were instances left at the last observation".to_owned())
    };
    Ended { report, left, given_up: false }
}

/// The nodes that other processes have locked. One without an instance may be about to get one.
fn in_hand(run: &Run<'_>) -> Vec<NodeName> {
    let mut nodes = run.conf.nodes();
    nodes.retain(|node| matches!(run.tools.state.try_lock(node), Ok(None)));
    nodes
}
