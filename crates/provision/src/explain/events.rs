//! What the events say of a node, a pool or a job.

use super::facts::Facts;
use super::reported::Reported;
use super::{Explanation, ago};
use crate::site::Pool;
use history::{Event, EventKind};
use hostlist::NodeName;
use slurmctl::JobId;
use std::time::{Duration, SystemTime};

/// Most events that are shown for one node.
const MOST_SHOWN: usize = 3;

/// How often a pool has said no since it last gave a machine, and since when.
pub(super) fn refusals(pool: &Pool, facts: &Facts<'_>) -> Option<(usize, SystemTime)> {
    let name = pool.to_string();
    let mut refused: Vec<u64> = Vec::new();
    for event in facts.events.iter().flatten().filter(|event| event.place().to_string() == name) {
        match event.event {
            EventKind::Launched | EventKind::Started => refused.clear(),
            EventKind::Cooling => refused.push(event.at),
            _ => {}
        }
    }
    refused.first().map(|first| (refused.len(), time(*first)))
}

/// Why one of these nodes was last returned to Slurm, if it was for this job.
pub(super) fn last_return(job: JobId, nodes: &[NodeName], facts: &Facts<'_>) -> Option<Reported> {
    let of_job = |event: &&Event| {
        event.event == EventKind::ReturnedToSlurm
            && event.node.as_ref().is_some_and(|node| nodes.iter().any(|it| it.as_str() == node))
            && event.jobs.contains(&job.get())
    };
    let last = facts.events.iter().flatten().rfind(of_job)?;
    last.detail.as_deref().map(Reported::of)
}

/// Adds what last happened to a node.
pub(super) fn see_events(explanation: &mut Explanation, node: &NodeName, facts: &Facts<'_>) {
    let of_node = |event: &&Event| event.node.as_deref() == Some(node.as_str());
    let events: Vec<&Event> = facts.events.iter().flatten().filter(of_node).collect();
    for event in events.iter().skip(events.len().saturating_sub(MOST_SHOWN)) {
        let detail = event.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let (ago, what) = (ago(time(event.at), facts.now), event.event.as_str());
        explanation.see("event", format!("{ago} ago, {node} {what}{detail}"));
    }
}

fn time(millis: u64) -> SystemTime {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    at.unwrap_or(SystemTime::UNIX_EPOCH)
}
