//! Preflight checks: is everything in place for nodes to start and stop?
//!
//! Each check is a pure function from observed [`Facts`] to results. No check hides another, except that a cloud that
//! cannot list machines is a single failure.

mod access;
mod budget;
mod capacity;
mod cloud;
mod fallback;
mod host;
mod programs;
mod slurm;

pub use access::{Unwritable, UserIds};
pub use cloud::CloudFacts;
pub use host::{Access, ConfigOwner, HostFacts, unresolved};
pub use programs::{Alias, program_problems};
pub use slurm::SlurmFacts;

use crate::conf::{MarkedFile, missing_gres, unlaunchable};
use crate::images::ImageRules;
use crate::site::Site;
use crate::state;
use capacity::Wanted;
use cloud_core::Description;
use history::cost::Spending;
use slurmconf::{Cluster, MemoryPolicy, NodeDef, Shapes};
use std::io::ErrorKind;
use std::time::SystemTime;

words! {
    /// The status of a check.
    pub enum Status {
        /// Everything is in place.
        Ok = "ok",
        /// It works, but can be improved.
        Warn = "warn",
        /// Nodes will not start or stop as they should.
        Fail = "fail",
    }
}

/// The result of one check, with what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The status.
    pub status: Status,
    /// The finding and the remedy.
    pub text: String,
}

impl Check {
    fn ok(text: impl Into<String>) -> Self {
        Self { status: Status::Ok, text: text.into() }
    }

    fn warn(text: impl Into<String>) -> Self {
        Self { status: Status::Warn, text: text.into() }
    }

    fn fail(text: impl Into<String>) -> Self {
        Self { status: Status::Fail, text: text.into() }
    }
}

/// Everything that was observed for the checks.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Errors of files that were read.
    pub unreadable: Vec<String>,
    /// True if Slurm only rebuilds nodes, and neither starts nor stops any.
    pub only_rebuilds: bool,
    /// Slurm.
    pub slurm: SlurmFacts<'a>,
    /// The cloud, or why it cannot be queried.
    pub cloud: Result<CloudFacts, String>,
    /// The operator's policies.
    pub site: &'a Site,
    /// Rules for the cloud's images.
    pub images: ImageRules,
    /// The description of the cloud, which needs no request.
    pub description: Description,
    /// The generated nodes, if the limits can be read.
    pub generated: Option<Generated<'a>>,
    /// The spending, if there is a budget, and the time of this fact.
    pub spent: (Option<Spending>, SystemTime),
    /// This host.
    pub host: HostFacts<'a>,
}

/// Nodes that the limits generate.
#[derive(Debug)]
pub struct Generated<'a> {
    /// The nodes and partitions.
    pub cluster: &'a Cluster,
    /// All known shapes.
    pub shapes: &'a Shapes,
    /// How to compute `RealMemory`.
    pub memory: MemoryPolicy,
    /// The file with the markers.
    pub marked: &'a MarkedFile,
    /// The new node section, if it can be planned.
    pub section: Option<Section>,
}

/// The new node section of slurm.conf.
#[derive(Debug)]
pub struct Section {
    /// The lines.
    pub text: String,
    /// True if slurmctld has not applied it yet.
    pub unapplied: bool,
    /// Why the file cannot be replaced, if so.
    pub unwritable: Option<state::Error>,
}

/// Runs all checks.
#[must_use]
pub fn run(facts: &Facts<'_>) -> Vec<Check> {
    let Facts { slurm, site, generated, host, description, .. } = facts;
    let generated = generated.as_ref();
    let nodes: &[NodeDef] = generated.map_or(&[], |it| &it.cluster.nodes);
    let mut checks = readable(facts);
    checks.extend(slurm.controller());
    match &facts.cloud {
        Ok(cloud) => checks.extend(cloud.answers(facts, nodes)),
        Err(why) => checks.push(Check::fail(why)),
    }
    checks.extend(unlaunchable(nodes, site, description).map(Check::fail));
    checks.extend(host.unresolved());
    if let Some(generated) = generated {
        let sizes = (generated.shapes, generated.memory);
        checks.extend(fallback::too_small(nodes, &site.fallback, sizes));
    }
    if let (Some(_), Ok(cloud)) = (generated, &facts.cloud)
        && cloud.is_open()
    {
        let wanted = Wanted { nodes, site, description };
        checks.extend(capacity::limits(cloud, wanted));
        checks.extend(capacity::places(cloud, wanted));
    }
    checks.extend(budget::budget(site, nodes, facts.spent.0, facts.spent.1));
    let gres = generated.and_then(|it| missing_gres(it.cluster, slurm.config));
    checks.extend(gres.map(Check::fail));
    checks.extend(if facts.only_rebuilds { vec![slurm.reboot()] } else { slurm.power() });
    checks.extend(slurm.stale());
    checks.extend(slurm.hidden_nodes.clone().map(Check::fail));
    checks.extend(slurm.reads_other_configuration(host.config));
    checks.extend(host.variables());
    checks.extend(host.files());
    if let Some(Generated { marked, section: Some(section), .. }) = generated {
        checks.push(section_of(marked, section, host.is_root));
    }
    checks
}

/// Checks of the files.
fn readable(facts: &Facts<'_>) -> Vec<Check> {
    let mut checks: Vec<Check> = facts.unreadable.iter().map(Check::fail).collect();
    if facts.only_rebuilds {
        let only = "configuration is readable; slurm.conf has no elastic nodes, and only what rebuild needs is checked";
        checks.push(Check::ok(only));
    } else if facts.generated.as_ref().is_some_and(|it| it.section.is_some()) {
        checks.push(Check::ok("configuration and limits are readable"));
    }
    checks
}

fn section_of(marked: &MarkedFile, section: &Section, is_root: bool) -> Check {
    let path = marked.path.display();
    let is_same = marked.section().unwrap_or_default() == section.text;
    let will = match (is_same, section.unapplied) {
        (true, true) => {
            format!("{path} is up to date, but slurmctld has not applied it: run finish")
        }
        (true, false) => format!("{path} is up to date"),
        (false, _) => format!("{path} will change; finish --dry-run shows how"),
    };
    match &section.unwritable {
        None if is_same && section.unapplied => Check::warn(will),
        None => Check::ok(will),
        Some(error) if error.source.kind() == ErrorKind::PermissionDenied && !is_root => {
            Check::warn(format!("{will}; only root may write it: sudo finish"))
        }
        Some(error) => Check::fail(format!(
            "{path} cannot be written: {}; make room beside it, or make it writable (see df, mount and lsattr)",
            error.source
        )),
    }
}
