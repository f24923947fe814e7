//! Nodes that are to be there always, and whose machine is not.

use super::{Refusal, ReportStep, Step, Why, bring_up::bring_up_as, reasons::held};
use crate::world::{Roster, World};
use hostlist::NodeName;

/// The steps that bring up those of the nodes that have no machine, by their lines in `conf`.
///
/// A node that Slurm has in service, or that somebody is at work on, has a machine that we do not know: none is launched
/// beside it. Nor is one for a node that an administrator holds, which is said.
pub(super) fn absent(nodes: &[NodeName], conf: &Roster<'_>, world: World<'_>) -> Vec<Step> {
    let gone = nodes.iter().filter(|node| world.fleet.standing(node).here.is_empty());
    gone.filter_map(|node| step(node, conf, world)).collect()
}

fn step(node: &NodeName, conf: &Roster<'_>, world: World<'_>) -> Option<Step> {
    let refuse = |why| Step::refuse(node.clone(), why);
    if world.slurm.is_none() {
        return Some(refuse(Refusal::NoSlurm));
    }
    if let Some(reason) = world.node(node).and_then(held) {
        return Some(Step::Report(ReportStep::Nothing {
            node: node.clone(),
            why: Why::Held(reason),
        }));
    }
    if is_in_use(node, world) {
        return None;
    }
    let def = conf.get(node).ok_or(Refusal::NotInSlurmConf);
    Some(def.and_then(|def| bring_up_as(node, def, world)).unwrap_or_else(refuse))
}

/// True if Slurm speaks for a machine, or for somebody who brings one up or takes one down.
fn is_in_use(node: &NodeName, world: World<'_>) -> bool {
    let at_work = |known: &slurmctl::Node| {
        let state = &known.state;
        state.is_up()
            || state.is_powering_up()
            || state.is_power_up_requested()
            || state.is_powering_down()
            || state.is_power_down_requested()
            || state.is_powered_down()
            || state.is_reboot_requested()
            || state.is_reboot_issued()
    };
    world.is_busy(node) || world.node(node).is_some_and(at_work)
}
