//! The calls by which Slurm is told, and asked, about many nodes at once.

use super::outbox::Verdict;
use super::whole_jobs::how_to_release;
use crate::plan::{held, is_drained_by_us, is_wanted_again};
use crate::tools::Tools;
use hostlist::{Hostlist, NodeName};
use slurmctl::{JobId, Node, NodeAction, NodeAddress, NodeState, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// What Slurm took back, and what it did not because it is in use.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) nodes: BTreeSet<NodeName>,
    /// Those of them that it may yet have a job on: it calls our stop program when that has ended.
    pub(super) later: BTreeSet<NodeName>,
    in_use: BTreeSet<NodeName>,
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

/// How a node has to stand at the last moment to be powered down: Slurm may have gone on since it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Still {
    /// Powering up: nobody has come to need it.
    PoweringUp,
    /// Up or on its way, without a job.
    Unused,
    /// On, whatever runs there: an operator has decided.
    On,
    /// On, and not heard of: whoever answers again may have kept its job.
    Silent,
    /// Waited for, or given up by Slurm: not one that has come up in the meantime.
    Awaited,
}

impl Still {
    /// How a node in this state is powered down, if it is.
    fn action(self, state: &NodeState) -> Option<NodeAction> {
        let is_on = !state.is_powered_down() && !state.is_powering_down();
        let holds = match self {
            Self::PoweringUp => state.is_powering_up(),
            Self::Unused => return how_to_release(state),
            Self::On => is_on,
            Self::Silent => is_on && !state.is_up(),
            Self::Awaited => is_on && !state.is_up() && (state.is_powering_up() || state.is_down()),
        };
        holds.then_some(NodeAction::PowerDownForce)
    }
}

/// What Slurm is told, or asked, about nodes; in the order in which it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Notification {
    /// They are off, if they still stand like that.
    Return(Still, Reason),
    /// Where they are.
    Addresses,
    /// They take new jobs again, where the drain is still ours.
    Undrain,
    /// They are back in service, where they are still down and nobody holds them.
    ReturnToService,
    /// Whether it wants them again.
    Confirm,
    /// Why a job waits.
    Comment(JobId, String),
}

impl Notification {
    /// Makes one call about these nodes.
    pub(super) async fn send<'n>(
        &self,
        tools: &Tools<'_>,
        nodes: impl IntoIterator<Item = &'n NodeName>,
        addresses: &[NodeAddress],
    ) -> slurmctl::Result<Taken> {
        let nodes: Hostlist = nodes.into_iter().collect();
        let taken = match self {
            Self::Return(still, reason) => return power_down(tools, &nodes, *still, reason).await,
            Self::Addresses => {
                tools.slurm.set_addresses(addresses).await?;
                BTreeSet::new()
            }
            Self::Undrain => put_back(tools, &nodes, NodeAction::Undrain, is_drained_by_us).await?,
            Self::ReturnToService => {
                let is_free = |node: &Node| node.state.is_down() && held(node).is_none();
                put_back(tools, &nodes, NodeAction::Resume, is_free).await?
            }
            Self::Confirm => {
                let known = tools.slurm.nodes(Some(&nodes)).await?;
                let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
                wanted.map(|node| node.name).collect()
            }
            Self::Comment(job, text) => {
                tools.slurm.comment(*job, text).await?;
                BTreeSet::new()
            }
        };
        Ok(Taken { nodes: taken, ..Taken::default() })
    }

    /// True if it can be said again one by one, to learn whom Slurm refuses: the others have been
    /// changed by then, and what is in service again is not returned to it twice.
    pub(super) fn is_repeatable(&self) -> bool {
        match self {
            Self::Return(..) | Self::Addresses | Self::Undrain | Self::Confirm => true,
            Self::ReturnToService | Self::Comment(..) => false,
        }
    }
}

/// Powers down those of the nodes that are as they should be for it.
async fn power_down(
    tools: &Tools<'_>,
    nodes: &Hostlist,
    still: Still,
    reason: &Reason,
) -> slurmctl::Result<Taken> {
    let mut taken = Taken::default();
    let mut actions: BTreeMap<(NodeAction, bool), Hostlist> = BTreeMap::new();
    for node in tools.slurm.nodes(Some(nodes)).await? {
        let Some(action) = still.action(&node.state) else {
            if node.state.is_up() || node.state.has_job() {
                taken.in_use.insert(node.name);
            }
            continue;
        };
        actions.entry((action, is_drained_by_us(&node))).or_default().push(node.name.as_str());
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

/// Lets jobs onto those of the nodes again that may still have them: since they were observed, jobs may have been waited
/// for, and an administrator may have come to hold a node.
async fn put_back(
    tools: &Tools<'_>,
    nodes: &Hostlist,
    to: NodeAction,
    wanted: fn(&Node) -> bool,
) -> slurmctl::Result<BTreeSet<NodeName>> {
    let mut known = tools.slurm.nodes(Some(nodes)).await?;
    known.retain(wanted);
    let names: BTreeSet<NodeName> = known.into_iter().map(|node| node.name).collect();
    if !names.is_empty() {
        tools.slurm.set_state(&names.iter().collect(), to, None).await?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(still: Still, state: &str) -> Option<bool> {
        state.parse().ok().map(|state| still.action(&state).is_some())
    }

    #[test]
    fn a_node_that_came_up_meanwhile_is_not_powered_down() {
        for waits in ["ALLOCATED+CLOUD+POWERING_UP", "DOWN+CLOUD+NOT_RESPONDING"] {
            assert_eq!(holds(Still::Awaited, waits), Some(true), "{waits}");
        }
        for up in ["IDLE+CLOUD", "ALLOCATED+CLOUD", "MIXED+CLOUD", "DOWN+CLOUD+POWERED_DOWN"] {
            assert_eq!(holds(Still::Awaited, up), Some(false), "{up}");
        }
    }

    #[test]
    fn a_ghost_that_answers_again_is_not_powered_down() {
        for silent in ["ALLOCATED+CLOUD+NOT_RESPONDING", "DOWN+CLOUD", "IDLE+CLOUD+NOT_RESPONDING"]
        {
            assert_eq!(holds(Still::Silent, silent), Some(true), "{silent}");
        }
        for up in ["IDLE+CLOUD", "ALLOCATED+CLOUD", "MIXED+CLOUD", "DOWN+CLOUD+POWERED_DOWN"] {
            assert_eq!(holds(Still::Silent, up), Some(false), "{up}");
        }
    }
}
