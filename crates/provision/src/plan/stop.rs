//! Nodes that are to go away.

use super::deploy::with_files;
use super::{Operation, Plan, Refusal, Stage, Step, Why, table::ids};
use crate::order::by_number;
use crate::world::{Standing, World};
use cloud_core::Instance;
use hostlist::NodeName;

/// Plans the end of nodes: every instance that carries the node's name and the cluster's tags.
///
/// Nothing is drained and nobody is asked: Slurm has decided. A node without an instance is done.
#[must_use]
pub fn stop(nodes: &[NodeName], world: World<'_>) -> Plan {
    let nodes = by_number(nodes.iter().cloned());
    let steps = nodes.iter().map(|node| match world.conf.get(node) {
        None => Step::Refuse { node: node.clone(), why: Refusal::NotInSlurmConf },
        Some(_) => end(node, world),
    });
    let plan = Plan::new(Operation::Stop).stage(Stage::new("stop", steps.collect()));
    with_files(plan, world)
}

/// Plans the end of every instance with the cluster's tags, known to slurm.conf or not.
#[must_use]
pub fn stop_all(world: World<'_>) -> Plan {
    let nodes = world.fleet.nodes();
    let mut steps: Vec<Step> = nodes
        .iter()
        .map(|node| end(node, world))
        .filter(|step| !matches!(step, Step::Nothing { why: Why::NoInstance, .. }))
        .collect();
    let nameless: Vec<&Instance> =
        world.fleet.nameless().iter().filter(|instance| !instance.state.is_leaving()).collect();
    if !nameless.is_empty() {
        steps.push(Step::TerminateNameless { ids: ids(&nameless) });
    }
    Plan::new(Operation::StopAll).stage(Stage::new("stop", steps))
}

/// The end of a node's instances, however many there are.
///
/// On a listing that is not complete, "no instance" cannot be said.
pub(super) fn end(node: &NodeName, world: World<'_>) -> Step {
    let Standing { here, leaving } = world.fleet.standing(node);
    let node = node.clone();
    match (here.is_empty(), leaving.is_empty()) {
        (false, _) => Step::Terminate { node, ids: ids(&here) },
        (true, false) => Step::Nothing { node, why: Why::Leaving },
        (true, true) if !world.fleet.is_complete() => {
            Step::Refuse { node, why: Refusal::IncompleteListing }
        }
        (true, true) => Step::Nothing { node, why: Why::NoInstance },
    }
}
