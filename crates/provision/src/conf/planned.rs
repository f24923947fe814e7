//! What a plan means for slurm.conf: the text that it writes, and why it leaves the file as it is.

use super::MarkedFile;
use crate::plan::{self, File, FileStep, Plan, Refusal, ReportStep, Step};
use slurmconf::{Cluster, Config, Document, Markers, SlurmVersion};

/// The text of slurm.conf that the plan writes.
#[must_use]
pub fn written_conf(plan: &Plan) -> Option<&[u8]> {
    plan.steps().find_map(|step| match step {
        Step::File(FileStep::Write { which: File::SlurmConf, text, .. }) => Some(text.as_slice()),
        _ => None,
    })
}

/// What stands between the markers when the plan is carried out: what a planner adds to the nodes is shown and tried, too.
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

/// What is wrong with slurm.conf, where that is why nothing is planned: it is the configuration, and no node, that is at fault.
#[must_use]
pub fn bad_conf(plan: &Plan) -> Option<String> {
    let mut bad = refusals(plan).filter(|(_, why)| matches!(why, Refusal::BadConf(_)));
    bad.next().map(|(_, why)| why.to_string())
}

/// The nodes that may not go because of their jobs, each with the reason.
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

/// The line for nodes that are never stopped, where slurm.conf has one outside the markers that leaves some of ours out: its
/// own words, which may have counts in them, and those.
///
/// Else `finish` and `resize` keep such a line between the markers, and one outside would only go out of date.
#[must_use]
pub fn suspend_exclusions(
    config: &Config,
    version: SlurmVersion,
    marked: &MarkedFile,
    cluster: &Cluster,
) -> Option<String> {
    let said = plan::excluded_outside(config, &marked.document)?;
    let known = config.suspend_exclusions(&said, version);
    let missing = cluster.persistent_nodes().difference(&known);
    (!missing.is_empty()).then(|| format!("SuspendExcNodes={said},{missing}\n"))
}
