//! An old machine is replaced: Slurm accepts only one that booted after it asked for the node.

use crate::world::World;
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;

/// True for a running machine that is too old for the request of Slurm, which waits for the node: a stop that
/// failed, or came too late, has left it behind.
pub(super) fn is_too_old(node: &NodeName, instance: &Instance, world: World<'_>) -> bool {
    let Some(oldest) = world.site.policies.oldest else {
        return false;
    };
    let waits = world.node(node).is_some_and(|known| known.state.is_powering_up());
    let age = instance.created.and_then(|created| world.now.duration_since(created).ok());
    waits && instance.state == InstanceState::Running && age.is_some_and(|age| age > oldest)
}
