//! Checks of a plan before it is carried out.

use super::{Clear, Plan, Stage, Step};
use crate::world::World;
use cloud_core::{Instance, InstanceId};
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something that no plan may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Violation {
    /// Two steps of one stage are about the same node.
    NodeTwice(NodeName),
    /// Two steps of one stage touch the same instance.
    InstanceTwice(InstanceId),
    /// A launch for a node that has an instance which is not cleared away first.
    LaunchWhileLive(NodeName, InstanceId),
    /// A launch without a place to go.
    NoPlace(NodeName),
    /// A launch on a listing that may hide an instance.
    Blind(NodeName),
    /// An instance that is not ours, or that nobody has seen.
    Foreign(InstanceId),
    /// An instance of another node than the step's.
    OtherNode(NodeName, InstanceId),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeTwice(node) => write!(f, "{node} twice in one stage"),
            Self::InstanceTwice(id) => write!(f, "{id} twice in one stage"),
            Self::LaunchWhileLive(node, id) => write!(f, "launch of {node} while {id} lives"),
            Self::NoPlace(node) => write!(f, "launch of {node} nowhere"),
            Self::Blind(node) => write!(f, "launch of {node} on an incomplete listing"),
            Self::Foreign(id) => write!(f, "{id} is not ours"),
            Self::OtherNode(node, id) => write!(f, "{id} is not an instance of {node}"),
        }
    }
}

/// The instances that are ours, by id.
type Ours<'a> = BTreeMap<&'a InstanceId, &'a Instance>;

/// What a plan does that no plan may do; empty for every plan that a planner makes.
///
/// The executor carries out no plan that has any.
#[must_use]
pub fn lint(plan: &Plan, world: World<'_>) -> Vec<Violation> {
    let mut found = BTreeSet::new();
    let ours = world.fleet.iter().filter(|instance| world.site.identity.owns(instance));
    let ours: Ours<'_> = ours.map(|instance| (&instance.id, instance)).collect();
    let mut ended: BTreeSet<&InstanceId> = BTreeSet::new();
    for stage in &plan.stages {
        twice(stage, &mut found);
        for step in stage.steps.iter().chain(&stage.undo) {
            owners(step, &ours, world, &mut found);
            launches(step, &ended, world, &mut found);
        }
        for step in &stage.steps {
            if let Step::WaitGone { ids, .. } = step {
                ended.extend(ids);
            }
        }
    }
    found.into_iter().collect()
}

fn twice(stage: &Stage, found: &mut BTreeSet<Violation>) {
    for steps in [&stage.steps, &stage.undo] {
        let (mut nodes, mut instances) = (BTreeSet::new(), BTreeSet::new());
        for step in steps {
            for node in step.nodes() {
                if !nodes.insert(node) {
                    found.insert(Violation::NodeTwice(node.clone()));
                }
            }
            for id in step.instances() {
                if !instances.insert(id) {
                    found.insert(Violation::InstanceTwice(id.clone()));
                }
            }
        }
    }
}

/// Every instance is ours, or named for it, and the step's own node's.
fn owners(step: &Step, ours: &Ours<'_>, world: World<'_>, found: &mut BTreeSet<Violation>) {
    let identity = &world.site.identity;
    for id in step.instances() {
        let Some(instance) = ours.get(id) else {
            if is_named(step, id, world) {
                continue;
            }
            found.insert(Violation::Foreign(id.clone()));
            continue;
        };
        let node = identity.node_of(instance);
        for asked in step.nodes().iter().filter(|asked| node.as_ref() != Some(asked)) {
            found.insert(Violation::OtherNode(asked.clone(), id.clone()));
        }
    }
}

/// True for the two things that may be done to an instance without our tags, where it is the one
/// that the node's file names.
fn is_named(step: &Step, id: &InstanceId, world: World<'_>) -> bool {
    match step {
        Step::Rebuild { node, .. } | Step::Reboot { node, .. } => {
            world.fleet.named(node).is_some_and(|named| named.id == *id)
        }
        Step::Launch { .. }
        | Step::Adopt { .. }
        | Step::StartStopped { .. }
        | Step::Terminate { .. }
        | Step::TerminateNameless { .. }
        | Step::WaitGone { .. }
        | Step::Recreate { .. }
        | Step::GiveBack { .. }
        | Step::ReturnToService { .. }
        | Step::Rest { .. }
        | Step::Drain { .. }
        | Step::WaitDrained { .. }
        | Step::Undrain { .. }
        | Step::RebootBySlurm { .. }
        | Step::Submit { .. }
        | Step::SetAddress { .. }
        | Step::TellAddresses { .. }
        | Step::Comment { .. }
        | Step::WriteFile { .. }
        | Step::Refresh { .. }
        | Step::TellSlurm(_)
        | Step::Refuse { .. }
        | Step::Nothing { .. } => false,
    }
}

fn launches(
    step: &Step,
    ended: &BTreeSet<&InstanceId>,
    world: World<'_>,
    found: &mut BTreeSet<Violation>,
) {
    let (wanted, cleared): (_, Vec<&InstanceId>) = match step {
        Step::Launch { wanted, first, .. } => (wanted, first.iter().map(Clear::id).collect()),
        Step::Recreate { wanted, id } => (wanted, vec![id]),
        _ => return,
    };
    let node = &wanted.node;
    if wanted.places.is_empty() {
        found.insert(Violation::NoPlace(node.clone()));
    }
    if !world.fleet.is_complete() {
        found.insert(Violation::Blind(node.clone()));
    }
    for instance in world.fleet.of(node).iter().filter(|instance| instance.state.is_live()) {
        if !cleared.contains(&&instance.id) && !ended.contains(&instance.id) {
            found.insert(Violation::LaunchWhileLive(node.clone(), instance.id.clone()));
        }
    }
}
