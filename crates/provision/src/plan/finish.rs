//! Other nodes in slurm.conf.

use super::deploy::with_files;
use super::exclusions::node_section;
use super::removal::removal;
use super::resize::summary;
use super::unapplied::ApplyOptions;
use super::{
    Begin, FileStep, Notification, Operation, Plan, Reload, Stage, Step, WrittenFile, unapplied,
};
use crate::order::by_number;
use crate::world::World;
use hostlist::NodeName;
use slurmconf::{
    Action, Changes, Cluster, Config, ConfiguredState, Document, Markers, SlurmVersion, diff,
};
use std::time::Duration;

/// The nodes that slurm.conf is to have.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    /// slurm.conf, or the file it includes that has the markers.
    pub document: &'a Document,
    /// What is to stand between the markers.
    pub cluster: &'a Cluster,
    /// The version of slurmctld.
    pub version: SlurmVersion,
    /// Also if jobs run on nodes that are to go.
    pub force: bool,
    /// True to tell slurmctld; false to write slurm.conf alone, and leave that to whoever asked.
    pub reload: bool,
    /// True if slurmctld has not applied the lines that the document has between the markers.
    pub unapplied: bool,
    /// How long to wait for jobs that begin in the meantime.
    pub patience: Duration,
}

/// Plans slurm.conf with other nodes, and what follows from it.
///
/// If nothing changes there is nothing to do, unless slurmctld has not applied the file because an earlier run died
/// before it told slurmctld: it is told now. Instances of nodes that go are terminated and confirmed gone first. A node
/// with a running job is removed only if forced; without force, one such node keeps everything else from being done.
pub fn finish(request: &Finish<'_>, world: World<'_>) -> slurmconf::Result<Plan> {
    let Proposed { document: new, before, after } = Proposed::of(request, world)?;
    let changes = diff(&before, &after);
    let plan = Plan::new(Operation::Finish);
    if new.as_bytes() == request.document.as_bytes() {
        let options = ApplyOptions { force: request.force, lines: request.unapplied };
        let version = request.version;
        return Ok(if request.reload {
            unapplied::apply(plan, version, options, world)
        } else {
            plan
        });
    }
    let removed = leaving(&changes, &before, world);
    let left = unapplied::unapplied(Some(request.version), world).left;
    let busy = unapplied::busy(&[left, removed.clone()].concat(), world);
    if !busy.is_empty() && !request.force {
        return Ok(plan.stage(Stage::new("refused", busy)));
    }
    let removal = match removal(&removed, request.patience, "finish", request.force, world) {
        Ok(removal) => removal,
        Err(refused) => return Ok(plan.stage(Stage::new("refused", refused))),
    };
    let (before, text) = (request.document.as_bytes().to_vec(), new.as_bytes().to_vec());
    let summary = summary(&changes.added, &changes.removed);
    let write = Step::File(FileStep::Write {
        which: WrittenFile::SlurmConf,
        before,
        text,
        summary,
        drops: removed,
    });
    let reload = if request.reload { reload(&changes, request, world) } else { Vec::new() };
    let plan = removal
        .stages(plan, Vec::new())
        .stage(Stage::new("write", vec![write]).begun(Begin::IfAllWell))
        .stage(Stage::new("tell slurm", reload).begun(Begin::IfAllWell));
    Ok(with_files(plan, world))
}

/// slurm.conf as it is to be, and the nodes of it before and after.
pub(super) struct Proposed {
    pub(super) document: Document,
    pub(super) before: Config,
    pub(super) after: Config,
}

impl Proposed {
    pub(super) fn of(request: &Finish<'_>, world: World<'_>) -> slurmconf::Result<Self> {
        let mut document = request.document.clone();
        let (cluster, config) = (request.cluster, world.conf.config());
        let section = node_section(cluster, request.document, config, request.version)?;
        document.replace_section(Markers::NODES, &section)?;
        let before = Config::parse(&request.document.section(Markers::NODES)?)?;
        let after = Config::parse(&document.section(Markers::NODES)?)?;
        Ok(Self { document, before, after })
    }
}

/// The nodes that leave, by number. One in the state `FUTURE` that Slurm does not show, as our own `nonesuch`, is none yet: it
/// has neither a machine nor a job.
pub(super) fn leaving(changes: &Changes, before: &Config, world: World<'_>) -> Vec<NodeName> {
    let index = before.index();
    let future = |node: &NodeName| {
        index.get(node.as_str()).is_some_and(|it| it.state == Some(ConfiguredState::Future))
    };
    let names = changes.removed.iter().filter_map(|name| NodeName::new(&name).ok());
    by_number(names.filter(|node| !future(node) || world.node(node).is_some()))
}

fn reload(changes: &Changes, request: &Finish<'_>, world: World<'_>) -> Vec<Step> {
    let version = request.version;
    // One that does not run will read the lines when it does.
    let lines = request.unapplied && world.slurm.is_some();
    match changes.action(version) {
        Action::Nothing if !lines && unapplied::unapplied(Some(version), world).is_empty() => {
            Vec::new()
        }
        Action::Nothing => vec![unapplied::take_up(version)],
        // One that is down cannot be asked to read its file again: without a node it does not even start.
        Action::Reconfigure | Action::Restart if world.slurm.is_none() => {
            vec![Step::notify([], Notification::Reload(Reload::Restart))]
        }
        Action::Reconfigure => vec![Step::notify([], Notification::Reload(Reload::Reconfigure))],
        Action::Restart => vec![Step::notify([], Notification::Reload(Reload::Restart))],
    }
}
