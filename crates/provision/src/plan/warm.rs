//! Warm machines: those of nodes with the feature `warm` are stopped when Slurm powers the node down, and started again
//! when it needs the node.

use super::{MachineStep, ReportStep, Step, Why};
use crate::site::Wanted;
use crate::world::{Standing, World};
use cloud_core::{Instance, InstanceState};
use hostlist::NodeName;
use slurmconf::Features;
use slurmctl::{Node, NodeReason, StateFlag};

/// What a launch of the node would request now, if its machine is to be kept and this instance is just that; its first
/// place is the one where the instance is.
pub(super) fn current(
    node: &NodeName,
    instance: &Instance,
    world: World<'_>,
) -> Option<Box<Wanted>> {
    let def = world.conf.get(node).filter(|def| def.is_cloud())?;
    let mut wanted = world.site.wanted(node, def).ok().filter(|wanted| wanted.warm)?;
    let here = wanted
        .places
        .iter()
        .position(|place| !place.preemptible && world.site.would_make(&wanted, place, instance))?;
    wanted.places.rotate_left(here);
    Some(Box::new(wanted))
}

/// True for a node whose machine is to be kept.
pub(super) fn is_warm(node: &NodeName, world: World<'_>) -> bool {
    let def = world.conf.get(node).filter(|def| def.is_cloud());
    def.and_then(|def| def.features.as_ref()).is_some_and(Features::is_warm)
}

/// The step for a node that Slurm powers down, if its machine is kept.
pub(super) fn stop(node: &NodeName, world: World<'_>) -> Option<Step> {
    let Standing { here, leaving } = world.fleet.standing(node);
    let ([one], []) = (&here[..], &leaving[..]) else { return None };
    world.node(node).filter(|known| is_fit(known))?;
    current(node, one, world)?;
    let node = node.clone();
    match one.state {
        InstanceState::Running => {
            Some(Step::Machine(MachineStep::Stop { node, id: one.id.clone() }))
        }
        InstanceState::Stopping | InstanceState::Stopped => {
            Some(Step::Report(ReportStep::Nothing { node, why: Why::Stopped }))
        }
        InstanceState::Pending
        | InstanceState::Terminating
        | InstanceState::Terminated
        | InstanceState::Failed
        | InstanceState::Other(_) => None,
    }
}

/// True if Slurm powers the node down for want of jobs alone: nobody took it out of service since its machine registered.
fn is_fit(known: &Node) -> bool {
    let state = &known.state;
    let registered_after = |at| known.slurmd_start.is_some_and(|start| start > at);
    let is_old = |reason: &NodeReason| reason.at.is_some_and(registered_after);
    let out_of_service = state.is_down() || state.has_drain() || state.has(&StateFlag::Fail);
    !out_of_service && known.reason.as_ref().is_none_or(is_old)
}

/// True for a stopped machine that the next start of its node uses.
pub(super) fn is_kept(node: &NodeName, instance: &Instance, world: World<'_>) -> bool {
    is_off(instance) && current(node, instance, world).is_some()
}

/// True for a machine that is stopped, or almost.
pub(super) fn is_off(instance: &Instance) -> bool {
    matches!(instance.state, InstanceState::Stopping | InstanceState::Stopped)
}
