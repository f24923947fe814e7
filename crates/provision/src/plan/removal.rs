//! Nodes that leave slurm.conf: drained, ended, and confirmed gone.

use super::{
    Begin, Plan, Refusal, Stage, Step,
    hold::{drain_reason, ours},
    table::ids,
};
use crate::world::{Standing, World};
use hostlist::NodeName;
use std::time::Duration;

/// The steps by which nodes leave; empty if none has an instance and none could get a job.
#[derive(Default)]
pub(super) struct Removal {
    drain: Vec<Step>,
    wait: Vec<Step>,
    undrain: Vec<Step>,
    terminate: Vec<Step>,
    gone: Vec<Step>,
}

impl Removal {
    /// Adds the stages to a plan; nothing of them is begun if something before went wrong, and
    /// nothing is ended if the jobs do not.
    pub(super) fn stages(self, plan: Plan) -> Plan {
        plan.stage(
            Stage::new("drain", self.drain).begun(Begin::IfAllWell).or_undo(self.undrain.clone()),
        )
        .stage(Stage::new("wait for jobs", self.wait).begun(Begin::IfAllWell).or_undo(self.undrain))
        .stage(Stage::new("terminate", self.terminate).begun(Begin::IfAllWell))
        .stage(Stage::new("confirm", self.gone))
    }
}

/// How nodes leave, highest number first, or why they must not.
///
/// With `force`, running jobs are not waited for, and a slurmctld that does not answer is no
/// hindrance.
pub(super) fn removal(
    nodes: &[NodeName],
    patience: Duration,
    why: &str,
    force: bool,
    world: World<'_>,
) -> Result<Removal, Vec<Step>> {
    let refuse = |node: &NodeName, why| Step::Refuse { node: node.clone(), why };
    if !nodes.is_empty() && !world.fleet.is_complete() {
        return Err(nodes.iter().map(|node| refuse(node, Refusal::IncompleteListing)).collect());
    }
    if !nodes.is_empty() && world.slurm.is_none() && !force {
        return Err(nodes.iter().map(|node| refuse(node, Refusal::NoSlurm)).collect());
    }
    let mut removal = Removal::default();
    let (mut drain, mut undrain, mut wait) = (Vec::new(), Vec::new(), Vec::new());
    for node in nodes.iter().rev() {
        let Standing { here, leaving } = world.fleet.standing(node);
        // Also where there is no machine: Slurm must not start one now.
        if let Some(known) = world.node(node) {
            if !known.state.has_drain() {
                drain.push(node.clone());
            }
            // What a run before us drained, and did not come to undrain, is ours as well.
            if !known.state.has_drain() || ours(known) {
                undrain.push(node.clone());
            }
            if !known.state.is_drained() {
                wait.push(node.clone());
            }
        }
        if !here.is_empty() {
            removal.terminate.push(Step::Terminate { node: node.clone(), ids: ids(&here) });
        }
        let all = [here, leaving].concat();
        if !all.is_empty() {
            removal.gone.push(Step::WaitGone { node: node.clone(), ids: ids(&all) });
        }
    }
    if !drain.is_empty() {
        removal.drain.push(Step::Drain { nodes: drain, reason: drain_reason(why) });
    }
    if !undrain.is_empty() {
        removal.undrain.push(Step::Undrain { nodes: undrain });
    }
    if !wait.is_empty() && !force {
        removal.wait.push(Step::WaitDrained { nodes: wait, deadline: patience });
    }
    Ok(removal)
}
