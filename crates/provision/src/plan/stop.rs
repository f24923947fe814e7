//! Nodes that are to go away.

use super::bring_up::ids;
use super::deploy::with_files;
use super::{
    Finding, FindingKind, Handling, MachineStep, Operation, Plan, Refusal, ReportStep, Stage, Step,
    Why, warm,
};
use crate::order::by_number;
use crate::world::World;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use slurmctl::NodeState;

/// Plans the end of nodes: every instance that carries the node's name and the cluster's tags.
///
/// Nothing is drained and nobody is asked: Slurm has decided. A node without an instance is done. An
/// instance in a state that we do not know, such as one being rescued, is somebody's and stays.
///
/// A node that Slurm has in service again, or is bringing up, by the time we come to it, is left
/// alone: the call is older than that, and a job may be there. [`stop_now`] ends it all the same.
#[must_use]
pub fn stop(nodes: &[NodeName], world: World<'_>) -> Plan {
    planned(nodes, world, |node| {
        let why = wanted_again(node, world);
        let nothing = why.map(|why| Step::Report(ReportStep::Nothing { node: node.clone(), why }));
        nothing.or_else(|| warm::stop(node, world))
    })
}

/// Plans the end of nodes that an operator names: as [`stop`], but where slurmctld does not answer, a node with an instance is
/// refused, because a job may be there.
#[must_use]
pub fn stop_by_hand(nodes: &[NodeName], world: World<'_>) -> Plan {
    let unknown =
        |node: &NodeName| world.slurm.is_none() && !world.fleet.standing(node).here.is_empty();
    planned(nodes, world, |node| {
        if unknown(node) {
            let (node, why) = (node.clone(), Refusal::JobUnknown);
            return Some(Step::Report(ReportStep::Refuse { node, why }));
        }
        wanted_again(node, world)
            .map(|why| Step::Report(ReportStep::Nothing { node: node.clone(), why }))
    })
}

/// Plans the end of the instances of nodes by somebody's own decision, whatever Slurm says of the nodes.
#[must_use]
pub fn stop_now(nodes: &[NodeName], world: World<'_>) -> Plan {
    planned(nodes, world, |_| None)
}

fn planned(
    nodes: &[NodeName],
    world: World<'_>,
    instead: impl Fn(&NodeName) -> Option<Step>,
) -> Plan {
    let nodes = by_number(nodes.iter().cloned());
    // What carries the node's name and our tags is ended, whether slurm.conf still has it or not.
    let is_known = |node: &NodeName| {
        world.conf.get(node).is_some() || world.fleet.of(node).iter().any(|one| one.state.is_live())
    };
    let steps = nodes.iter().map(|node| {
        let node = node.clone();
        if is_known(&node) {
            instead(&node).unwrap_or_else(|| end(&node, world))
        } else {
            Step::Report(ReportStep::Refuse { node, why: Refusal::NotInSlurmConf })
        }
    });
    let plan = Plan::new(Operation::Stop).stage(Stage::new("stop", steps.collect()));
    with_files(plan, world)
}

/// Why the node is not to be ended any more, if Slurm says so.
fn wanted_again(node: &NodeName, world: World<'_>) -> Option<Why> {
    is_wanted_again(&world.node(node)?.state).then_some(Why::WantedAgain)
}

/// True if Slurm has the node in service, or is bringing it up.
pub(crate) fn is_wanted_again(state: &NodeState) -> bool {
    let coming = state.is_powering_up() && !state.is_down();
    !is_going(state) && (coming || state.is_up() || runs_job(state))
}

/// True if a job runs on the node, whether its slurmd answers at the moment or not.
///
/// Slurm takes the jobs of a node that is down away, and it asks us to end one only while it is going.
pub(super) fn runs_job(state: &NodeState) -> bool {
    state.has_job() && !state.is_down() && !is_going(state)
}

/// True if Slurm lets go of the node. What has a job, or comes up, and is only to be powered down is not
/// let go of yet: Slurm waits for that, and calls us then.
fn is_going(state: &NodeState) -> bool {
    let in_use = state.has_job() || state.is_powering_up();
    let to_go = state.is_power_down_requested() && !in_use;
    state.is_powering_down() || state.is_powered_down() || to_go
}

/// Plans the end of every instance with the cluster's tags, known to slurm.conf or not, and in
/// whatever state.
#[must_use]
pub fn stop_all(world: World<'_>) -> Plan {
    let nodes = world.fleet.nodes();
    let mut steps: Vec<Step> = nodes
        .iter()
        .map(|node| end_of(node, &world.fleet.standing(node).here, world))
        .filter(|step| {
            !matches!(step, Step::Report(ReportStep::Nothing { why: Why::NoInstance, .. }))
        })
        .collect();
    let nameless: Vec<&Instance> =
        world.fleet.nameless().iter().filter(|instance| !instance.state.is_leaving()).collect();
    if !nameless.is_empty() {
        steps.push(Step::Machine(MachineStep::TerminateNameless { ids: ids(&nameless) }));
    }
    let mut plan = Plan::new(Operation::StopAll).stage(Stage::new("stop", steps));
    if !world.fleet.is_complete() {
        plan.findings.push(Finding {
            kind: FindingKind::Blind,
            node: None,
            instances: Vec::new(),
            text: "cannot list cloud machines; there may be more than are known".to_owned(),
            handling: Handling::Reported,
        });
    }
    with_files(plan, world)
}

/// The end of a node's instances, however many there are, but for those that somebody else has in
/// hand.
pub(super) fn end(node: &NodeName, world: World<'_>) -> Step {
    let here = world.fleet.standing(node).here;
    let (theirs, known): (Vec<&Instance>, Vec<&Instance>) =
        here.into_iter().partition(|instance| is_theirs(instance));
    match (known.is_empty(), theirs.first()) {
        (true, Some(instance)) => {
            let (id, state) = (instance.id.clone(), instance.state.clone());
            Step::Report(ReportStep::Refuse {
                node: node.clone(),
                why: Refusal::Busy { id, state },
            })
        }
        (true, None) | (false, _) => end_of(node, &known, world),
    }
}

/// True for an instance in a state that we do not know: somebody has it in hand. Where the cloud
/// itself does not know the state, nobody has: its host does not answer.
pub(super) fn is_theirs(instance: &Instance) -> bool {
    match &instance.state {
        InstanceState::Other(word) => !word.eq_ignore_ascii_case("unknown"),
        InstanceState::Pending
        | InstanceState::Running
        | InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::Terminating
        | InstanceState::Terminated
        | InstanceState::Failed => false,
    }
}

/// The end of these instances of a node.
///
/// On a listing that is not complete, "no instance" cannot be said.
fn end_of(node: &NodeName, here: &[&Instance], world: World<'_>) -> Step {
    let leaving = world.fleet.standing(node).leaving;
    let node = node.clone();
    match (here.is_empty(), leaving.is_empty()) {
        (false, _) => Step::Machine(MachineStep::Terminate { node, ids: ids(here) }),
        (true, false) => Step::Report(ReportStep::Nothing { node, why: Why::Leaving }),
        (true, true) if !world.fleet.is_complete() => {
            Step::Report(ReportStep::Refuse { node, why: Refusal::IncompleteListing })
        }
        (true, true) => Step::Report(ReportStep::Nothing { node, why: Why::NoInstance }),
    }
}
