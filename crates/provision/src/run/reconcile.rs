//! Reconciles the cloud, Slurm and slurm.conf.

use super::Run;
use super::observe::{Observation, SlurmQuery};
use super::pass::without;
use super::telemetry::Telemetry;
use crate::failure::chain;
use crate::plan::{self, FindingKind, Plan, Sightings, Step, with_topology, without_reservations};
use crate::report::Report;
use crate::state::{StateFile, atomic_write, change_soon};
use hostlist::NodeName;
use slurmctl::Reservation;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Repairs discrepancies, and stores those that were seen for the first time.
///
/// Nodes that another process has locked are skipped. After the nodes are locked, it plans again, because a node may have
/// come up in between.
pub async fn reconcile(run: &Run<'_>) -> Report {
    let begun = run.log_start("reconcile");
    let mut memory = Memory::load(run);
    let (mut report, telemetry) = repair(run, &mut memory, run.deadline(begun)).await;
    report.failures.append(&mut memory.troubles);
    report.took = Instant::now().saturating_duration_since(begun);
    telemetry.finish(run, &mut report).await;
    run.log_end(report, begun)
}

async fn repair(run: &Run<'_>, memory: &mut Memory, deadline: Instant) -> (Report, Telemetry) {
    let mut observation = run.observe_with(SlurmQuery::NodesAndPerhapsJobs).await;
    run.find_silent_addresses(&mut observation).await;
    let reserved = reservations(run, &observation).await;
    let (first, seen) = planned(run, memory, &reserved, &observation);
    let nodes: BTreeSet<NodeName> = first.steps().flat_map(Step::nodes).cloned().collect();
    let nodes: Vec<NodeName> = nodes.into_iter().collect();
    if first.is_idle() {
        memory.store(run, &seen);
        let telemetry = Telemetry::of(&observation, run.site);
        return (run.act(&first, observation, BTreeMap::new(), deadline).await, telemetry);
    }
    let mut locked = run.lock(&nodes, Instant::now()).await;
    // Do not wait again for a squeue that does not answer, because a start may need one of the nodes.
    let (asked, warnings) = match &observation.jobs {
        Some(_) => (SlurmQuery::NodesAndPerhapsJobs, Vec::new()),
        None => (SlurmQuery::Nodes, observation.warnings),
    };
    let mut observation = run.observe_nodes(&mut locked.locks, asked, deadline).await;
    observation.warnings.extend(warnings);
    run.find_silent_addresses(&mut observation).await;
    let (mut plan, seen) = planned(run, memory, &reserved, &observation);
    memory.store(run, &seen);
    let is_locked = |node: &NodeName| locked.locks.contains_key(node);
    let others: Vec<NodeName> =
        plan.steps().flat_map(Step::nodes).filter(|node| !is_locked(node)).cloned().collect();
    without(&mut plan, &others);
    let telemetry = Telemetry::of(&observation, run.site);
    (run.act(&plan, observation, locked.locks, deadline).await, telemetry)
}

/// The reservations of this cluster for maintenance. Without an answer there are none: the next run asks again.
async fn reservations(run: &Run<'_>, observation: &Observation) -> Vec<Reservation> {
    if observation.slurm.is_none() {
        return Vec::new();
    }
    run.tools.slurm.reservations().await.unwrap_or_default()
}

/// Plans all repairs, in the cloud and in Slurm. Also returns what was seen.
fn planned(
    run: &Run<'_>,
    memory: &Memory,
    reserved: &[Reservation],
    observation: &Observation,
) -> (Plan, Sightings) {
    let (plan, seen) = plan::reconcile(&memory.before, observation.world(run));
    let plan = without_reservations(plan, reserved, observation.world(run));
    let plan = match &memory.topology {
        Some(before) => {
            with_topology(plan, before, run.tools.slurm.version(), observation.world(run))
        }
        None => plan,
    };
    (plan, seen)
}

/// Returns the plan of [`reconcile`] without storing sightings.
pub async fn preview_reconcile(run: &Run<'_>) -> (Plan, Observation) {
    let mut observation = run.observe_with(SlurmQuery::NodesAndPerhapsJobs).await;
    run.find_silent_addresses(&mut observation).await;
    let memory = Memory::load(run);
    let reserved = reservations(run, &observation).await;
    let (plan, _) = planned(run, &memory, &reserved, &observation);
    observation.warnings.extend(memory.troubles);
    (plan, observation)
}

/// What earlier runs have left, and errors with it: without sightings, most repairs are never made.
struct Memory {
    before: Sightings,
    /// topology.conf, if there is one to keep. One that cannot be read is left as it is.
    topology: Option<Vec<u8>>,
    troubles: Vec<String>,
}

impl Memory {
    fn load(run: &Run<'_>) -> Self {
        let mut troubles = Vec::new();
        let text = run.tools.state.load(StateFile::Sightings).unwrap_or_else(|error| {
            troubles.push(format!("cannot read the sightings of the last run: {}", chain(&error)));
            None
        });
        let topology = run.tools.files.topology.as_ref().and_then(|path| {
            let before = atomic_write::read_followed(path);
            before.map_err(|error| troubles.push(chain(&error))).ok().map(Option::unwrap_or_default)
        });
        Self { before: read(text.as_deref()), topology, troubles }
    }

    fn store(&mut self, run: &Run<'_>, seen: &Sightings) {
        let text = written(seen);
        let changed = change_soon(run.tools.state, StateFile::Sightings, &mut |_| text.clone());
        let why = match changed {
            Ok(true) => return,
            Ok(false) => "another process is about it".to_owned(),
            Err(error) => chain(&error),
        };
        self.troubles.push(format!("cannot store sightings for the next run: {why}"));
    }
}

pub(crate) fn read(text: Option<&str>) -> Sightings {
    let stored: Vec<(String, String, u64)> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut sightings = Sightings::default();
    for (kind, subject, first) in stored {
        if let Some(kind) = FindingKind::from_word(&kind) {
            let first = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(first));
            sightings.see(kind, subject, first.unwrap_or(SystemTime::UNIX_EPOCH));
        }
    }
    sightings
}

fn written(sightings: &Sightings) -> String {
    let millis = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    };
    let all: Vec<(&str, &str, u64)> = sightings
        .iter()
        .map(|(kind, subject, first)| (kind.as_str(), subject, millis(first)))
        .collect();
    serde_json::to_string(&all).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_was_never_seen() {
        for text in [None, Some(""), Some("{}"), Some("[[\"weather\",\"n1\",5]]")] {
            assert!(read(text).is_empty(), "{text:?}");
        }
        let known = read(Some("[[\"orphan\",\"n1 i-1\",5]]"));
        let first = SystemTime::UNIX_EPOCH + Duration::from_millis(5);
        assert_eq!(known.first(FindingKind::Orphan, "n1 i-1"), Some(first));
    }
}
