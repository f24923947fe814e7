//! Cloud, Slurm and slurm.conf compared.

mod drain_full_pool;
mod node;
mod replace;
mod sightings;

pub use sightings::Sightings;

use super::deploy::with_files;
use super::stop::is_theirs;
use super::unapplied::unapplied;
use super::{
    Finding, FindingKind, Handling, MachineStep, Notification, Operation, Plan, Stage, Step,
    bring_up::ids,
};
use crate::order::by_number;
use crate::site::Pool;
use crate::time::is_ahead;
use crate::world::World;
use cloud_core::Instance;
use drain_full_pool::Shut;
use hostlist::NodeName;
use slurmctl::{Reason, Reservation};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

/// Plans what makes cloud, Slurm and slurm.conf agree again, and remembers what was seen.
///
/// | found | done |
/// |---|---|
/// | instance of a node that neither slurm.conf nor slurmctld has, or that Slurm has powered down | terminated |
/// | stopped instance of a powered-down node that its next start would not use | terminated |
/// | node that slurmctld has and slurm.conf has not, or the other way round | reported |
/// | node that does not answer, without an instance that could be it | returned to Slurm |
/// | node that answers, without one | reported |
/// | node on its way up without one, for five minutes, or for longer than a start may take if one is on its way out or broken | returned to Slurm |
/// | node down because it does not answer, its instance running | returned to Slurm; reported if it is persistent |
/// | failed instance beside one that works | terminated |
/// | several instances that could be the node | reported |
/// | node down and powered down, for no lasting reason | returned to service after its rest |
/// | node asleep whose every place cools down, that rests after a start, or whose instance somebody has in hand, where its partition has others | drained until that is over |
/// | address in Slurm not the instance's | reported to Slurm, if the node does not answer |
/// | image not the configured one | reported |
/// | node that we drained, and have let go of | undrained, if it could run a job or is elastic |
/// | node whose machine has failed its health check (`state=FAIL`, or a reason as health checks give) | drained, and its place remembered: the second bad machine in a day closes it |
/// | node that is drained until its machine is replaced | returned to Slurm as soon as no job runs there |
/// | reservation of ours for the maintenance of a machine that is gone | deleted |
/// | node that somebody else drained or set down | reported |
/// | instance in a state that we do not know, as one being rescued | reported, and its node left alone |
/// | node that Slurm reboots, or is to reboot | left alone: Slurm says itself if it does not come back |
///
/// Whatever ends an instance or a job, or has a node take jobs again, is done only when it was seen
/// before, by an earlier run, and never to an instance that is younger than the grace; what ends
/// nothing, as an address set right or a rest that is over, is done at first sight. If the listing is not complete, or slurmctld
/// does not answer, nothing is done and nothing forgotten.
#[must_use]
pub fn reconcile(before: &Sightings, world: World<'_>) -> (Plan, Sightings) {
    let mut plan = Plan::new(Operation::Reconcile);
    if let Some(text) = blind(world) {
        let text = text.to_owned();
        let (kind, handling) = (FindingKind::Blind, Handling::Reported);
        plan.findings.push(Finding { kind, node: None, instances: Vec::new(), text, handling });
        return (plan, before.clone());
    }
    let unapplied = unapplied(None, world);
    let named = world.conf.nodes().into_iter().chain(world.fleet.nodes());
    let nodes = by_number(named.chain(unapplied.left.iter().cloned()));
    let mut comparison = Comparison {
        world,
        before,
        full: drain_full_pool::full(world),
        drains: BTreeMap::new(),
        seen: Sightings::default(),
        bad: BTreeMap::new(),
        notes: Vec::new(),
        steps: Vec::new(),
        findings: Vec::new(),
    };
    for node in &nodes {
        comparison.node(node);
    }
    for node in &unapplied.missing {
        comparison.missing(node);
    }
    comparison.nameless();
    comparison.drain_full();
    plan.findings = comparison.findings;
    let ends = comparison.steps.iter().any(|step| !step.instances().is_empty());
    let plan = plan
        .stage(Stage::new("repair", comparison.steps))
        .stage(Stage::new("remember", comparison.notes));
    (if ends { with_files(plan, world) } else { plan }, comparison.seen)
}

/// Adds to a plan the end of our reservations for the maintenance of machines that are gone: the next machine of the
/// node is another.
#[must_use]
pub(crate) fn without_reservations(
    mut plan: Plan,
    reservations: &[Reservation],
    world: World<'_>,
) -> Plan {
    if blind(world).is_some() {
        return plan;
    }
    let is_gone = |node: &NodeName| {
        let asleep =
            |known: &slurmctl::Node| known.state.is_powered_down() && !known.state.is_powering_up();
        world.node(node).is_none_or(asleep) && world.fleet.standing(node).here.is_empty()
    };
    let over: Vec<NodeName> =
        reservations.iter().map(|it| &it.node).filter(|node| is_gone(node)).cloned().collect();
    let found = |node: &NodeName| Finding {
        kind: FindingKind::Reserved,
        node: Some(node.clone()),
        instances: Vec::new(),
        text: "its machine is gone".to_owned(),
        handling: Handling::Repaired,
    };
    plan.findings.extend(over.iter().map(found));
    let steps = over.into_iter().map(|node| Step::notify([node], Notification::ReleaseReservation));
    plan.stage(Stage::new("reservations", steps.collect()))
}

fn blind(world: World<'_>) -> Option<&'static str> {
    if !world.fleet.is_complete() {
        return Some("cannot list cloud machines; no repairs attempted");
    }
    world.slurm.is_none().then_some("slurmctld does not answer; no repairs attempted")
}

/// A comparison half done.
struct Comparison<'a> {
    world: World<'a>,
    before: &'a Sightings,
    /// Nodes that cannot be had for now, where others can, and why.
    full: BTreeMap<NodeName, Shut>,
    /// Those of them that are to be drained, by the reason.
    drains: BTreeMap<Reason, Vec<NodeName>>,
    seen: Sightings,
    /// Pools that have yielded bad machines, as this comparison has found.
    bad: BTreeMap<Pool, SystemTime>,
    /// What is remembered of them.
    notes: Vec<Step>,
    steps: Vec<Step>,
    findings: Vec<Finding>,
}

/// Something found about a node, before it is decided whether anything is done.
struct Found<'a> {
    kind: FindingKind,
    node: &'a NodeName,
    instances: Vec<&'a Instance>,
    text: String,
}

impl Comparison<'_> {
    /// Notes what is only reported.
    fn report(&mut self, found: Found<'_>) {
        self.note(found, Handling::Reported);
    }

    /// Does the step now.
    fn repair(&mut self, found: Found<'_>, step: Step) {
        self.steps.push(step);
        self.note(found, Handling::Repaired);
    }

    /// Does the step if all this was seen before, long enough ago, and no instance is too young.
    fn repair_if_seen(&mut self, found: Found<'_>, patience: Duration, step: Step) {
        let subject = found
            .instances
            .iter()
            .fold(found.node.to_string(), |text, instance| format!("{text} {}", instance.id));
        let first = self.sight(found.kind, subject);
        let age = self.world.now.duration_since(first).unwrap_or_default();
        let young = found.instances.iter().any(|instance| self.is_young(instance, age));
        if age.is_zero() || age < patience || young {
            self.note(found, Handling::Watched);
        } else {
            self.repair(found, step);
        }
    }

    /// Remembers that it is seen, and says since when; not since a time that a clock that was ahead
    /// has written down, which would stay the first for ever.
    fn sight(&mut self, kind: FindingKind, subject: String) -> SystemTime {
        let now = self.world.now;
        let first = self.before.first(kind, &subject).map_or(now, |first| first.min(now));
        self.seen.see(kind, subject, first);
        first
    }

    /// True if the instance is younger than the grace, as far as that is known. One of which the cloud does not say when it
    /// was made is as old as we have seen it, and so is one that was made in the future, because our clock is behind.
    fn is_young(&self, instance: &Instance, seen: Duration) -> bool {
        let now = self.world.now;
        let made = instance.created.filter(|made| !is_ahead(*made, now));
        let age = made.map_or(seen, |made| now.duration_since(made).unwrap_or_default());
        age < self.world.site.policies.grace
    }

    fn note(&mut self, found: Found<'_>, handling: Handling) {
        let Found { kind, node, instances, text } = found;
        let (node, instances) = (Some(node.clone()), ids(&instances));
        self.findings.push(Finding { kind, node, instances, text, handling });
    }

    /// One step for all nodes with the same reason.
    fn drain_full(&mut self) {
        let drains = std::mem::take(&mut self.drains).into_iter();
        // Nobody asked for this drain.
        let drain = |reason| Notification::Drain { reason, only_asleep: true };
        self.steps.extend(drains.map(|(reason, nodes)| Step::notify(nodes, drain(reason))));
    }

    /// Instances with our tags that are no node's.
    fn nameless(&mut self) {
        let world = self.world;
        let mut ended = BTreeSet::new();
        for instance in world.fleet.nameless().iter().filter(|known| !known.state.is_leaving()) {
            let kind = FindingKind::Orphan;
            let subject = instance.id.to_string();
            let first = self.sight(kind, subject);
            let age = world.now.duration_since(first).unwrap_or_default();
            let handling = if is_theirs(instance) {
                Handling::Reported
            } else if first < world.now && !self.is_young(instance, age) {
                ended.insert(instance.id.clone());
                Handling::Repaired
            } else {
                Handling::Watched
            };
            let (instances, text) = (vec![instance.id.clone()], "of no node".to_owned());
            self.findings.push(Finding { kind, node: None, instances, text, handling });
        }
        if !ended.is_empty() {
            self.steps.push(Step::Machine(MachineStep::TerminateNameless {
                ids: ended.into_iter().collect(),
            }));
        }
    }
}
