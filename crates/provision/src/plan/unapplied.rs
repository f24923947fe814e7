//! Nodes about which slurm.conf and slurmctld differ: the file was written, and slurmctld has not applied it.

use super::{Begin, Notification, Plan, Refusal, Reload, SlurmStep, Stage, Step};
use crate::order::by_number;
use crate::world::World;
use hostlist::NodeName;
use slurmconf::{ConfiguredState, NodeDef, SlurmVersion};
use slurmctl::{Node, StateFlag};

/// The nodes that slurmctld has yet to take up or to drop.
#[derive(Default)]
pub(super) struct Unapplied {
    /// slurm.conf has them, slurmctld has not.
    pub(super) missing: Vec<NodeName>,
    /// The other way round.
    pub(super) left: Vec<NodeName>,
}

impl Unapplied {
    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.left.is_empty()
    }

    /// The missing nodes that have one instance, whose address Slurm needs when it knows them.
    pub(super) fn to_address(&self, world: World<'_>) -> Vec<NodeName> {
        let there = |node: &&NodeName| world.fleet.standing(node).here.len() == 1;
        self.missing.iter().filter(there).cloned().collect()
    }
}

/// Compares slurm.conf and slurmctld; nothing differs if slurmctld does not answer.
///
/// Without a version, or with one before 23.11, elastic nodes may be hidden while they are powered
/// down: they are missed only where others in that state are shown.
pub(super) fn unapplied(version: Option<SlurmVersion>, world: World<'_>) -> Unapplied {
    let Some(slurm) = world.slurm else {
        return Unapplied::default();
    };
    let asleep = |node: &Node| node.state.is_cloud() && node.state.is_powered_down();
    let shown = version.is_some_and(|version| !version.needs_cloud_parameters())
        || slurm.values().any(asleep);
    let counts = |def: &NodeDef| match def.state {
        Some(ConfiguredState::Future) => false,
        Some(ConfiguredState::Cloud) => shown,
        _ => true,
    };
    let missing = world
        .conf
        .nodes()
        .into_iter()
        .filter(|node| !slurm.contains_key(node) && world.conf.get(node).is_some_and(counts));
    let left = slurm.values().filter(|node| {
        world.conf.get(&node.name).is_none() && !node.state.has(&StateFlag::DynamicNorm)
    });
    Unapplied { missing: missing.collect(), left: by_number(left.map(|node| node.name.clone())) }
}

/// How a slurmctld of that version takes up other nodes.
pub(super) fn take_up(version: SlurmVersion) -> Step {
    let reconfigures = version.reconfigures_nodes();
    let how = if reconfigures { Reload::Reconfigure } else { Reload::Restart };
    Step::notify([], Notification::Reload(how))
}

/// The nodes that must not go because a job is there.
pub(super) fn busy(nodes: &[NodeName], world: World<'_>) -> Vec<Step> {
    let used = nodes.iter().filter(|node| world.is_busy(node));
    let why =
        |node: &NodeName| world.job_on(node).map_or(Refusal::InUse, |job| Refusal::Job(job.id));
    used.map(|node| Step::refuse(node.clone(), why(node))).collect()
}

/// How slurmctld applies a file that is written already.
#[derive(Clone, Copy)]
pub(super) struct ApplyOptions {
    /// Also while a job runs on a node that would go.
    pub(super) force: bool,
    /// Lines other than nodes are unapplied: slurmctld lists its nodes, but not those.
    pub(super) lines: bool,
}

/// Adds what an earlier run did not come to: slurmctld applies the file.
pub(super) fn apply(
    plan: Plan,
    version: SlurmVersion,
    ApplyOptions { force, lines }: ApplyOptions,
    world: World<'_>,
) -> Plan {
    let unapplied = unapplied(Some(version), world);
    let busy = busy(&unapplied.left, world);
    if !busy.is_empty() && !force {
        return plan.stage(Stage::new("refused", busy));
    }
    // One that does not run will read them when it does.
    if unapplied.is_empty() && !(lines && world.slurm.is_some()) {
        return plan;
    }
    let nodes = unapplied.to_address(world);
    let addresses = if nodes.is_empty() {
        Vec::new()
    } else {
        vec![Step::Slurm(SlurmStep::ReportAddresses { nodes })]
    };
    plan.stage(Stage::new("tell slurm", vec![take_up(version)]).begun(Begin::IfAllWell))
        .stage(Stage::new("addresses", addresses))
}
