//! Nodes that leave slurm.conf: drained, ended, and confirmed gone.

use super::{
    Begin, MachineStep, Notification, Plan, Refusal, SlurmStep, Stage, Step, Still,
    bring_up::ids,
    reasons::{drain_reason, is_drained_by_us},
};
use crate::cause::Cause;
use crate::world::{Standing, World};
use hostlist::NodeName;
use slurmctl::Node;
use std::time::Duration;

/// Time to check that a node has no job after Slurm has lifted its drain and it was drained again.
const RECHECK: Duration = Duration::from_secs(30);

/// The steps by which nodes leave; empty if none has an instance and Slurm has none, or has drained
/// them all.
#[derive(Default)]
pub(super) struct Removal {
    drain: Vec<Step>,
    wait: Vec<Step>,
    requeue: Vec<Step>,
    undrain: Vec<Step>,
    terminate: Vec<Step>,
    gone: Vec<Step>,
    wait_again: Vec<Step>,
}

impl Removal {
    /// Adds the end of a node's machines.
    fn end(&mut self, node: &NodeName, world: World<'_>) {
        let Standing { here, leaving } = world.fleet.standing(node);
        if !here.is_empty() {
            self.terminate.push(Step::Machine(MachineStep::Terminate {
                node: node.clone(),
                ids: ids(&here),
            }));
        }
        let all = [here, leaving].concat();
        if !all.is_empty() {
            self.gone
                .push(Step::Machine(MachineStep::WaitGone { node: node.clone(), ids: ids(&all) }));
        }
    }

    /// Adds the stages to a plan; nothing of them is begun if something before went wrong, and
    /// nothing is ended if the jobs do not. What is launched besides comes when the jobs have ended:
    /// that may take a day, and may be in vain. Machines take minutes, in which Slurm may suspend a node and lift
    /// its drain: a job that got it then is waited for as well.
    pub(super) fn stages(self, plan: Plan, launch: Vec<Step>) -> Plan {
        let Self { drain, wait, requeue, undrain, terminate, gone, wait_again } = self;
        let takes_time = !launch.is_empty() || !gone.is_empty();
        let wait_again = if takes_time { wait_again } else { Vec::new() };
        let stage = |what, steps| Stage::new(what, steps).begun(Begin::IfAllWell);
        plan.stage(stage("drain", drain).or_undo(undrain.clone()))
            .stage(stage("wait for jobs", wait).or_undo(undrain.clone()))
            .stage(stage("requeue jobs", requeue).or_undo(undrain.clone()))
            .stage(stage("launch", launch).or_undo(undrain))
            .stage(stage("terminate", terminate))
            .stage(Stage::new("confirm", gone))
            .stage(stage("wait for jobs again", wait_again))
    }
}

/// How nodes leave, highest number first, or why they must not.
///
/// With `force`, running jobs are not waited for, and a slurmctld that does not answer is no
/// hindrance. Jobs on elastic nodes are requeued first: a job whose node leaves slurm.conf ends for
/// good.
pub(super) fn removal(
    nodes: &[NodeName],
    patience: Duration,
    why: &str,
    force: bool,
    world: World<'_>,
) -> Result<Removal, Vec<Step>> {
    let refuse = |node: &NodeName, why| Step::refuse(node.clone(), why);
    if !nodes.is_empty() && !world.fleet.is_complete() {
        return Err(nodes.iter().map(|node| refuse(node, Refusal::IncompleteListing)).collect());
    }
    if !nodes.is_empty() && world.slurm.is_none() && !force {
        return Err(nodes.iter().map(|node| refuse(node, Refusal::NoSlurm)).collect());
    }
    let mut removal = Removal::default();
    nodes.iter().rev().for_each(|node| removal.end(node, world));
    // Also where there is no machine: Slurm must not start one now.
    let nodes_where = |wanted: fn(&Node) -> bool| -> Vec<NodeName> {
        let known = nodes.iter().rev().filter(|node| world.node(node).is_some_and(wanted));
        known.cloned().collect()
    };
    removal.drain = of(nodes_where(|node| !node.state.has_drain()), |nodes| {
        Step::notify(nodes, Notification::Drain { reason: drain_reason(why), only_asleep: false })
    });
    // Also what an earlier run drained and did not undrain.
    let undrain = nodes_where(|node| !node.state.has_drain() || is_drained_by_us(node));
    removal.undrain = of(undrain, |nodes| Step::notify(nodes, Notification::Undrain));
    if force {
        removal.requeue = nodes.iter().rev().filter_map(|node| requeue(node, why, world)).collect();
    } else {
        // While one is waited for, all are watched: Slurm lifts the drain of those that it suspends.
        let ready = nodes_where(|node| !node.state.is_drained()).is_empty();
        let wait = |deadline| {
            let reason = drain_reason(why);
            of(nodes_where(|_| true), |nodes| {
                Step::Slurm(SlurmStep::WaitDrained { nodes, reason, deadline })
            })
        };
        removal.wait = if ready { Vec::new() } else { wait(patience) };
        removal.wait_again = wait(patience.max(RECHECK));
    }
    Ok(removal)
}

/// How Slurm is made to requeue the jobs of a node that it can power down.
fn requeue(node: &NodeName, why: &str, world: World<'_>) -> Option<Step> {
    let elastic = world.node(node)?.state.is_cloud();
    // The reason of the drain stays, so that later runs recognize it.
    (elastic && world.is_busy(node)).then(|| {
        let (cause, reason) = (Cause::Cancelled, drain_reason(why));
        let what = Notification::ReturnToSlurm { still: Still::On, cause, reason };
        Step::notify([node.clone()], what)
    })
}

/// The step for these nodes, if there are any.
fn of(nodes: Vec<NodeName>, step: impl FnOnce(Vec<NodeName>) -> Step) -> Vec<Step> {
    if nodes.is_empty() { Vec::new() } else { vec![step(nodes)] }
}
