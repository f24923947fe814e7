//! What a node's instances mean for its start.

use super::{Clear, MachineStep, Refusal, Step, warm};
use crate::policies::Stopped;
use crate::world::{Standing, World};
use cloud_core::{Instance, InstanceId, InstanceState, Reboot};
use hostlist::NodeName;
use slurmconf::NodeDef;

/// The step that brings a node up, whatever cools down.
///
/// | instances | step |
/// |---|---|
/// | none, or gone | launch |
/// | on their way out | wait until they are gone, launch |
/// | one pending or running | adopt |
/// | one running that booted before Slurm asked | terminate, launch: Slurm would wait for another; of a node that is not elastic, reboot |
/// | failed, and nothing else | terminate, launch |
/// | one stopped or stopping | start it if it was kept warm and is as a launch would make it, or if the policy is to and it was not kept; else terminate, launch |
/// | one in a state that we do not know | refuse |
/// | two or more | refuse |
pub(super) fn bring_up(node: &NodeName, world: World<'_>) -> Result<Step, Refusal> {
    let def = world.conf.get(node).ok_or(Refusal::NotInSlurmConf)?;
    bring_up_as(node, def, world)
}

/// Plans a node that slurm.conf is yet to have, by its definition.
pub(super) fn bring_up_as(
    node: &NodeName,
    def: &NodeDef,
    world: World<'_>,
) -> Result<Step, Refusal> {
    let Standing { here, leaving } = world.fleet.standing(node);
    let leaving = leaving.into_iter().map(|instance| Clear::AwaitGone(instance.id.clone()));
    let launch = |broken: &[&Instance]| {
        let broken = broken.iter().map(|instance| Clear::Terminate(instance.id.clone()));
        launch(node, def, broken.chain(leaving.clone()).collect(), world)
    };
    if here.iter().all(|instance| instance.state == InstanceState::Failed) {
        return launch(&here);
    }
    let [one] = here[..] else {
        return Err(Refusal::Duplicates(ids(&here)));
    };
    let old = super::old_machine::is_too_old(node, one, world);
    if old && def.is_cloud() && world.fleet.is_complete() {
        return launch(&[one]);
    }
    let (node, id) = (node.clone(), one.id.clone());
    if old && !def.is_cloud() {
        // What is on it is to last, and Slurm believes in any machine that booted since it asked.
        return Ok(Step::Machine(MachineStep::Reboot { node, id, how: Reboot::Soft }));
    }
    match (&one.state, world.site.policies.stopped) {
        // An address before it runs says nothing: it may fail yet, as Nova's do for lack of room.
        (InstanceState::Pending, _) => {
            Ok(Step::Machine(MachineStep::Adopt { node, id, address: None }))
        }
        (InstanceState::Running, _) => {
            Ok(Step::Machine(MachineStep::Adopt { node, id, address: one.address }))
        }
        (InstanceState::Stopping | InstanceState::Stopped, policy) => {
            match (warm::current(&node, one, world), policy) {
                (None, Stopped::Replace) => launch(&[one]),
                (None, Stopped::Start) if warm::is_warm(&node, world) => launch(&[one]),
                (otherwise, _) => {
                    Ok(Step::Machine(MachineStep::StartStopped { node, id, otherwise }))
                }
            }
        }
        (
            InstanceState::Failed
            | InstanceState::Terminating
            | InstanceState::Terminated
            | InstanceState::Other(_),
            _,
        ) => Err(Refusal::Busy { id, state: one.state.clone() }),
    }
}

/// A launch; never on a listing that may hide an instance.
fn launch(
    node: &NodeName,
    def: &NodeDef,
    first: Vec<Clear>,
    world: World<'_>,
) -> Result<Step, Refusal> {
    if !world.fleet.is_complete() {
        return Err(Refusal::IncompleteListing);
    }
    Ok(Step::Machine(MachineStep::Launch {
        wanted: world.site.wanted(node, def)?,
        first,
        reports_address: true,
    }))
}

pub(super) fn ids(instances: &[&Instance]) -> Vec<InstanceId> {
    instances.iter().map(|instance| instance.id.clone()).collect()
}
