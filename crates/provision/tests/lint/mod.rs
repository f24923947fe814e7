//! What no plan may do.

mod rules;

use cloud_core::{Instance, InstanceId, InstanceState};
use hostlist::NodeName;
use provision::plan::{Clear, FileStep, MachineStep, Notification, Plan, ReportStep, Stage, Step};
use provision::{Wanted, World};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something that no plan may do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Violation {
    /// Two steps of one stage are about the same node.
    NodeTwice(NodeName),
    /// Two steps touch the same instance, other than to wait until it is gone.
    InstanceTwice(InstanceId),
    /// Two steps bring up the same node.
    UpTwice(NodeName),
    /// A node is brought up and returned to Slurm.
    UpAndBack(NodeName),
    /// A node leaves slurm.conf that has an instance which nobody has waited for.
    DroppedWhileLive(NodeName, InstanceId),
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
            Self::InstanceTwice(id) => write!(f, "{id} twice"),
            Self::UpTwice(node) => write!(f, "{node} is brought up twice"),
            Self::UpAndBack(node) => write!(f, "{node} is brought up and returned to Slurm"),
            Self::DroppedWhileLive(node, id) => {
                write!(f, "{node} leaves slurm.conf while {id} lives")
            }
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
pub(crate) fn lint(plan: &Plan, world: World<'_>) -> Vec<Violation> {
    let mut found = BTreeSet::new();
    let ours = world.fleet.instances().filter(|instance| world.site.identity.owns(instance));
    let ours: Ours<'_> = ours.map(|instance| (&instance.id, instance)).collect();
    let mut ended: BTreeSet<&InstanceId> = BTreeSet::new();
    whole(plan, &mut found);
    for stage in &plan.stages {
        twice(stage, &mut found);
        for step in stage.steps.iter().chain(&stage.undo) {
            owners(step, &ours, world, &mut found);
            launches(step, &ended, world, &mut found);
            drops(step, &ended, world, &mut found);
        }
        for step in &stage.steps {
            if let Step::Machine(MachineStep::WaitGone { ids, .. }) = step {
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
    let mild =
        matches!(step, Step::Machine(MachineStep::Rebuild { .. } | MachineStep::Reboot { .. }));
    let names = |node| world.fleet.named(node).is_some_and(|named| named.id == *id);
    mild && step.nodes().iter().all(names)
}

/// Every launch has a place, is made on a complete listing, and on a clear way.
fn launches(
    step: &Step,
    ended: &BTreeSet<&InstanceId>,
    world: World<'_>,
    found: &mut BTreeSet<Violation>,
) {
    let Some(wanted) = wanted(step) else {
        return;
    };
    let node = &wanted.node;
    if wanted.places.is_empty() {
        found.insert(Violation::NoPlace(node.clone()));
    }
    if !world.fleet.is_complete() {
        found.insert(Violation::Blind(node.clone()));
    }
    for instance in world.fleet.of(node).iter().filter(|instance| instance.state.is_live()) {
        if !clears(step, instance) && !ended.contains(&instance.id) {
            found.insert(Violation::LaunchWhileLive(node.clone(), instance.id.clone()));
        }
    }
}

/// What a step launches.
fn wanted(step: &Step) -> Option<&Wanted> {
    match step {
        Step::Machine(
            MachineStep::Launch { wanted, .. } | MachineStep::Recreate { wanted, .. },
        ) => Some(wanted),
        _ => None,
    }
}

/// True if the step brings its node up, with a new instance or with one that is there.
fn brings_up(step: &Step) -> bool {
    let takes =
        matches!(step, Step::Machine(MachineStep::Adopt { .. } | MachineStep::StartStopped { .. }));
    takes || wanted(step).is_some()
}

/// True if the step sees to it that the instance is gone before it launches: it must end one that is
/// not on its way out by itself.
fn clears(step: &Step, instance: &Instance) -> bool {
    if let Step::Machine(MachineStep::Launch { first, .. }) = step {
        return first.iter().any(|clear| match clear {
            Clear::Terminate(id) => *id == instance.id,
            Clear::AwaitGone(id) => {
                *id == instance.id && instance.state == InstanceState::Terminating
            }
        });
    }
    step.instances().contains(&&instance.id)
}

/// A node is brought up once, and not returned to Slurm as well; an instance is ended, kept or renewed, and
/// that once.
fn whole(plan: &Plan, found: &mut BTreeSet<Violation>) {
    let (mut up, mut back, mut touched) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for step in plan.steps() {
        for node in step.nodes() {
            if brings_up(step) && !up.insert(node) {
                found.insert(Violation::UpTwice(node.clone()));
            }
            if matches!(step.notification(), Some(Notification::ReturnToSlurm { .. }))
                || matches!(step, Step::Report(ReportStep::GiveUp { .. }))
            {
                back.insert(node);
            }
        }
        if matches!(step, Step::Machine(MachineStep::WaitGone { .. })) {
            continue;
        }
        for id in step.instances() {
            if !touched.insert(id) {
                found.insert(Violation::InstanceTwice(id.clone()));
            }
        }
    }
    found.extend(up.intersection(&back).map(|node| Violation::UpAndBack((*node).clone())));
}

/// No node leaves slurm.conf while it has an instance that nobody has waited for.
fn drops(
    step: &Step,
    ended: &BTreeSet<&InstanceId>,
    world: World<'_>,
    found: &mut BTreeSet<Violation>,
) {
    let Step::File(FileStep::Write { drops, .. }) = step else {
        return;
    };
    for node in drops {
        let live = world.fleet.of(node).iter().filter(|instance| instance.state.is_live());
        for instance in live.filter(|instance| !ended.contains(&instance.id)) {
            found.insert(Violation::DroppedWhileLive(node.clone(), instance.id.clone()));
        }
    }
}
