//! The changes of a plan to slurm.conf, and the reasons for refusing them.

use super::MarkedFile;
use crate::plan::{self, FileStep, Plan, Refusal, ReportStep, Step, WrittenFile};
use slurmconf::{Cluster, Config, Document, Markers, SlurmVersion};

/// The text of slurm.conf that the plan writes.
#[must_use]
pub fn written_conf(plan: &Plan) -> Option<&[u8]> {
    plan.steps().find_map(|step| match step {
        Step::File(FileStep::Write { which: WrittenFile::SlurmConf, text, .. }) => {
            Some(text.as_slice())
        }
        _ => None,
    })
}

/// The node section after the plan, including the lines that the planner adds.
pub fn planned_section(
    marked: &MarkedFile,
    cluster: Option<&Cluster>,
    plan: &Plan,
) -> slurmconf::Result<String> {
    match (written_conf(plan), cluster) {
        (Some(text), _) => Document::parse(text).section(Markers::NODES),
        (None, Some(cluster)) if refusals(plan).next().is_some() => Ok(cluster.to_string()),
        (None, _) => marked.section(),
    }
}

/// The error in slurm.conf, if the plan is empty because of it and not because of a node.
#[must_use]
pub fn bad_conf(plan: &Plan) -> Option<String> {
    let mut bad = refusals(plan).filter(|(_, why)| matches!(why, Refusal::BadConf(_)));
    bad.next().map(|(_, why)| why.to_string())
}

/// The nodes that cannot be removed because of their jobs, each with the reason.
#[must_use]
pub fn nodes_in_use(plan: &Plan) -> Vec<String> {
    let used = |why: &Refusal| matches!(why, Refusal::Job(_) | Refusal::InUse);
    let used = refusals(plan).filter(|(_, why)| used(why));
    used.map(|(node, why)| format!("{node}: {why}")).collect()
}

fn refusals(plan: &Plan) -> impl Iterator<Item = (&hostlist::NodeName, &Refusal)> {
    plan.steps().filter_map(|step| match step {
        Step::Report(ReportStep::Refuse { node, why }) => Some((node, why)),
        _ => None,
    })
}

/// The new `SuspendExcNodes` line, if slurm.conf has one outside the markers that omits persistent nodes: the old value,
/// which may have counts, and the missing nodes.
///
/// Otherwise `finish` and `resize` keep this line between the markers.
#[must_use]
pub fn suspend_exclusions(
    config: &Config,
    version: SlurmVersion,
    marked: &MarkedFile,
    cluster: &Cluster,
) -> Option<String> {
    let value = plan::excluded_outside(config, &marked.document)?;
    let known = config.suspend_exclusions(&value, version);
    let missing = cluster.persistent_nodes().difference(&known);
    (!missing.is_empty()).then(|| format!("SuspendExcNodes={value},{missing}\n"))
}
