//! Cloud, Slurm and slurm.conf are to agree.

use super::Run;
use super::observe::{Observation, SlurmQuery};
use super::pass::without;
use super::telemetry::Telemetry;
use crate::failure::chain;
use crate::plan::{self, FindingKind, Plan, Sightings, Step};
use crate::report::Report;
use crate::state::{Document, change_soon};
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Puts right what does not fit, and remembers what has been seen for the first time.
///
/// Nodes that another process has in hand are left alone. What is to be done is worked out again
/// once the nodes are locked: between the observation and the lock a node may have come up.
pub async fn reconcile(run: &Run<'_>) -> Report {
    let begun = run.begun("reconcile");
    let mut memory = Memory::load(run);
    let (mut report, telemetry) = mend(run, &mut memory, run.deadline(begun)).await;
    report.failures.append(&mut memory.troubles);
    report.took = Instant::now().saturating_duration_since(begun);
    telemetry.finish(run, &mut report);
    run.ended(report, begun)
}

async fn mend(run: &Run<'_>, memory: &mut Memory, deadline: Instant) -> (Report, Telemetry) {
    let mut observation = run.observe_with(SlurmQuery::NodesAndPerhapsJobs).await;
    run.find_silent_addresses(&mut observation).await;
    let (first, seen) = plan::reconcile(&memory.before, observation.world(run));
    let nodes: BTreeSet<NodeName> = first.steps().flat_map(Step::nodes).cloned().collect();
    let nodes: Vec<NodeName> = nodes.into_iter().collect();
    if first.is_idle() {
        memory.store(run, &seen);
        let telemetry = Telemetry::of(&observation, run.site);
        return (run.act(&first, observation, BTreeMap::new(), deadline).await, telemetry);
    }
    let mut locked = run.lock(&nodes, Instant::now()).await;
    // A squeue that does not answer is not waited for once more while a start may want one of the nodes.
    let (asked, warnings) = match &observation.jobs {
        Some(_) => (SlurmQuery::NodesAndPerhapsJobs, Vec::new()),
        None => (SlurmQuery::Nodes, observation.warnings),
    };
    let mut observation = run.observe_nodes(&mut locked.locks, asked, deadline).await;
    observation.warnings.extend(warnings);
    run.find_silent_addresses(&mut observation).await;
    let (mut plan, seen) = plan::reconcile(&memory.before, observation.world(run));
    memory.store(run, &seen);
    let ours = |node: &NodeName| locked.locks.contains_key(node);
    let others: Vec<NodeName> =
        plan.steps().flat_map(Step::nodes).filter(|node| !ours(node)).cloned().collect();
    without(&mut plan, &others);
    let telemetry = Telemetry::of(&observation, run.site);
    (run.act(&plan, observation, locked.locks, deadline).await, telemetry)
}

/// What reconcile would do now, and remembers nothing.
pub async fn preview_reconcile(run: &Run<'_>) -> (Plan, Observation) {
    let mut observation = run.observe_with(SlurmQuery::NodesAndPerhapsJobs).await;
    run.find_silent_addresses(&mut observation).await;
    let memory = Memory::load(run);
    let (plan, _) = plan::reconcile(&memory.before, observation.world(run));
    observation.warnings.extend(memory.troubles);
    (plan, observation)
}

/// What the runs before have seen, one line each, and what is wrong with the memory: where it is lost
/// from each run to the next, most things are never put right.
struct Memory {
    before: Sightings,
    troubles: Vec<String>,
}

impl Memory {
    fn load(run: &Run<'_>) -> Self {
        match run.tools.state.load(Document::Sightings) {
            Ok(text) => Self { before: read(text.as_deref()), troubles: Vec::new() },
            Err(error) => {
                let text = format!("what was seen before could not be read: {}", chain(&error));
                Self { before: Sightings::default(), troubles: vec![text] }
            }
        }
    }

    fn store(&mut self, run: &Run<'_>, seen: &Sightings) {
        let text = written(seen);
        let changed = change_soon(run.tools.state, Document::Sightings, &mut |_| text.clone());
        let why = match changed {
            Ok(true) => return,
            Ok(false) => "another process is about it".to_owned(),
            Err(error) => chain(&error),
        };
        self.troubles.push(format!("what is seen now could not be stored for the next run: {why}"));
    }
}

fn read(text: Option<&str>) -> Sightings {
    let stored: Vec<(String, String, u64)> =
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut sightings = Sightings::default();
    for (kind, subject, first) in stored {
        if let Some(kind) = FindingKind::from_name(&kind) {
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
