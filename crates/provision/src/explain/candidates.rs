//! The nodes that could run a job.

use super::condition::Condition;
use super::facts::Facts;
use super::slurm_reason::nodes as count_nodes;
use crate::order;
use hostlist::{Hostlist, NodeName};
use slurmctl::{Job, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// The nodes that could run a job, each with what it can do for it.
#[derive(Debug)]
pub(super) struct Candidates(pub(super) Vec<(NodeName, Condition)>);

impl Candidates {
    /// The nodes of the job's partitions with its features or, if it names nodes, those.
    pub(super) fn of(job: &Job, known: &BTreeMap<NodeName, Node>, facts: &Facts<'_>) -> Self {
        let lists = job.partition.split(',').filter_map(|name| facts.conf.partition(name));
        let members: BTreeSet<NodeName> =
            lists.flat_map(|list| list.node_names().unwrap_or_default()).collect();
        let fits = |name: &NodeName| {
            let node = known.get(name);
            job.wanted.is_empty() && node.is_none_or(|node| has_features(job, node))
                || job.wanted.contains(name.as_str())
        };
        let fitting = order::by_number(members.into_iter().filter(fits));
        // What Slurm hides is powered down.
        let condition = |name: &NodeName| {
            known.get(name).map_or(Condition::Off(None), |node| Condition::of(node, facts))
        };
        Self(fitting.into_iter().map(|name| (name.clone(), condition(&name))).collect())
    }

    /// How many nodes a job may get now or when they are free.
    pub(super) fn in_service(&self) -> usize {
        self.0.iter().filter(|(_, condition)| condition.is_in_service()).count()
    }

    /// How many nodes are in such a condition.
    pub(super) fn count(&self, is_such: impl Fn(&Condition) -> bool) -> usize {
        self.0.iter().filter(|(_, condition)| is_such(condition)).count()
    }

    /// What keeps most of the nodes that are out of service, by the first of them.
    pub(super) fn blocker(&self) -> Option<&(NodeName, Condition)> {
        let out = || self.0.iter().filter(|(_, condition)| !condition.is_in_service());
        let alike = |label| out().filter(|(_, other)| other.label() == label).count();
        // The first of those that keep as many.
        out().rev().max_by_key(|(_, condition)| alike(condition.label()))
    }

    /// The start that failed last.
    pub(super) fn last_failure(&self) -> Option<&(NodeName, Condition)> {
        let at = |condition: &Condition| match condition {
            Condition::Off(Some(failed)) => Some(failed.at.unwrap_or(SystemTime::UNIX_EPOCH)),
            _ => None,
        };
        let failed = self.0.iter().filter(|(_, condition)| at(condition).is_some());
        failed.max_by_key(|(_, condition)| at(condition))
    }

    /// Which nodes are in which condition, as one sentence.
    pub(super) fn tally(&self, job: &Job) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for (_, condition) in &self.0 {
            match counts.iter_mut().find(|(label, _)| *label == condition.label()) {
                Some((_, count)) => *count += 1,
                None => counts.push((condition.label(), 1)),
            }
        }
        let counts: Vec<String> =
            counts.iter().map(|(label, count)| format!("{count} {label}")).collect();
        let (needs, partition) = (count_nodes(job.node_count), &job.partition);
        let named = if job.wanted.is_empty() { "that fit" } else { "that it names" };
        match &counts[..] {
            [] => format!("It needs {needs}; partition {partition} has none {named}."),
            counts => format!(
                "It needs {needs}; of those of partition {partition} {named}, {}.",
                counts.join(", ")
            ),
        }
    }

    /// The nodes, folded by condition, for evidence.
    pub(super) fn folded(&self) -> Vec<(String, &Condition)> {
        let mut groups: Vec<(Hostlist, &Condition)> = Vec::new();
        for (name, condition) in &self.0 {
            match groups.iter_mut().find(|(_, known)| *known == condition) {
                Some((list, _)) => list.push(name.as_str()),
                None => groups.push((std::iter::once(name).collect(), condition)),
            }
        }
        groups.into_iter().map(|(list, condition)| (list.to_string(), condition)).collect()
    }
}

/// True if the node has the features that a job names; what is more than a list of them is left to Slurm.
fn has_features(job: &Job, node: &Node) -> bool {
    let Some(features) = &job.features else { return true };
    let plain = |character: char| !"|()[]*!,".contains(character);
    !features.chars().all(plain)
        || features.split('&').all(|wanted| node.features.iter().any(|has| has == wanted))
}
