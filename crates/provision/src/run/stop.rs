//! Nodes are to go away.

use super::Run;
use super::locks::{Consent, Known};
use super::observe::Observation;
use super::pass::{busy, merge, wanted_again};
use crate::plan::{self, Operation, Plan};
use crate::report::{Outcome, Report};
use hostlist::{Hostlist, NodeName};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long whoever starts a node may take to let go of it.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often the end of all is tried in a row without any effect, and the pause in between.
const MOST_FUTILE: u32 = 4;
const PAUSE: Duration = Duration::from_secs(5);

/// What is left where nobody knows.
const UNLISTED: &str = "the instances could not be listed";

/// Removes the instances of nodes, whether slurmctld answers or not.
///
/// A node that Slurm has in service, or is bringing up, is left alone: the call is older than that.
/// [`stop_now`] ends it all the same.
pub async fn stop(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    end(run, nodes, End::STOP, |observation| plan::stop(nodes, observation.world(run))).await
}

/// Removes the instances of nodes that an operator names, as far as slurmctld says that no job is there.
pub async fn stop_by_hand(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    let plan = |observation: &Observation| plan::stop_by_hand(nodes, observation.world(run));
    end(run, nodes, End::STOP, plan).await
}

/// Removes the instances of nodes by an operator's own decision, whatever Slurm says of the nodes.
///
/// Slurm is not told: jobs that run there end when slurmctld misses the node.
pub async fn stop_now(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    end(run, nodes, End::NOW, |observation| plan::stop_now(nodes, observation.world(run))).await
}

/// Removes the instances of nodes that never came up, and lets the nodes rest.
pub async fn failed(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    end(run, nodes, End::FAILED, |observation| plan::failed(nodes, observation.world(run))).await
}

/// Why nodes are ended.
#[derive(Clone, Copy)]
struct End {
    word: &'static str,
    /// Slurm may want a node again by the time we come to it, and is asked.
    confirms: bool,
}

impl End {
    const STOP: Self = Self { word: "stop", confirms: true };
    const NOW: Self = Self { word: "stop now", confirms: false };
    const FAILED: Self = Self { word: "failed", confirms: true };

    fn consent(self) -> Consent {
        if self.confirms { Consent::Slurms } else { Consent::Nobodys }
    }
}

async fn end(
    run: &Run<'_>,
    nodes: &[NodeName],
    why: End,
    plan: impl Fn(&Observation) -> Plan,
) -> Report {
    let begun = run.begun(why.word);
    let report = yielded(run, nodes, (why, begun), plan).await;
    run.ended(report, begun)
}

/// Whoever starts these nodes is asked to let go of them, and then they are ended.
async fn yielded(
    run: &Run<'_>,
    nodes: &[NodeName],
    (why, begun): (End, Instant),
    plan: impl Fn(&Observation) -> Plan,
) -> Report {
    let deadline = run.deadline(begun);
    // What nobody knows, nobody starts; but a machine of that name is ended all the same.
    let Known { known, .. } = run.known(nodes).await;
    let free = run.lock(&known, Instant::now()).await;
    let wanted = free.busy;
    let pass = async |locks, left: &[NodeName]| {
        let mine = |observation: &Observation| {
            let mut plan = plan(observation);
            super::pass::without(&mut plan, left);
            plan
        };
        if why.confirms {
            run.pass_confirming(locks, deadline, mine).await
        } else {
            run.pass(locks, deadline, mine).await
        }
    };
    if wanted.is_empty() {
        return pass(free.locks, &[]).await;
    }
    let ours: Vec<NodeName> = free.locks.keys().cloned().collect();
    let first = if ours.is_empty() { None } else { Some(pass(free.locks, &wanted).await) };
    let until = (Instant::now() + PATIENCE).min(deadline);
    let more = run.lock_asking(&wanted, why.consent(), until).await;
    let is_ours = |node: &NodeName| more.locks.contains_key(node);
    let others: Vec<NodeName> = wanted.into_iter().filter(|node| !is_ours(node)).collect();
    let left: Vec<NodeName> = ours.into_iter().chain(others.iter().cloned()).collect();
    let mut report = pass(more.locks, &left).await;
    if let Some(first) = first {
        merge(&mut report, first);
    }
    wanted_again(&mut report, others);
    busy(&mut report, more.busy);
    report
}

/// Removes every instance with the cluster's tags, whether slurmctld answers or not, and observes
/// again until none is left: a listing may be behind, and a start that has yet to hear of it launches.
pub async fn stop_all(run: &Run<'_>) -> Report {
    let begun = run.begun("stop all");
    let deadline = run.deadline(begun);
    let mut report = Report::new(Operation::StopAll);
    let (mut quiet, mut futile, mut unlisted) = (0, 0, Vec::new());
    let left = loop {
        let Ended { report: round, left, given_up } = end_all(run, deadline).await;
        // Of rounds that saw nothing, the last says why.
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
    run.ended(report, begun)
}

/// What became of one round of ending all.
struct Ended {
    report: Report,
    /// What may still be left.
    left: Option<String>,
    /// True if the cloud cannot be reached, and another round would see no more.
    given_up: bool,
}

/// Ends once what is there; says what may still be left, if anything.
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
    // Who does not let go in time is ended all the same: nothing is to be left.
    let report = run.pass(locked.locks, deadline, plan).await;
    let acted = ends || report.nodes.values().any(|node| node.outcome != Outcome::Nothing);
    // That slurmctld is away is no matter; that nobody has seen the end is.
    let left = if !complete {
        Some(UNLISTED.to_owned())
    } else if !locked.busy.is_empty() {
        let busy: Hostlist = locked.busy.iter().collect();
        Some(format!("another process works on {busy}, and may launch there"))
    } else {
        acted.then(|| "there were instances to end at the last look".to_owned())
    };
    Ended { report, left, given_up: false }
}

/// The nodes that other runs have in hand: one without an instance may be about to get one.
fn in_hand(run: &Run<'_>) -> Vec<NodeName> {
    let mut nodes = run.conf.nodes();
    nodes.retain(|node| matches!(run.tools.state.try_lock(node), Ok(None)));
    nodes
}
