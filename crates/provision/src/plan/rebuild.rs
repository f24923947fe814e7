//! Nodes that are to get their image, or a reboot.

use super::deploy::with_files;
use super::start::{all_cooling, back, hindrance};
use super::{
    MachineStep, Notification, Operation, Plan, Refusal, ReportStep, Stage, Step, Still, Why,
    bring_up, reasons, warm,
};
use crate::cause::Cause;
use crate::order;
use crate::policies::RebuildHow;
use crate::report::{NodeReport, Outcome};
use crate::world::{Standing, World};
use cloud_core::{ImageId, Instance, InstanceId, InstanceState, Reboot};
use hostlist::NodeName;
use slurmconf::NodeDef;
use slurmctl::Node;

/// What is said about a node's image, by whom.
///
/// The first that says something counts: the file of `reboot_vars`, the file of `hostvars`, the
/// node's reason, the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The node.
    pub node: NodeName,
    /// What `/etc/slurm/reboot_vars/<node>.yml` says.
    pub reboot_vars: Option<Vars>,
    /// What `hostvars.yml` says.
    pub hostvars: Option<Vars>,
    /// What the node's reason says, looked up in the cloud.
    pub reason: Option<ImageWish>,
}

impl Target {
    /// A node about which nobody but the configuration says anything.
    #[must_use]
    pub fn new(node: NodeName) -> Self {
        Self { node, reboot_vars: None, hostvars: None, reason: None }
    }

    /// The image that the node is to have, whichever instance it has.
    pub(crate) fn image(&self, world: World<'_>) -> Result<ImageId, Refusal> {
        match (self.vars(), &self.reason) {
            (Some(vars), _) => Ok(vars.image.clone()),
            (None, Some(ImageWish::Known(image))) => Ok(image.clone()),
            (None, Some(ImageWish::Unknown(name))) => Err(Refusal::UnknownImage(name.clone())),
            (None, None) => configured(&self.node, world),
        }
    }

    /// The instance that the files name.
    #[must_use]
    pub fn named(&self) -> Option<&InstanceId> {
        self.vars()?.instance.as_ref()
    }

    /// What the files say.
    fn vars(&self) -> Option<&Vars> {
        self.reboot_vars.as_ref().or(self.hostvars.as_ref())
    }
}

/// The two values of a node's file that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vars {
    /// `image_id`
    pub image: ImageId,
    /// `instance_id`
    pub instance: Option<InstanceId>,
}

/// An image that somebody asked for, by name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageWish {
    /// The cloud has it.
    Known(ImageId),
    /// The cloud has none of that name or id, or several.
    Unknown(String),
}

/// The image that a reason asks for: `rebuild image:<name or id>`, whatever Slurm added behind it.
pub(crate) fn image_in(reason: &str) -> Option<&str> {
    let mut words = reason.split_whitespace();
    let rest = (words.next() == Some("rebuild")).then_some(words)?;
    rest.filter_map(|word| word.strip_prefix("image:")).find(|image| !image.is_empty())
}

/// What to do where the request leaves a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct RebuildOptions {
    /// With a node that has the image: do nothing instead of a reboot.
    pub leave_same: bool,
    /// With a node that has no instance: launch one instead of refusing.
    pub launch_absent: bool,
    /// Also where a job is running, or where slurmctld does not say whether one is.
    pub force: bool,
    /// True if Slurm itself asks, by calling us as its reboot program or for a job with `--reboot`:
    /// then it need not be asked back.
    pub slurm_asks: bool,
}

/// Plans a rebuild, a reboot or nothing for each node.
///
/// A node without an instance that is to be launched, and cannot be, is returned to Slurm if
/// Slurm waits for it, as by a start.
#[must_use]
pub fn rebuild(targets: &[Target], options: RebuildOptions, world: World<'_>) -> Plan {
    let mut targets: Vec<&Target> = targets.iter().collect();
    targets.sort_by(|a, b| order::compare(a.node.as_str(), b.node.as_str()));
    targets.dedup_by(|a, b| a.node == b.node);
    let (mut returned, mut steps) = (Vec::new(), Vec::new());
    for target in targets {
        let node = &target.node;
        let step = one(target, options, world);
        let absent = is_absent(node, world) && named(target, world).is_none();
        let back = if options.launch_absent && absent {
            hindrance(&step, world).and_then(|(cause, why)| back(node, cause, &why, world))
        } else {
            None
        };
        match (back, step) {
            (Some(back), _) => returned.push(back),
            (None, Ok(step)) => steps.push(step),
            (None, Err(why)) => {
                steps.push(Step::refuse(node.clone(), why));
            }
        }
    }
    let plan = Plan::new(Operation::Rebuild)
        .stage(Stage::new("return to slurm", returned))
        .stage(Stage::new("rebuild", steps));
    with_files(plan, world)
}

/// Plans to report to Slurm which of the nodes that it waits for were not rebuilt, and why: else it would wait until
/// `ResumeTimeout`, and so would whoever rolls an image out.
///
/// | Slurm waits | reported as |
/// |---|---|
/// | for `scontrol reboot` | the reason alone: the node is drained already |
/// | for a job with `--reboot`, elastic node | returned to Slurm: the job goes, the machine ends |
/// | for a job with `--reboot`, other node | drained: the job goes, the machine stays |
///
/// A machine that is only late may still come, and one that another process has in hand may for the job: Slurm itself says
/// so at `ResumeTimeout` if it does not.
pub(crate) fn not_rebuilt<'a>(
    failed: impl IntoIterator<Item = (&'a NodeName, &'a NodeReport)>,
    world: World<'_>,
) -> Plan {
    let steps = failed
        .into_iter()
        .filter_map(|(node, report)| report_failure(node, report, world))
        .collect();
    Plan::new(Operation::Rebuild).stage(Stage::new("report why", steps))
}

fn report_failure(node: &NodeName, failed: &NodeReport, world: World<'_>) -> Option<Step> {
    let known = world.node(node)?;
    if matches!(failed.cause, Some(Cause::Timeout | Cause::Ambiguous)) {
        return None;
    }
    let why = failed.reason.as_deref().unwrap_or_default();
    let nodes = vec![node.clone()];
    if known.state.is_reboot_issued() && known.state.has_drain() {
        let reason = reasons::not_rebuilt(known, why);
        return Some(Step::notify(nodes, Notification::Drain { reason, only_asleep: false }));
    }
    if failed.outcome == Outcome::Busy || !is_for_job(known, world) {
        return None;
    }
    let reason = reasons::reason_over(&format!("not rebuilt: {why}"), Some(known));
    let elastic = world.conf.get(node).is_some_and(NodeDef::is_cloud);
    // Slurm would have a machine ended that it powers down.
    if !elastic {
        return Some(Step::notify(nodes, Notification::Drain { reason, only_asleep: false }));
    }
    let (still, cause) = (Still::Awaited, failed.cause.unwrap_or(Cause::Refused));
    Some(Step::notify(nodes, Notification::ReturnToSlurm { still, cause, reason }))
}

/// True if Slurm waits for the node for a job with `--reboot`, and no other job is there. The mark of a reboot is only
/// 26.05's; before, the node looks as if it were started.
fn is_for_job(known: &Node, world: World<'_>) -> bool {
    let mut jobs = world.jobs_on(&known.name).peekable();
    let reboots = known.state.is_reboot_issued() || jobs.peek().is_some();
    known.state.is_powering_up() && reboots && jobs.all(|job| job.reboot)
}

/// True if the node has no instance that stays.
fn is_absent(node: &NodeName, world: World<'_>) -> bool {
    world.fleet.standing(node).here.is_empty()
}

fn one(target: &Target, options: RebuildOptions, world: World<'_>) -> Result<Step, Refusal> {
    let node = &target.node;
    if world.conf.get(node).is_none() {
        return Err(Refusal::NotInSlurmConf);
    }
    let Standing { here, leaving } = world.fleet.standing(node);
    let instance = match (&here[..], named(target, world)) {
        ([], None) if options.launch_absent => return launch(target, world),
        ([], _) if !world.fleet.is_complete() => return Err(Refusal::IncompleteListing),
        ([], None) => return Err(busy(leaving.first())),
        ([], Some(named)) => named,
        ([instance], _) => instance,
        (_, _) => return Err(Refusal::Duplicates(bring_up::ids(&here))),
    };
    let image = image(target, instance, world)?;
    if !options.force {
        undisturbed(node, options.slurm_asks, world)?;
    }
    if warm::is_off(instance) && warm::is_warm(node, world) {
        return on_stopped(target, instance, image, world);
    }
    let step = on_instance(node, instance, image, options, world)?;
    // An instance without the cluster's tags is not replaced.
    match step {
        Step::Machine(MachineStep::Recreate { id, .. }) if here.is_empty() => {
            Err(Refusal::NotOurs(id))
        }
        step => Ok(step),
    }
}

/// The instance without our tags that the node's own file names.
fn named<'a>(target: &Target, world: World<'a>) -> Option<&'a Instance> {
    let id = target.named()?;
    world.fleet.named(&target.node).filter(|instance| instance.id == *id)
}

/// The launch of a node that has no instance, with the image that it is to have.
fn launch(target: &Target, world: World<'_>) -> Result<Step, Refusal> {
    let mut step = bring_up::bring_up(&target.node, world)?;
    if let Step::Machine(MachineStep::Launch { wanted, .. }) = &mut step {
        wanted.image = target.image(world)?;
    }
    Ok(step)
}

fn busy(instance: Option<&&Instance>) -> Refusal {
    instance.map_or(Refusal::NoInstance, |instance| Refusal::Busy {
        id: instance.id.clone(),
        state: instance.state.clone(),
    })
}

/// The image that the node is to have, if it is this instance that the files speak of.
fn image(target: &Target, instance: &Instance, world: World<'_>) -> Result<ImageId, Refusal> {
    if let Some(named) = target.named().filter(|named| **named != instance.id) {
        let tagged = instance.id.clone();
        return Err(Refusal::OtherInstance { named: named.clone(), tagged });
    }
    target.image(world)
}

/// The image that slurm.conf or the configuration names for a node.
pub(crate) fn configured(node: &NodeName, world: World<'_>) -> Result<ImageId, Refusal> {
    let features = world.conf.get(node).and_then(|def| def.features.as_ref());
    world.site.image_of(features).ok_or(Refusal::NoImage)
}

/// Refuses where a job would be hit, unless Slurm itself has asked for the reboot.
fn undisturbed(node: &NodeName, slurm_asks: bool, world: World<'_>) -> Result<(), Refusal> {
    let known = world.node(node);
    if known.is_some_and(|known| known.state.is_reboot_issued()) {
        return Ok(());
    }
    if world.slurm.is_none() || world.jobs.is_none() {
        return if slurm_asks { Ok(()) } else { Err(Refusal::NoSlurm) };
    }
    let mut jobs = world.jobs_on(node).peekable();
    // A job may be there that the list does not have; the one that comes with a reboot may not be
    // there yet.
    let unseen = jobs.peek().is_none()
        && known.is_some_and(|known| known.state.has_job() && !known.state.is_powering_up());
    match jobs.find(|job| !job.reboot) {
        Some(job) => Err(Refusal::Job(job.id)),
        None if unseen => Err(Refusal::InUse),
        None => Ok(()),
    }
}

/// The step for a machine that is kept stopped. If Slurm waits for its node, the node comes up with its image; if not, a
/// machine with another image goes, and the next start brings one.
fn on_stopped(
    target: &Target,
    instance: &Instance,
    image: ImageId,
    world: World<'_>,
) -> Result<Step, Refusal> {
    let (node, id) = (target.node.clone(), instance.id.clone());
    let waits = world.node(&node).is_some_and(|known| known.state.is_powering_up());
    match (waits, instance.image.as_ref() == Some(&image)) {
        (true, true) => launch(target, world),
        (true, false) => recreate(&node, id, image, world),
        (false, true) => Ok(Step::Report(ReportStep::Nothing { node, why: Why::Stopped })),
        (false, false) => Ok(Step::Machine(MachineStep::Terminate { node, ids: vec![id] })),
    }
}

fn on_instance(
    node: &NodeName,
    instance: &Instance,
    image: ImageId,
    options: RebuildOptions,
    world: World<'_>,
) -> Result<Step, Refusal> {
    let same = instance.image.as_ref() == Some(&image);
    let (node, id) = (node.clone(), instance.id.clone());
    match instance.state {
        // Nova shows the new image as soon as a rebuild begins.
        InstanceState::Pending if same => {
            Ok(Step::Report(ReportStep::Nothing { node, why: Why::UnderWay }))
        }
        InstanceState::Running if same && options.leave_same => {
            Ok(Step::Report(ReportStep::Nothing { node, why: Why::OnTarget }))
        }
        InstanceState::Running if same => {
            Ok(Step::Machine(MachineStep::Reboot { node, id, how: Reboot::Soft }))
        }
        InstanceState::Running if in_place(&id, world) => {
            Ok(Step::Machine(MachineStep::Rebuild { node, id, image }))
        }
        InstanceState::Running | InstanceState::Failed => recreate(&node, id, image, world),
        InstanceState::Pending
        | InstanceState::Stopping
        | InstanceState::Stopped
        | InstanceState::Terminating
        | InstanceState::Terminated
        | InstanceState::Other(_) => Err(busy(Some(&instance))),
    }
}

/// True if the image is to be replaced on the instance itself, and the cloud has not refused that.
fn in_place(id: &InstanceId, world: World<'_>) -> bool {
    world.site.policies.rebuild == RebuildHow::InPlace && !world.fleet.is_fixed(id)
}

/// Another instance in the place of this one; what is on its way out besides would be a second.
fn recreate(
    node: &NodeName,
    id: InstanceId,
    image: ImageId,
    world: World<'_>,
) -> Result<Step, Refusal> {
    if !world.fleet.is_complete() {
        return Err(Refusal::IncompleteListing);
    }
    let leaving = world.fleet.standing(node).leaving;
    if !leaving.is_empty() {
        return Err(busy(leaving.first()));
    }
    let mut wanted = world.wanted(node)?;
    if let Some((pool, cooldown)) = all_cooling(&wanted.places, world.cooldowns, world.now) {
        return Err(Refusal::Cooling { pool, cooldown });
    }
    wanted.image = image;
    Ok(Step::Machine(MachineStep::Recreate { id, wanted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_an_image_only_if_it_asks_for_a_rebuild() {
        assert_eq!(image_in("rebuild image:rocky-9.5 : reboot issued"), Some("rocky-9.5"));
        assert_eq!(image_in("rebuild"), None);
        assert_eq!(image_in("broken fan image:x"), None);
    }
}
