//! Nodes that are to come up.

use super::deploy::with_files;
use super::{
    Begin, JobGroup, MachineStep, Notification, Operation, Plan, Refusal, ReportStep, Stage, Step,
    Still,
    bring_up::bring_up,
    budget::{Lost, Steps, no_room},
    reasons::reason_over,
};
use crate::cause::Cause;
use crate::cooldown::{Cooldown, Cooldowns, Gate};
use crate::explain;
use crate::order::by_number;
use crate::policies::OnPartial;
use crate::site::{Place, Pool};
use crate::world::World;
use cloud_core::Tags;
use hostlist::NodeName;
use slurmctl::JobId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// Plans the start of nodes.
///
/// What cannot be had is returned to Slurm first, with the reason, so that its jobs do not wait for the
/// rest: nodes whose every place cools down, nodes that we refuse, and, if the policy is to release,
/// nodes that only jobs want which cannot get all of theirs. A pool whose cool-down is over is tried
/// by one launch; the nodes that have nowhere else to go come in a stage of their own behind it.
#[must_use]
pub fn start(nodes: &[NodeName], jobs: &[JobGroup], world: World<'_>) -> Plan {
    let nodes = by_number(nodes.iter().cloned());
    let groups = groups(&nodes, jobs);
    let steps: Steps<'_> = nodes.iter().map(|node| (node, bring_up(node, world))).collect();
    let mut lost = Lost::new();
    for (node, step) in &steps {
        if let Some(why) = hindrance(step, world) {
            lost.insert((*node).clone(), why);
        }
    }
    release(&groups, &mut lost, world);
    // What is not launched anyway costs nothing.
    lost.extend(no_room(&groups, &steps, &lost, world));
    let broken = release(&groups, &mut lost, world);
    let (now, behind) = launches(&nodes, &steps, &lost, (&groups, world));
    let mut plan = Plan::new(Operation::Start)
        .stage(Stage::new("return to slurm", return_to_slurm(&nodes, &lost, &broken, world)))
        .stage(Stage::new("start", now))
        .stage(Stage::new("behind the probe", behind));
    plan.groups = groups;
    let mut plan = with_files(plan, world);
    for stage in plan.stages.iter_mut().skip(1) {
        stage.begin = Begin::Together;
    }
    plan
}

/// The jobs that want nodes of this call, with these nodes only.
fn groups(nodes: &[NodeName], jobs: &[JobGroup]) -> Vec<JobGroup> {
    let asked: BTreeSet<&NodeName> = nodes.iter().collect();
    let narrowed = |job: &JobGroup| {
        let nodes = job.nodes.iter().filter(|node| asked.contains(node)).cloned();
        JobGroup::new(job.job, nodes).labelled(job.labels.clone())
    };
    let mut groups: Vec<JobGroup> = jobs.iter().map(narrowed).collect();
    groups.retain(|group| !group.nodes.is_empty());
    groups.sort_by_key(|group| group.job);
    groups
}

/// Why the node cannot come up now, if it cannot.
pub(super) fn hindrance(step: &Result<Step, Refusal>, world: World<'_>) -> Option<(Cause, String)> {
    match step {
        Err(refusal) => Some((Cause::Refused, refusal.to_string())),
        Ok(step) => {
            let (pool, cooldown) = all_cooling(&step.wanted()?.places, world.cooldowns, world.now)?;
            Some((Cause::Cooling, format!("{pool}: {cooldown}")))
        }
    }
}

/// If every place cools down, the one that is the first to be tried again.
pub(crate) fn all_cooling(
    places: &[Place],
    cooldowns: &Cooldowns,
    now: SystemTime,
) -> Option<(Pool, Cooldown)> {
    let mut soonest: Option<(Pool, Cooldown)> = None;
    for place in places {
        let Gate::Cooling(cooldown) = cooldowns.gate_of(place, now) else {
            return None;
        };
        let pool = place.pool();
        if soonest.as_ref().is_none_or(|(_, known)| cooldown.ends() < known.ends()) {
            soonest = Some((pool, cooldown));
        }
    }
    soonest
}

/// Adds the nodes of jobs that cannot get all of theirs, if the policy is to release them; gives these jobs.
fn release(groups: &[JobGroup], lost: &mut Lost, world: World<'_>) -> BTreeMap<JobId, Broken> {
    let broken = broken(groups, lost);
    if world.site.policies.on_partial == OnPartial::Release {
        let released = released(groups, &broken, lost);
        lost.extend(released);
    }
    broken
}

/// The node that a job cannot get, and why.
struct Broken {
    node: NodeName,
    why: String,
}

/// The jobs that cannot get all their nodes.
fn broken(groups: &[JobGroup], lost: &Lost) -> BTreeMap<JobId, Broken> {
    let reason = |group: &JobGroup| {
        let node = group.nodes.iter().find(|node| lost.contains_key(*node))?;
        let (_, why) = lost.get(node)?;
        Some((group.job, Broken { node: node.clone(), why: why.clone() }))
    };
    groups.iter().filter_map(reason).collect()
}

/// The nodes that could come up, but that only broken jobs want.
fn released(groups: &[JobGroup], broken: &BTreeMap<JobId, Broken>, lost: &Lost) -> Lost {
    let wanted_by_whole: BTreeSet<&NodeName> = groups
        .iter()
        .filter(|group| !broken.contains_key(&group.job))
        .flat_map(|group| &group.nodes)
        .collect();
    let mut released = BTreeMap::new();
    for group in groups {
        let Some(Broken { node, why }) = broken.get(&group.job) else {
            continue;
        };
        let text = format!("job {} cannot get all its nodes, {node}: {why}", group.job);
        for node in &group.nodes {
            if !lost.contains_key(node) && !wanted_by_whole.contains(node) {
                let why = (Cause::JobIncomplete, text.clone());
                released.entry(node.clone()).or_insert(why);
            }
        }
    }
    released
}

/// The nodes that are returned to Slurm, and the comments for the owners of broken jobs.
fn return_to_slurm(
    nodes: &[NodeName],
    lost: &Lost,
    broken: &BTreeMap<JobId, Broken>,
    world: World<'_>,
) -> Vec<Step> {
    let back = nodes.iter().filter_map(|node| {
        let (cause, why) = lost.get(node)?;
        back(node, *cause, why, world)
    });
    let comments = broken.iter().map(|(job, Broken { why, .. })| {
        Step::notify([], Notification::Comment(*job, explain::waits(*job, why)))
    });
    back.chain(comments).collect()
}

/// How a node that cannot be had is returned to Slurm; nothing if it was refused and Slurm does not wait for
/// it, as a refusal is a step of its own.
pub(super) fn back(node: &NodeName, cause: Cause, why: &str, world: World<'_>) -> Option<Step> {
    let waits = waits(node, world);
    let (node, reason) = (node.clone(), reason_over(why, world.node(node)));
    if waits {
        let still = Still::Awaited;
        return Some(Step::notify([node], Notification::ReturnToSlurm { still, cause, reason }));
    }
    (cause != Cause::Refused).then_some(Step::Report(ReportStep::GiveUp { node, cause, reason }))
}

/// True if Slurm waits for the node, or may do so.
fn waits(node: &NodeName, world: World<'_>) -> bool {
    match world.slurm {
        None => world.conf.get(node).is_some(),
        Some(slurm) => slurm.get(node).is_some_and(|known| known.state.is_powering_up()),
    }
}

/// The steps of all that is not lost, and of what has to wait for a probe.
fn launches(
    nodes: &[NodeName],
    steps: &Steps<'_>,
    lost: &Lost,
    (groups, world): (&[JobGroup], World<'_>),
) -> (Vec<Step>, Vec<Step>) {
    let mut labels = labels(groups);
    let (mut now, mut behind) = (Vec::new(), Vec::new());
    let mut probed: BTreeSet<Pool> = BTreeSet::new();
    for node in nodes {
        let step = match steps.get(node) {
            Some(Ok(step)) if !lost.contains_key(node) => step.clone(),
            // One outcome for a node: what Slurm waits for is returned to it, with the same words.
            Some(Err(_)) if waits(node, world) => continue,
            Some(Err(why)) => {
                now.push(Step::refuse(node.clone(), why.clone()));
                continue;
            }
            Some(Ok(_)) | None => continue,
        };
        let Step::Machine(MachineStep::Launch { mut wanted, first, reports_address }) = step else {
            now.push(step);
            continue;
        };
        let (places, waits) = choose(&wanted.places, &mut probed, world);
        wanted.places = places;
        wanted.labels = labels.remove(node).flatten().cloned().unwrap_or_default();
        let stage = if waits { &mut behind } else { &mut now };
        stage.push(Step::Machine(MachineStep::Launch { wanted, first, reports_address }));
    }
    (now, behind)
}

/// The labels of each node that one job wants; none where several want it.
fn labels(groups: &[JobGroup]) -> BTreeMap<&NodeName, Option<&Tags>> {
    let mut labels: BTreeMap<&NodeName, Option<&Tags>> = BTreeMap::new();
    for group in groups {
        for node in &group.nodes {
            labels.entry(node).and_modify(|labels| *labels = None).or_insert(Some(&group.labels));
        }
    }
    labels
}

/// The places that may be tried, and whether all of them wait for another launch's probe. Those that do come last: the
/// probe may open a pool that a place before them waits for, which is then closed.
fn choose(places: &[Place], probed: &mut BTreeSet<Pool>, world: World<'_>) -> (Vec<Place>, bool) {
    let gates = places.iter().map(|place| (place, world.cooldowns.gate_of(place, world.now)));
    let usable: Vec<(&Place, Gate)> =
        gates.filter(|(_, gate)| matches!(gate, Gate::Open | Gate::Probe)).collect();
    let is_free =
        |(place, gate): &&(&Place, Gate)| *gate == Gate::Open || !probed.contains(&place.pool());
    let (free, waiting): (Vec<_>, Vec<_>) = usable.iter().partition(is_free);
    let first_free = free.first().map(|(place, gate)| (place.pool(), gate.clone()));
    let chosen = free.into_iter().chain(waiting).map(|(place, _)| (*place).clone()).collect();
    let Some((pool, gate)) = first_free else {
        return (chosen, true);
    };
    if gate == Gate::Probe {
        probed.insert(pool);
    }
    (chosen, false)
}
