//! Whether an image can be made of a node.

use super::Refusal;
use crate::world::World;
use cloud_core::Instance;
use hostlist::NodeName;

/// The instance of a node that an image is made of; an error says why none is made.
///
/// A cloud may shut the machine down for its image, so that a job on the node stands in the way, unless `force` is set.
pub fn snapshot_source<'w>(
    node: &NodeName,
    force: bool,
    world: World<'w>,
) -> Result<&'w Instance, String> {
    let instance = match world.fleet.standing(node).here[..] {
        [instance] => instance,
        [] => return Err(format!("{node} has no machine; start it first")),
        ref several => return Err(format!("{node} has {} machines; see reconcile", several.len())),
    };
    let why = match world.job_on(node) {
        _ if force => return Ok(instance),
        _ if world.slurm.is_none() => Refusal::NoSlurm,
        Some(job) => Refusal::Job(job.id),
        None if world.is_busy(node) => Refusal::InUse,
        None => return Ok(instance),
    };
    Err(format!(
        "{node}: {why}, and the machine may be shut down while its image is made; drain the node (scontrol update \
         nodename={node} state=drain reason=image) and wait for its jobs, or use --force"
    ))
}
