//! The calls by which Slurm is told, and asked, about many nodes at once.

use super::outbox::Verdict;
use super::tools::Tools;
use crate::plan::{is_wanted_again, ours};
use hostlist::{Hostlist, NodeName};
use slurmctl::{NodeAction, NodeState, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// What Slurm took back, and what it did not because it is in use.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) nodes: BTreeSet<NodeName>,
    /// Those of them that it may yet have a job on: it calls our stop program when that has ended.
    pub(super) later: BTreeSet<NodeName>,
    pub(super) in_use: BTreeSet<NodeName>,
}

impl Taken {
    pub(super) fn verdict(&self, node: &NodeName) -> Verdict {
        if self.nodes.contains(node) {
            Verdict::Taken
        } else if self.in_use.contains(node) {
            Verdict::InUse
        } else {
            Verdict::Idle
        }
    }
}

/// Powers down those of the nodes that are as they should be for it; Slurm may have gone on.
pub(super) async fn take_back(
    tools: &Tools<'_>,
    nodes: impl IntoIterator<Item = &NodeName>,
    reason: &Reason,
    how: impl Fn(&NodeState) -> Option<NodeAction>,
) -> slurmctl::Result<Taken> {
    let list: Hostlist = nodes.into_iter().collect();
    let mut taken = Taken::default();
    let mut actions: BTreeMap<(NodeAction, bool), Hostlist> = BTreeMap::new();
    for node in tools.slurm.nodes(Some(&list)).await? {
        let Some(action) = how(&node.state) else {
            if node.state.is_up() || node.state.has_job() {
                taken.in_use.insert(node.name);
            }
            continue;
        };
        actions.entry((action, ours(&node))).or_default().push(node.name.as_str());
        if action != NodeAction::PowerDownForce {
            taken.later.insert(node.name.clone());
        }
        taken.nodes.insert(node.name);
    }
    // What waits for jobs first: if it gets no answer, nothing is done yet, and all of it is said again.
    for ((action, drained), nodes) in actions.into_iter().rev() {
        // The reason of a drain of ours stays, so that it is known again as ours.
        let reason = Some(reason).filter(|_| !drained);
        tools.slurm.set_state(&nodes, action, reason).await?;
    }
    Ok(taken)
}

/// Those of the nodes that Slurm wants again.
pub(super) async fn wanted_again(
    tools: &Tools<'_>,
    nodes: impl IntoIterator<Item = &NodeName>,
) -> slurmctl::Result<Taken> {
    let known = tools.slurm.nodes(Some(&nodes.into_iter().collect())).await?;
    let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
    Ok(Taken { nodes: wanted.map(|node| node.name).collect(), ..Taken::default() })
}
