//! Nodes that cannot be had for now, where others of their partition can.
//!
//! Slurm knows nothing of zones and shapes that are full, nor of a node whose last machine does not go: it
//! would choose the same nodes for a job again and again, as often as they are returned to Slurm. Drained until
//! that is over, they leave the job to the others.

use crate::plan::reasons::{full_reason, unable_reason};
use crate::plan::start::all_cooling;
use crate::plan::{held, stop::is_theirs};
use crate::site::Place;
use crate::world::World;
use cloud_core::Instance;
use hostlist::NodeName;
use slurmctl::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// Why a node cannot be had for now.
#[derive(Clone, Debug)]
pub(super) struct Shut {
    pub(super) text: String,
    /// The reason of its drain.
    pub(super) reason: Reason,
}

/// The elastic nodes that cannot be had, and that share a partition with one of which this is not so.
pub(super) fn full(world: World<'_>) -> BTreeMap<NodeName, Shut> {
    let mut closed: BTreeMap<NodeName, Shut> = BTreeMap::new();
    let mut open: BTreeSet<NodeName> = BTreeSet::new();
    for node in world.conf.nodes() {
        // Whatever else a node wants: that its image is not known for a moment is no reason to try it.
        let def = world.conf.get(&node).filter(|def| def.is_cloud());
        let Some(places) = def.and_then(|def| world.site.places(def)) else {
            continue;
        };
        if let Some(shut) = shut(&node, &places, world) {
            closed.insert(node, shut);
        } else if is_in_service(&node, world) {
            open.insert(node);
        }
    }
    if closed.is_empty() {
        return closed;
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
        full.extend(shut.map(|(node, shut)| (node.clone(), shut.clone())));
    }
    full
}

/// Why the node cannot be had, if it cannot: its places cool down, it rests, or somebody has its machine in
/// hand, so that a start would refuse it.
fn shut(node: &NodeName, places: &[Place], world: World<'_>) -> Option<Shut> {
    if let Some((pool, cooldown)) = all_cooling(places, world.cooldowns, world.now) {
        let text = format!("{pool}: {cooldown}");
        return Some(Shut { reason: full_reason(&text), text });
    }
    let rest = world.cooldowns.resting(node).filter(|rest| rest.lasts(world.now));
    let rest = rest.map(ToString::to_string);
    let text = rest.or_else(|| in_hand(&world.fleet.standing(node).here))?;
    Some(Shut { reason: unable_reason(&text), text })
}

/// Which of the instances somebody has in hand, and how, if one of them is.
pub(super) fn in_hand(here: &[&Instance]) -> Option<String> {
    let theirs = here.iter().find(|instance| is_theirs(instance))?;
    Some(format!("{} is {}", theirs.id, theirs.state))
}

/// True if Slurm may give the node to a job, now or when it is free.
fn is_in_service(node: &NodeName, world: World<'_>) -> bool {
    world.node(node).is_some_and(|known| {
        !known.state.has_drain() && !known.state.is_down() && held(known).is_none()
    })
}
