//! Jobs that get their nodes whole or not at all.

use super::engine::Engine;
use super::work::Phase;
use crate::cause::Cause;
use crate::policies::OnPartial;
use crate::report::Outcome;
use hostlist::NodeName;
use slurmctl::{NodeAction, NodeState};
use std::collections::BTreeSet;

/// How a node is released that no job has, if it is up or on its way.
///
/// When one node of a job is given back, Slurm requeues the job, which then has no node any more. A
/// node that still has a job has another one. One that is up may have got another just now, which ends first.
pub(super) fn release(state: &NodeState) -> Option<NodeAction> {
    match (state.has_job(), state.is_powering_up(), state.is_up()) {
        (false, true, _) => Some(NodeAction::PowerDownForce),
        (false, false, true) => Some(NodeAction::PowerDown),
        (true, _, _) | (false, false, false) => None,
    }
}

impl Engine<'_> {
    /// Tells the owners of the jobs that wait for a node why it does not come.
    pub(super) fn comment_jobs(&mut self, node: &NodeName, text: &str) {
        let jobs = self.groups.iter().filter(|group| group.nodes.contains(node));
        for job in jobs.map(|group| group.job).collect::<Vec<_>>() {
            self.desk.comment(job, format!("{node}: {text}"));
        }
    }

    /// Releases the other nodes of jobs that cannot get these.
    pub(super) fn release_groups(&mut self, lost: &[NodeName]) {
        if self.site.policies.on_partial == OnPartial::Keep {
            return;
        }
        let lost: BTreeSet<&NodeName> = lost.iter().collect();
        let is_lost = |node: &NodeName| {
            lost.contains(node)
                || self.passed.reports.get(node).is_some_and(|report| {
                    matches!(
                        report.outcome,
                        Outcome::GivenBack | Outcome::Failed | Outcome::Refused
                    )
                })
        };
        let (broken, whole): (Vec<_>, Vec<_>) =
            self.groups.iter().partition(|group| group.nodes.iter().any(&is_lost));
        let needed: BTreeSet<&NodeName> = whole.iter().flat_map(|group| &group.nodes).collect();
        let mut released = BTreeSet::new();
        for group in
            broken.iter().filter(|group| group.nodes.iter().any(|node| lost.contains(node)))
        {
            let others =
                group.nodes.iter().filter(|node| !is_lost(node) && !needed.contains(*node));
            released.extend(others.cloned());
        }
        released.retain(|node| self.is_held_up(node));
        for node in &released {
            if let Some(work) = self.works.get_mut(node) {
                work.held = true;
            }
        }
        if !released.is_empty() {
            self.desk.release(released, Cause::JobIncomplete.words());
        }
    }

    /// True if the node is up or on its way.
    fn is_held_up(&self, node: &NodeName) -> bool {
        match self.works.get(node) {
            Some(work) => {
                !work.held && !matches!(work.phase, Phase::Over(outcome) if outcome != Outcome::Up)
            }
            None => {
                self.passed.reports.get(node).is_some_and(|report| report.outcome == Outcome::Up)
            }
        }
    }
}
