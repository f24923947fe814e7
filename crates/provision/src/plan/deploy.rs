//! Persistent nodes that are to be there.

use super::{
    Begin, FileStep, Operation, Plan, Refusal, Stage, Step, WrittenFile, bring_up::bring_up,
};
use crate::order::by_number;
use crate::world::{Roster, World};
use hostlist::NodeName;
use slurmconf::{ConfiguredState, NodeDef};

/// Plans the start of persistent nodes: these, or all of slurm.conf that are not elastic and say
/// what machine they are.
///
/// Refused as a whole if the cloud holds instances of ours that slurm.conf knows nothing of: then
/// this is not the cluster it is taken for, or an old one that was not cleared away.
#[must_use]
pub fn deploy(nodes: Option<&[NodeName]>, world: World<'_>) -> Plan {
    let nodes = by_number(nodes.map_or_else(|| persistent(world.conf), <[NodeName]>::to_vec));
    let strangers = strangers(world);
    let steps = nodes.into_iter().map(|node| {
        let step = if strangers.is_empty() {
            bring_up(&node, world)
        } else {
            Err(Refusal::Strangers(strangers.clone()))
        };
        step.unwrap_or_else(|why| Step::refuse(node, why))
    });
    let plan = Plan::new(Operation::Deploy).stage(Stage::new("launch", steps.collect()));
    if plan.is_idle() {
        return plan;
    }
    plan.stage(Stage::new("files", refresh()).begun(Begin::Always))
}

/// The plan with the files that hold addresses, if the policy is to keep them up to date.
pub(super) fn with_files(plan: Plan, world: World<'_>) -> Plan {
    if !world.site.policies.files || plan.is_idle() {
        return plan;
    }
    plan.stage(Stage::new("files", refresh()).begun(Begin::Always))
}

/// The files that hold addresses, worked out anew.
pub(super) fn refresh() -> Vec<Step> {
    vec![
        Step::File(FileStep::Refresh { which: WrittenFile::Inventory }),
        Step::File(FileStep::Refresh { which: WrittenFile::Hosts }),
    ]
}

/// The nodes that are not elastic and say what machine they are.
pub(super) fn persistent(conf: &Roster<'_>) -> Vec<NodeName> {
    let is_persistent = |name: &NodeName| {
        let machine = |def: &NodeDef| {
            let features = def.features.as_ref();
            features.is_some_and(|known| {
                known.value("shape").or_else(|| known.value("flavor")).is_some()
            })
        };
        let stays = |def: &NodeDef| !def.is_cloud() && def.state != Some(ConfiguredState::Future);
        conf.get(name).is_some_and(|def| stays(def) && machine(def))
    };
    conf.nodes().into_iter().filter(is_persistent).collect()
}

/// Instances of ours that no node of slurm.conf has, by node or else by id.
fn strangers(world: World<'_>) -> Vec<String> {
    let fleet = world.fleet;
    let nodes = fleet.nodes().into_iter().filter(|node| {
        let live = fleet.of(node).iter().any(|instance| !instance.state.is_leaving());
        live && world.conf.get(node).is_none()
    });
    let nameless = fleet.nameless().iter().filter(|instance| !instance.state.is_leaving());
    nodes
        .map(|node| node.to_string())
        .chain(nameless.map(|instance| instance.id.to_string()))
        .collect()
}
