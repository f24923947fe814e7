//! Jobs get their nodes whole or not at all: when one is returned to Slurm, the others are released.

use super::message::{Message, Taken};
use super::shared::Shared;
use crate::cause::Cause;
use crate::explain;
use crate::policies::OnPartial;
use crate::report::Outcome;
use hostlist::NodeName;
use slurmctl::{NodeAction, NodeState};
use std::collections::BTreeSet;

/// How a node is released that no job has, if it is up or on its way.
///
/// When one node of a job is returned, Slurm requeues the job, which then has no nodes. A node that still has a job has
/// another one. A node that is up may just have got another job, which ends first.
pub(super) fn how_to_release(state: &NodeState) -> Option<NodeAction> {
    match (state.has_job(), state.is_powering_up(), state.is_up()) {
        (false, true, _) => Some(NodeAction::PowerDownForce),
        (false, false, true) => Some(NodeAction::PowerDown),
        (true, _, _) | (false, false, false) => None,
    }
}

impl Shared<'_> {
    /// Tells the owners of the jobs that wait for a node why it does not come.
    pub(super) fn comment_jobs(&self, node: &NodeName, text: &str) {
        for group in self.groups.iter().filter(|group| group.nodes.contains(node)) {
            self.outbox.comment(group.job, explain::waits(group.job, text));
        }
    }

    /// Releases the other nodes of jobs that cannot get these.
    pub(super) fn release_jobs_of(&self, lost: &[NodeName]) {
        if self.site.policies.on_partial == OnPartial::Keep {
            return;
        }
        let lost: BTreeSet<&NodeName> = lost.iter().collect();
        let has_failed = |node: &NodeName| {
            let passed = self.passed.borrow();
            passed.reports.get(node).is_some_and(|report| {
                matches!(
                    report.outcome,
                    Outcome::ReturnedToSlurm | Outcome::Failed | Outcome::Refused
                )
            })
        };
        let is_lost = |node: &NodeName| lost.contains(node) || has_failed(node);
        let (broken, whole): (Vec<_>, Vec<_>) =
            self.groups.iter().partition(|group| group.nodes.iter().any(&is_lost));
        let needed: BTreeSet<&NodeName> = whole.iter().flat_map(|group| &group.nodes).collect();
        let by_these = broken.iter().filter(|group| group.nodes.iter().any(|it| lost.contains(it)));
        let others: BTreeSet<&NodeName> = by_these
            .flat_map(|group| &group.nodes)
            .filter(|node| !is_lost(node) && !needed.contains(node))
            .collect();
        let held = others.into_iter().filter(|node| self.hold(node));
        self.outbox.notify(Message::Release, held.cloned());
    }

    /// Interrupts the work on nodes that Slurm has taken back. Nodes that another job uses go on.
    pub(super) fn released(&self, nodes: &[NodeName], taken: &Taken) {
        for node in nodes {
            if taken.nodes.contains(node) {
                self.end_probes(node);
                self.release(node, taken.later.contains(node));
                let cause = Cause::JobIncomplete;
                self.note_returned(node, cause, cause.words());
            }
            self.unhold(node);
        }
    }
}
