//! Nodes whose machines would be more than may be spent, or more than there may be.

use super::{Clear, JobGroup, MachineStep, Refusal, Step, warm};
use crate::budget::{Allowance, renewal, standing};
use crate::cause::Cause;
use crate::policies::OnPartial;
use crate::site::Wanted;
use crate::time::Utc;
use crate::world::World;
use cloud_core::Instance;
use history::cost::Spending;
use history::millis;
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};

/// Why nodes cannot come up, by node.
pub(super) type Lost = BTreeMap<NodeName, (Cause, String)>;

/// What nodes need to come up, or why they cannot.
pub(super) type Steps<'a> = BTreeMap<&'a NodeName, Result<Step, Refusal>>;

/// The nodes to launch that the budget or `max_nodes` has no room for, besides those that are lost already.
///
/// A job's nodes fit together or not at all, unless the policy is to keep a part. Nodes that Slurm powers up and that
/// have no machine yet are in the hands of other calls, and count as if they had one.
pub(super) fn no_room(
    groups: &[JobGroup],
    steps: &Steps<'_>,
    lost: &Lost,
    world: World<'_>,
) -> Lost {
    let mut refused = Lost::new();
    if world.site.allowance.is_none() && world.site.policies.max_nodes.is_none() {
        return refused;
    }
    let launches: BTreeMap<&NodeName, Launched<'_>> = steps
        .iter()
        .filter(|(node, _)| !lost.contains_key(**node))
        .filter_map(|(node, step)| Some((*node, launched(step.as_ref().ok()?)?)))
        .collect();
    let mut room = Room::new(steps, world);
    for unit in units(groups, &launches, world) {
        let machines: Vec<Launched<'_>> =
            unit.iter().filter_map(|node| launches.get(node).copied()).collect();
        if let Err(why) = room.take(&machines) {
            refused.extend(unit.into_iter().map(|node| (node.clone(), why.clone())));
        }
    }
    refused
}

/// Refuses launches of persistent nodes, new ones and `absent` ones, that the budget or `max_nodes` has no room for.
pub(super) fn refuse_above(
    new: &mut [(NodeName, Result<Step, Refusal>)],
    absent: &mut [Step],
    world: World<'_>,
) {
    let again =
        absent.iter().filter_map(|step| Some((&launched(step)?.wanted.node, Ok(step.clone()))));
    let steps: Steps<'_> =
        new.iter().map(|(node, step)| (node, step.clone())).chain(again).collect();
    let lost = no_room(&[], &steps, &Lost::new(), world);
    drop(steps);
    let why = |node: &NodeName| lost.get(node).map(|(_, text)| Refusal::NoRoom(text.clone()));
    for (node, step) in new {
        if let Some(why) = why(node) {
            *step = Err(why);
        }
    }
    for step in absent {
        let refused = launched(step)
            .and_then(|Launched { wanted, .. }| Some((wanted.node.clone(), why(&wanted.node)?)));
        if let Some((node, why)) = refused {
            *step = Step::refuse(node, why);
        }
    }
}

/// A machine that is launched, and how many that run are terminated for it.
#[derive(Clone, Copy)]
struct Launched<'a> {
    wanted: &'a Wanted,
    replaces: usize,
}

/// What a step launches.
fn launched(step: &Step) -> Option<Launched<'_>> {
    match step {
        Step::Machine(MachineStep::Launch { wanted, first, .. }) => {
            let replaces = first.iter().filter(|it| matches!(it, Clear::Terminate(_))).count();
            Some(Launched { wanted, replaces })
        }
        Step::Machine(MachineStep::StartStopped { otherwise: Some(wanted), .. }) => {
            Some(Launched { wanted, replaces: 0 })
        }
        Step::Machine(_) | Step::Slurm(_) | Step::File(_) | Step::Report(_) => None,
    }
}

/// The nodes to launch, in groups that fit together or not at all.
fn units<'a>(
    groups: &'a [JobGroup],
    launches: &BTreeMap<&'a NodeName, Launched<'_>>,
    world: World<'_>,
) -> Vec<Vec<&'a NodeName>> {
    let mut taken: BTreeSet<&NodeName> = BTreeSet::new();
    let mut units: Vec<Vec<&NodeName>> = Vec::new();
    if world.site.policies.on_partial == OnPartial::Release {
        for group in groups {
            let nodes = group.nodes.iter().filter(|node| launches.contains_key(node));
            units.push(nodes.filter(|node| taken.insert(node)).collect());
        }
    }
    units.extend(
        launches.keys().copied().filter(|node| !taken.contains(node)).map(|node| vec![node]),
    );
    units.retain(|unit| !unit.is_empty());
    units
}

/// What may still be launched.
struct Room<'a> {
    world: World<'a>,
    spending: Spending,
    machines: usize,
}

impl<'a> Room<'a> {
    /// What is left besides the machines that run, and those that other calls launch at this moment.
    fn new(steps: &Steps<'_>, world: World<'a>) -> Self {
        let is_kept = |instance: &Instance| {
            let node = world.site.identity.node_of(instance);
            node.is_some_and(|node| warm::is_kept(&node, instance, world))
        };
        let runs = |instance: &&Instance| !instance.state.is_leaving() && !is_kept(instance);
        let live = world.fleet.instances().filter(runs).count();
        let spending = world.spending.unwrap_or_default();
        let mut room = Self { world, spending, machines: live };
        for (node, known) in world.slurm.into_iter().flatten() {
            let empty = world.fleet.standing(node).here.is_empty();
            if known.state.is_powering_up() && empty && !steps.contains_key(node) {
                room.machines += 1;
                let allowance = world.site.allowance.as_ref();
                if let (Some(allowance), Ok(wanted)) = (allowance, world.wanted(node)) {
                    room.spending =
                        room.with(allowance, [&wanted].into_iter()).unwrap_or(room.spending);
                }
            }
        }
        room
    }

    /// Makes room for nodes, or says why there is none.
    fn take(&mut self, launched: &[Launched<'_>]) -> Result<(), (Cause, String)> {
        let replaced: usize = launched.iter().map(|launched| launched.replaces).sum();
        let machines = (self.machines + launched.len()).saturating_sub(replaced);
        let policies = &self.world.site.policies;
        if let Some(most) = policies.max_nodes.filter(|most| machines > *most) {
            let text = format!("max_nodes: {} of {most} machines run or start", self.machines);
            return Err((Cause::MaxNodes, text));
        }
        if let Some(allowance) = &self.world.site.allowance {
            let spending = self.with(allowance, launched.iter().map(|it| it.wanted))?;
            if allowance.budget.exceeded(spending).is_some() {
                return Err((Cause::Budget, self.no_money(allowance, spending)));
            }
            self.spending = spending;
        }
        self.machines = machines;
        Ok(())
    }

    /// What is spent with the first hour of these nodes.
    fn with<'w>(
        &self,
        allowance: &Allowance,
        wanted: impl Iterator<Item = &'w Wanted>,
    ) -> Result<Spending, (Cause, String)> {
        let now = millis(self.world.now);
        let mut spending = self.spending;
        for node in wanted {
            let price = allowance.dearest(&node.places).map_err(|shape| {
                (
                    Cause::Budget,
                    format!("{shape} has no price, and a budget is set; add it to prices.yaml"),
                )
            })?;
            spending = spending.plus(Spending::of_launch(price, now));
        }
        Ok(spending)
    }

    fn no_money(&self, allowance: &Allowance, wanted: Spending) -> String {
        let now = millis(self.world.now);
        // The limit that the launch would exceed; of one for the day and one for the month, the tighter.
        let Some(state) = allowance.budget.state(wanted, now) else {
            return "budget".to_owned();
        };
        let before = allowance.budget.state(self.spending, now).unwrap_or(state);
        let spent = standing(&before, &allowance.prices.currency);
        format!("budget: {spent}, next start {}", Utc(renewal(&state)))
    }
}
