//! An image for all nodes, a few at a time.

mod progress;
mod request;

pub use progress::RolloutProgress;
pub use request::{JobForm, Rollout, RolloutHow};

use super::reasons::{MISFIT, is_drained_by_us, is_misfit, not_back};
use super::{
    Notification, Operation, Plan, Refusal, ReportStep, Stage, Step, Why, bring_up, held, image_in,
};
use crate::world::{Standing, World};
use cloud_core::{ImageId, Instance, InstanceState};
use hostlist::NodeName;
use slurmctl::{Job, Node, Reason};
use std::time::SystemTime;

/// How a node stands in a rollout.
enum Stand {
    /// Not touched, and out of service or not.
    Apart(Step, Out),
    /// On the image and in service.
    Proven(Step),
    /// Being rebuilt, or in the queue for it.
    UnderWay(Step),
    /// Tried, and out of service, or up on another image.
    Failed(Step, Out),
    /// To be done, in service or left down by another rebuild.
    Todo(NodeName, Out),
}

/// Whether a node counts as out of service.
#[derive(PartialEq, Eq)]
enum Out {
    Yes,
    No,
}

/// Plans the next batch of a rollout; called again and again, until [`rollout_progress`] says that
/// it is over.
///
/// A node that has the image is skipped, and one that is powered down gets its image when it starts.
/// One that was tried and is up on another image has failed: whatever gave it that image would do so
/// again. What another image has left down comes first: it is out of service anyway. A partition that slurm.conf does not have is an error, and so is a rollout that could never
/// begin.
pub fn rollout(request: &Rollout, world: World<'_>) -> Result<Plan, Refusal> {
    let mut stands = stands(request, world)?;
    stands.sort_by_key(|stand| !matches!(stand, Stand::Todo(_, Out::Yes)));
    let (room, wait) = Tally::of(&stands).room(request, world.now);
    let (mut begin, mut rest) = (Vec::new(), Vec::new());
    for stand in stands {
        match stand {
            Stand::Todo(node, _) if begin.len() < room => begin.push(node),
            Stand::Todo(node, _) => {
                rest.push(Step::Report(ReportStep::Nothing { node, why: wait.clone() }));
            }
            Stand::Apart(step, _)
            | Stand::Proven(step)
            | Stand::UnderWay(step)
            | Stand::Failed(step, _) => rest.push(step),
        }
    }
    let mut steps = begun(begin, request, world);
    steps.extend(rest);
    Ok(Plan::new(Operation::Rollout).stage(Stage::new("next batch", steps)))
}

/// How every node of the request stands.
fn stands(request: &Rollout, world: World<'_>) -> Result<Vec<Stand>, Refusal> {
    if request.batch == 0 || request.max_unavailable == Some(0) {
        return Err(Refusal::NeverBegins);
    }
    let nodes = request.scope(world.conf)?;
    Ok(nodes.into_iter().map(|node| stand(node, request, world)).collect())
}

/// How far a rollout is; an error where [`rollout`] has one.
pub fn rollout_progress(request: &Rollout, world: World<'_>) -> Result<RolloutProgress, Refusal> {
    let stands = stands(request, world)?;
    let tally = Tally::of(&stands);
    let (room, wait) = tally.room(request, world.now);
    Ok(RolloutProgress {
        done: tally.proven,
        under_way: tally.under_way,
        failed: tally.failed,
        left: tally.left,
        apart: tally.apart,
        halted: matches!(wait, Why::Halted(_)),
        room: room.min(tally.left),
        pause: if let Why::Pause(until) = wait { Some(until) } else { None },
        blind: world.slurm.is_none() || !world.fleet.is_complete(),
    })
}

#[derive(Default)]
struct Tally {
    proven: usize,
    under_way: usize,
    failed: usize,
    left: usize,
    apart: usize,
    out: usize,
}

impl Tally {
    fn of(stands: &[Stand]) -> Self {
        let mut tally = Self::default();
        for stand in stands {
            let (count, out) = match stand {
                Stand::Apart(_, out) => (&mut tally.apart, *out == Out::Yes),
                Stand::Proven(_) => (&mut tally.proven, false),
                Stand::UnderWay(_) => (&mut tally.under_way, true),
                Stand::Failed(_, out) => (&mut tally.failed, *out == Out::Yes),
                // No other is begun before those that are out of service, which thus need no room of their own.
                Stand::Todo(..) => (&mut tally.left, false),
            };
            *count += 1;
            tally.out += usize::from(out);
        }
        tally
    }

    /// How many may be begun now, and what the others wait for.
    fn room(&self, request: &Rollout, now: SystemTime) -> (usize, Why) {
        // That the first ones fail is what they are tried for.
        let canary_failed = self.proven < request.canary && self.failed > 0;
        if canary_failed || request.stop_after.is_some_and(|most| self.failed >= most) {
            return (0, Why::Halted(self.failed));
        }
        let next = request.last.and_then(|last| last.checked_add(request.delay));
        if let Some(next) = next.filter(|next| now < *next) {
            return (0, Why::Pause(next));
        }
        let batch = request.batch.saturating_sub(self.under_way);
        let allowed = request.max_unavailable.map_or(batch, |most| most.saturating_sub(self.out));
        let room = batch.min(allowed);
        if self.proven < request.canary {
            let canary = request.canary - self.proven;
            return (room.min(canary.saturating_sub(self.under_way)), Why::AfterCanary);
        }
        (room, Why::Later)
    }
}

fn begun(nodes: Vec<NodeName>, request: &Rollout, world: World<'_>) -> Vec<Step> {
    match &request.how {
        RolloutHow::Reboot => by_image(nodes, request)
            .into_iter()
            .map(|(image, nodes)| {
                // Our reboot program finds in it what to do.
                let reason = Reason::new(&format!("rebuild image:{image}"));
                Step::notify(nodes, Notification::Reboot(reason))
            })
            .collect(),
        RolloutHow::Jobs(form) => nodes
            .into_iter()
            .map(|node| {
                let job = form.job(node, world.conf);
                Step::notify([job.node.clone()], Notification::Submit(job))
            })
            .collect(),
    }
}

/// The nodes of each image, in the order of their first ones.
fn by_image(nodes: Vec<NodeName>, request: &Rollout) -> Vec<(&ImageId, Vec<NodeName>)> {
    let mut all: Vec<(&ImageId, Vec<NodeName>)> = Vec::new();
    for node in nodes {
        let image = request.image_of(&node);
        match all.iter_mut().find(|(known, _)| *known == image) {
            Some((_, nodes)) => nodes.push(node),
            None => all.push((image, vec![node])),
        }
    }
    all
}

fn stand(node: NodeName, request: &Rollout, world: World<'_>) -> Stand {
    match decide(&node, request, world) {
        Ok(stand) => stand,
        Err(why) => {
            let out = if why == Refusal::NoInstance { Out::Yes } else { Out::No };
            Stand::Apart(Step::refuse(node, why), out)
        }
    }
}

fn decide(node: &NodeName, request: &Rollout, world: World<'_>) -> Result<Stand, Refusal> {
    let def = world.conf.get(node).ok_or(Refusal::NotInSlurmConf)?;
    // A job that waits for the node may be one of ours.
    let (slurm, _) = world.slurm.zip(world.jobs).ok_or(Refusal::NoSlurm)?;
    let known = slurm.get(node).ok_or(Refusal::NotInSlurmConf)?;
    if let Some(stand) = in_slurm(known, request, world) {
        return Ok(stand);
    }
    let nothing = |why| Step::Report(ReportStep::Nothing { node: node.clone(), why });
    let Standing { here, .. } = world.fleet.standing(node);
    let instance = match here[..] {
        [] => world.fleet.named(node).ok_or(Refusal::NoInstance)?,
        [instance] => instance,
        _ => return Err(Refusal::Duplicates(bring_up::ids(&here))),
    };
    if let Some(reason) = taken_out(known, instance, request) {
        let why = Refusal::NotBack(reason);
        return Ok(Stand::Failed(Step::refuse(node.clone(), why), Out::Yes));
    }
    if let Some(reason) = held(known) {
        return Ok(Stand::Apart(nothing(Why::Held(reason)), Out::Yes));
    }
    match &instance.image {
        None => Err(Refusal::ImageUnknown),
        Some(_) if is_left_down(known, instance, request) => {
            Ok(Stand::Todo(node.clone(), Out::Yes))
        }
        Some(image) if image == request.image_of(node) => {
            Ok(on_target(known, nothing(Why::OnTarget)))
        }
        Some(_) if def.is_cloud() && !reaches_elastic(request) => Err(Refusal::Elastic),
        Some(_) if request.tried.contains(node) && coming(known, instance) => {
            Ok(Stand::UnderWay(nothing(Why::UnderWay)))
        }
        Some(_) if known.state.is_powering_up() || instance.state != InstanceState::Running => {
            Ok(Stand::Apart(nothing(Why::Later), Out::Yes))
        }
        Some(_) if !known.state.is_up() || known.state.has_drain() => {
            Ok(Stand::Apart(nothing(Why::NotUp), Out::Yes))
        }
        Some(image) if request.tried.contains(node) => {
            let why = Refusal::OtherImage(image.clone());
            Ok(Stand::Failed(Step::refuse(node.clone(), why), Out::No))
        }
        Some(_) => Ok(Stand::Todo(node.clone(), Out::No)),
    }
}

/// True if Slurm calls us for an elastic node.
fn reaches_elastic(request: &Rollout) -> bool {
    match &request.how {
        RolloutHow::Reboot => true,
        RolloutHow::Jobs(form) => form.elastic,
    }
}

/// True if it is on its way up.
fn coming(known: &Node, instance: &Instance) -> bool {
    known.state.is_powering_up() || instance.state == InstanceState::Pending
}

/// Why a node that was tried is out of service: it may be a health check that finds fault with the image.
fn taken_out(known: &Node, instance: &Instance, request: &Rollout) -> Option<String> {
    let out = known.state.is_down() || known.state.has_drain();
    let tried = request.tried.contains(&known.name);
    if !out || !tried || is_drained_by_us(known) || coming(known, instance) {
        return None;
    }
    let reason = known.reason_text();
    Some(if reason.is_empty() { known.state.to_string() } else { reason.to_owned() })
}

/// True if a rebuild that is not this rollout's has left it down, and Slurm can be asked for another.
fn is_left_down(known: &Node, instance: &Instance, request: &Rollout) -> bool {
    // A job would wait until the node is up.
    let reboots = matches!(request.how, RolloutHow::Reboot);
    let runs = instance.state == InstanceState::Running;
    reboots && runs && not_back(known) && !request.tried.contains(&known.name)
}

/// True if it is this rollout that left the node down: what another image did there says nothing of this one.
fn failed_here(known: &Node, request: &Rollout) -> bool {
    let image = request.image_of(&known.name).as_str();
    let same = image_in(known.reason_text()).is_none_or(|named| named == image);
    let again = request.anew && !request.tried.contains(&known.name);
    not_back(known) && same && !again
}

/// How it stands, where Slurm alone can say.
fn in_slurm(known: &Node, request: &Rollout, world: World<'_>) -> Option<Stand> {
    let node = &known.name;
    let nothing = |why| Step::Report(ReportStep::Nothing { node: node.clone(), why });
    if known.state.is_powered_down() || known.state.is_powering_down() {
        // One that we left down is not merely asleep.
        if !known.state.is_down() {
            return Some(Stand::Apart(nothing(Why::PoweredDown), Out::No));
        }
    }
    let failed = failed_here(known, request);
    if !failed && is_misfit(known) {
        return Some(Stand::Apart(nothing(Why::NotUp), Out::Yes));
    }
    if !failed && (known.state.is_reboot_requested() || known.state.is_reboot_issued()) {
        return Some(Stand::UnderWay(nothing(Why::UnderWay)));
    }
    if let Some(job) = queued(node, world.jobs.unwrap_or_default()) {
        return Some(Stand::UnderWay(nothing(Why::Queued(job.id))));
    }
    if failed {
        let reason = known.reason_text();
        let reason =
            if is_misfit(known) { format!("{reason}: {MISFIT}") } else { reason.to_owned() };
        let why = Refusal::NotBack(reason);
        return Some(Stand::Failed(Step::refuse(node.clone(), why), Out::Yes));
    }
    None
}

fn on_target(known: &Node, step: Step) -> Stand {
    let in_service = known.state.is_up() && !known.state.has_drain();
    if in_service { Stand::Proven(step) } else { Stand::Apart(step, Out::Yes) }
}

/// A rebuild job that has the node or waits for it.
fn queued<'a>(node: &NodeName, jobs: &'a [Job]) -> Option<&'a Job> {
    let names = |job: &Job| job.nodes.contains(node.as_str()) || job.wanted.contains(node.as_str());
    // Few jobs reboot, and to search the lists of all others takes long in a full queue.
    let about = |job: &&Job| job.reboot && !job.state.is_finished() && names(job);
    jobs.iter().find(about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmctl::BatchJob;
    use std::time::UNIX_EPOCH;

    #[test]
    fn what_a_plan_begins_is_noted_and_what_it_leaves_is_not() {
        let node = |name| NodeName::new(name).unwrap();
        let untouched = std::collections::BTreeSet::new();
        let mut request = Rollout::new(ImageId::new("img-2"));
        let nothing = Step::Report(ReportStep::Nothing { node: node("n1"), why: Why::Later });
        let idle = Plan::new(Operation::Rollout).stage(Stage::new("x", vec![nothing.clone()]));
        request.note_begun(&idle, &untouched, UNIX_EPOCH);
        assert_eq!((request.last, request.tried.len()), (None, 0));
        let reason = Reason::new("rebuild image:img-2");
        let reboot = Step::notify([node("n2"), node("n3")], Notification::Reboot(reason));
        let job = BatchJob::reboot("rebuild-n4", "rebuild", node("n4"));
        let job = Step::notify([node("n4")], Notification::Submit(job));
        let steps = vec![nothing, reboot, job];
        let plan = Plan::new(Operation::Rollout).stage(Stage::new("x", steps));
        request.note_begun(&plan, &untouched, UNIX_EPOCH);
        assert_eq!(request.last, Some(UNIX_EPOCH));
        assert_eq!(request.tried, ["n2", "n3", "n4"].map(node).into());
    }
}
