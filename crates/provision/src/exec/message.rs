//! Messages to Slurm, each about many nodes in one call.

use super::whole_jobs::how_to_release;
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::{
    Notification, Reload, Still, held, is_drained_by_us, is_for_replacement, is_wanted_again,
    our_reason,
};
use crate::tools::Tools;
use hostlist::{Hostlist, NodeName};
use slurmctl::{Node, NodeAction, NodeAddress, Reason, StateFlag};
use std::collections::{BTreeMap, BTreeSet};

/// What Slurm did about one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It did what was asked. Asked whether it wants the node again, it does.
    Taken,
    /// Nothing: the node is up, or has a job.
    InUse,
    /// Nothing: the node is neither up nor on its way.
    Idle,
    /// Slurm does not answer, or was not asked.
    Unanswered,
}

/// What Slurm did about the nodes of a call.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) nodes: BTreeSet<NodeName>,
    /// Those that may still have a job: Slurm calls our stop program when it has ended.
    pub(super) later: BTreeSet<NodeName>,
    in_use: BTreeSet<NodeName>,
}

impl Taken {
    fn of(nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { nodes: nodes.into_iter().collect(), ..Self::default() }
    }

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

impl Still {
    /// How a node in this state is powered down, if it is.
    fn action(self, node: &Node) -> Option<NodeAction> {
        let state = &node.state;
        let is_on = !state.is_powered_down() && !state.is_powering_down();
        let holds = match self {
            Self::PoweringUp => state.is_powering_up(),
            Self::Unused => return how_to_release(state),
            Self::On => is_on,
            Self::Silent => is_on && !state.is_up(),
            Self::Condemned => is_on && !state.has_job() && is_for_replacement(node),
            Self::Awaited => is_on && !state.is_up() && (state.is_powering_up() || state.is_down()),
        };
        holds.then_some(NodeAction::PowerDownForce)
    }
}

/// What goes to Slurm in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A notification of the plan.
    Notify(Notification),
    /// Asks whether Slurm wants nodes again.
    Confirm,
    /// The addresses of nodes.
    Addresses,
    /// Nodes are off, because their job cannot get all of its nodes.
    Release,
}

impl From<Notification> for Message {
    fn from(notification: Notification) -> Self {
        Self::Notify(notification)
    }
}

/// How a message is delivered.
pub(super) struct Delivery {
    /// The lower, the more urgent.
    pub(super) rank: u8,
    pub(super) on_failure: OnFailure,
}

/// What is done when slurmctld did not answer a call, or refused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnFailure {
    /// It is not sent again: nobody knows what it has done.
    GiveUp,
    /// It is sent again if slurmctld did not answer.
    Repeat,
    /// It is sent again if slurmctld did not answer, and node by node if slurmctld refused it, to learn which nodes it
    /// refuses. The others have changed by then.
    Divide,
}

impl Message {
    pub(super) fn notification(&self) -> Option<&Notification> {
        match self {
            Self::Notify(notification) => Some(notification),
            Self::Confirm | Self::Addresses | Self::Release => None,
        }
    }

    pub(super) fn of_failure(failure: &Failure) -> Self {
        let (still, cause) = (Still::PoweringUp, failure.cause);
        let reason = our_reason(&failure.text);
        Self::Notify(Notification::ReturnToSlurm { still, cause, reason })
    }

    /// How urgent it is, and what is done when it fails. Failed nodes come first, so that their jobs are requeued, then
    /// nodes that are up. Whoever is powered down or put in service is asked for its state first, so that it may be
    /// sent again; but a node in service is not returned to it twice.
    pub(super) fn delivery(&self) -> Delivery {
        use Notification::{
            Comment, Condemn, Drain, Reboot, ReleaseReservation, Reload, ReturnToService,
            ReturnToSlurm, SetTopology, Submit, Undrain,
        };
        let (rank, on_failure) = match self {
            Self::Notify(ReturnToSlurm { .. }) => (0, OnFailure::Divide),
            Self::Confirm => (1, OnFailure::Repeat),
            Self::Addresses => (2, OnFailure::Divide),
            Self::Release => (3, OnFailure::Repeat),
            Self::Notify(Drain { .. } | Undrain) => (4, OnFailure::Divide),
            Self::Notify(Condemn { .. } | ReturnToService) => (4, OnFailure::Repeat),
            Self::Notify(Reboot(_) | Submit(_) | Reload(_)) => (5, OnFailure::GiveUp),
            Self::Notify(SetTopology(_)) => (6, OnFailure::Divide),
            Self::Notify(ReleaseReservation | Comment(..)) => (6, OnFailure::Repeat),
        };
        Delivery { rank, on_failure }
    }

    /// Makes one call about these nodes.
    pub(super) async fn send(
        &self,
        tools: &Tools<'_>,
        nodes: &[NodeName],
        addresses: &[NodeAddress],
    ) -> slurmctl::Result<Taken> {
        let (slurm, list) = (tools.slurm, nodes.iter().collect::<Hostlist>());
        match self {
            Self::Notify(notification) => return notify(tools, notification, nodes).await,
            Self::Release => {
                let reason = our_reason(Cause::JobIncomplete.words());
                return power_down(tools, &list, Still::Unused, &reason).await;
            }
            Self::Confirm => {
                let known = slurm.nodes(Some(&list)).await?;
                let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
                return Ok(Taken::of(wanted.map(|node| node.name)));
            }
            Self::Addresses => slurm.set_addresses(addresses).await?,
        }
        Ok(Taken::of(nodes.iter().cloned()))
    }
}

/// Tells Slurm something about these nodes.
async fn notify(
    tools: &Tools<'_>,
    notification: &Notification,
    nodes: &[NodeName],
) -> slurmctl::Result<Taken> {
    let (slurm, list) = (tools.slurm, nodes.iter().collect::<Hostlist>());
    match notification {
        Notification::ReturnToSlurm { still, reason, .. } => {
            return power_down(tools, &list, *still, reason).await;
        }
        Notification::Drain { reason, only_asleep: true } => {
            return change(tools, &list, NodeAction::Drain, Some(reason), is_asleep).await;
        }
        Notification::Condemn { seen, reason } => {
            let is_so = |node: &Node| {
                let out = node.state.has_drain() || node.state.has(&StateFlag::Fail);
                out && node.reason_text() == seen
            };
            return change(tools, &list, NodeAction::Drain, Some(reason), is_so).await;
        }
        Notification::Undrain => {
            return change(tools, &list, NodeAction::Undrain, None, is_drained_by_us).await;
        }
        Notification::ReturnToService => {
            let is_free = |node: &Node| node.state.is_down() && held(node).is_none();
            return change(tools, &list, NodeAction::Resume, None, is_free).await;
        }
        Notification::ReleaseReservation => {
            for node in nodes {
                slurm.release_reservation(node).await?;
            }
        }
        Notification::SetTopology(place) => slurm.set_topology(&list, place).await?,
        Notification::Drain { reason, only_asleep: false } => {
            slurm.set_state(&list, NodeAction::Drain, Some(reason)).await?;
        }
        Notification::Reboot(reason) => slurm.reboot(&list, reason).await?,
        Notification::Submit(job) => drop(slurm.submit(job).await?),
        Notification::Comment(job, text) => slurm.comment(*job, text).await?,
        Notification::Reload(Reload::Reconfigure) => slurm.reconfigure().await?,
        Notification::Reload(Reload::Restart) => slurm.restart().await?,
    }
    Ok(Taken::of(nodes.iter().cloned()))
}

/// True for a powered-down node that nobody else holds: an administrator's reason for a drain would be lost.
fn is_asleep(node: &Node) -> bool {
    let state = &node.state;
    state.is_powered_down() && !(state.has_drain() || state.has_job() || state.is_down())
}

/// Powers down those of the nodes that are still in the required state.
async fn power_down(
    tools: &Tools<'_>,
    nodes: &Hostlist,
    still: Still,
    reason: &Reason,
) -> slurmctl::Result<Taken> {
    let mut taken = Taken::default();
    let mut actions: BTreeMap<(NodeAction, bool), Hostlist> = BTreeMap::new();
    for node in tools.slurm.nodes(Some(nodes)).await? {
        let Some(action) = still.action(&node) else {
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
    // What waits for jobs comes first: if it gets no answer, nothing is done yet, and all of it is repeated.
    for ((action, drained), nodes) in actions.into_iter().rev() {
        // A drain of ours keeps its reason, by which it is recognized.
        let reason = Some(reason).filter(|_| !drained);
        tools.slurm.set_state(&nodes, action, reason).await?;
    }
    Ok(taken)
}

/// Changes the state of those of the nodes that still qualify: since they were observed, jobs may have been
/// waited for, and an administrator may hold a node.
async fn change(
    tools: &Tools<'_>,
    nodes: &Hostlist,
    to: NodeAction,
    reason: Option<&Reason>,
    qualifies: impl Fn(&Node) -> bool,
) -> slurmctl::Result<Taken> {
    let mut known = tools.slurm.nodes(Some(nodes)).await?;
    known.retain(|node| qualifies(node));
    let taken = Taken::of(known.into_iter().map(|node| node.name));
    if !taken.nodes.is_empty() {
        tools.slurm.set_state(&taken.nodes.iter().collect(), to, reason).await?;
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(still: Still, state: &str) -> Option<bool> {
        let node = |state| Node::new(NodeName::new("n1").unwrap(), state);
        state.parse().ok().map(|state| still.action(&node(state)).is_some())
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
