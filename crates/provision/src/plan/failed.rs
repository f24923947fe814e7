//! Nodes that never came up.

use super::{
    Notification, Operation, Plan, Refusal, ReportStep, Stage, Step, Why, deploy::with_files, stop,
};
use crate::cause::Cause;
use crate::cooldown::Cooldown;
use crate::order::by_number;
use crate::world::World;
use hostlist::NodeName;

/// Plans what follows when Slurm has given up waiting for nodes.
///
/// Slurm calls nobody else for them, so their instances are removed here. They stay down for a rest,
/// so that a node that cannot boot is not launched again and again; reconciliation returns them to
/// service when it is over. Without a cool-down they are returned at once. A node that came up after
/// all, or that is on its way up again, is left alone.
///
/// The machine of a node that is not elastic stays, whatever Slurm says: it was there before, and a
/// rebuild that Slurm did not wait long enough for has brought us here. Its node stays down, too.
#[must_use]
pub fn failed(nodes: &[NodeName], world: World<'_>) -> Plan {
    let (mut remove, mut back, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for node in by_number(nodes.iter().cloned()) {
        if world.conf.get(&node).is_none() {
            remove.push(Step::refuse(node, Refusal::NotInSlurmConf));
            continue;
        }
        if let Some(why) = recovered(&node, world) {
            remove.push(Step::Report(ReportStep::Nothing { node, why }));
            continue;
        }
        if is_persistent(&node, world) {
            remove.push(Step::refuse(node, Refusal::Persistent));
            continue;
        }
        remove.push(stop::end(&node, world));
        if world.site.policies.cooldown.is_zero() {
            back.push(Step::notify([node], Notification::ReturnToService));
        } else {
            after.extend(rest(node, world));
        }
    }
    // What could not be ended must not be taken by the next start: it never booted.
    let plan = Plan::new(Operation::Failed)
        .stage(Stage::new("remove", remove))
        .stage(Stage::new("return to service", back))
        .stage(Stage::new("rest", after).begun(super::Begin::Always));
    with_files(plan, world)
}

/// True for a persistent node with a machine: it stays, however long Slurm has waited.
fn is_persistent(node: &NodeName, world: World<'_>) -> bool {
    let persistent = world.conf.get(node).is_some_and(|def| !def.is_cloud());
    persistent && !world.fleet.standing(node).here.is_empty()
}

fn recovered(node: &NodeName, world: World<'_>) -> Option<Why> {
    let state = &world.node(node)?.state;
    if state.is_powering_up() && !state.is_down() {
        return Some(Why::UnderWay);
    }
    (state.is_up() || stop::runs_job(state)).then_some(Why::CameUp)
}

/// The rest that the node takes, unless it takes one already. One from before Slurm gave up is for what was then.
fn rest(node: NodeName, world: World<'_>) -> Option<Step> {
    let pause = world.site.policies.cooldown;
    let since = world.node(&node).and_then(|known| known.reason.as_ref()?.at);
    let is_of_now =
        |rest: &Cooldown| rest.lasts(world.now) && since.is_none_or(|since| since <= rest.opened);
    if world.cooldowns.resting(&node).is_some_and(is_of_now) {
        return None;
    }
    let until = world.now.checked_add(pause).unwrap_or(world.now);
    Some(Step::Report(ReportStep::Rest { node, cause: Cause::NeverRegistered, until }))
}
