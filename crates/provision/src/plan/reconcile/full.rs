//! Nodes that cannot be had for now, where others of their partition can.
//!
//! Slurm knows nothing of zones and shapes that are full: it would choose the same nodes for a job again
//! and again, as often as they are given back. Drained until the cool-down is over, they leave the job to
//! the others.

use crate::plan::held;
use crate::plan::start::all_cooling;
use crate::world::World;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};

/// The elastic nodes all of whose places cool down, and that share a partition with one of which this is
/// not so; each with the reason.
pub(super) fn full(world: World<'_>) -> BTreeMap<NodeName, String> {
    let mut closed: BTreeMap<NodeName, String> = BTreeMap::new();
    if world.cooldowns.pools().next().is_none() {
        return closed;
    }
    let mut open: BTreeSet<NodeName> = BTreeSet::new();
    for node in world.conf.nodes() {
        // Whatever else a node wants: that its image is not known for a moment is no reason to try it.
        let def = world.conf.get(&node).filter(|def| def.is_cloud());
        let Some(places) = def.and_then(|def| world.site.places(def)) else {
            continue;
        };
        if let Some((pool, cooldown)) = all_cooling(&places, world) {
            closed.insert(node, format!("{pool}: {cooldown}"));
        } else if is_in_service(&node, world) {
            open.insert(node);
        }
    }
    let config = world.conf.config();
    let mut full = BTreeMap::new();
    for partition in &config.partitions {
        let nodes = config.partition_nodes(partition);
        let has = |node: &NodeName| nodes.contains(node.as_str());
        if !open.iter().any(has) {
            continue;
        }
        let shut = closed.iter().filter(|(node, _)| has(node));
        full.extend(shut.map(|(node, why)| (node.clone(), why.clone())));
    }
    full
}

/// True if Slurm may give the node to a job, now or when it is free.
fn is_in_service(node: &NodeName, world: World<'_>) -> bool {
    world.node(node).is_some_and(|known| {
        !known.state.has_drain() && !known.state.is_down() && held(known).is_none()
    })
}
