//! What Slurm is told of many nodes in one call.

use super::notification::{Taken, take_back};
use super::stage::Executor;
use super::steps::list;
use super::tools::Tools;
use crate::cause::Cause;
use crate::plan::{FindingKind, Operation, Return, Step, held, ours};
use crate::report::{NodeReport, Outcome};
use crate::state::{EventKind, cooldowns};
use hostlist::NodeName;
use slurmctl::{ErrorKind, Node, NodeAction, NodeAddress, NodeState, Reason};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::slice::from_ref;
use tokio::time::Instant;

/// Steps that go together, by what is said.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    nodes: BTreeMap<Saying, Vec<NodeName>>,
    places: BTreeMap<NodeName, IpAddr>,
}

impl Gathered {
    fn add(&mut self, saying: Saying, nodes: impl IntoIterator<Item = NodeName>) {
        self.nodes.entry(saying).or_default().extend(nodes);
    }
}

/// What is said, in the order in which it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Saying {
    /// Off with them, if they still stand like that.
    GiveBack(Still, Reason),
    /// Where they are.
    Places,
    /// New jobs again, where the drain is still ours.
    Undrain,
    /// Back in service, where they are still down and nobody holds them.
    Return,
}

/// How a node has to stand at the last moment to be given back: Slurm may have gone on since the look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Still {
    /// On, whatever runs there: an operator has decided.
    On,
    /// On, and not heard of: whoever answers again may have kept its job.
    Silent,
    /// Waited for, or given up by Slurm: not one that has come up in the meantime.
    Awaited,
}

impl Still {
    fn test(self) -> fn(&NodeState) -> bool {
        match self {
            Self::On => is_on,
            Self::Silent => |state| is_on(state) && !state.is_up(),
            Self::Awaited => |state| {
                is_on(state) && !state.is_up() && (state.is_powering_up() || state.is_down())
            },
        }
    }
}

fn is_on(state: &NodeState) -> bool {
    !state.is_powered_down() && !state.is_powering_down()
}

impl Saying {
    /// One call about these nodes.
    async fn say(
        &self,
        tools: &Tools<'_>,
        nodes: &[NodeName],
        places: &BTreeMap<NodeName, IpAddr>,
    ) -> slurmctl::Result<Taken> {
        match self {
            Self::GiveBack(still, reason) => {
                let stands = still.test();
                let how = |state: &NodeState| stands(state).then_some(NodeAction::PowerDownForce);
                take_back(tools, nodes, reason, how).await
            }
            Self::Places => {
                let known = nodes.iter().filter_map(|node| Some((node, *places.get(node)?)));
                let told = known.map(|(node, place)| NodeAddress::new(node.clone(), place));
                tools.slurm.set_addresses(&told.collect::<Vec<_>>()).await?;
                Ok(Taken::default())
            }
            Self::Undrain => release(tools, nodes, NodeAction::Undrain, ours).await,
            Self::Return => {
                let free = |node: &Node| node.state.is_down() && held(node).is_none();
                release(tools, nodes, NodeAction::Resume, free).await
            }
        }
    }

    /// True if it can be said again one by one, to learn whom Slurm refuses: the others have been
    /// changed by then, and what is in service again is not returned to it twice.
    fn is_repeatable(&self) -> bool {
        match self {
            Self::GiveBack(..) | Self::Places | Self::Undrain => true,
            Self::Return => false,
        }
    }
}

/// Lets jobs onto those of the nodes again that may still have them: since the look, jobs may have been waited for, and
/// an administrator may have come to hold a node.
async fn release(
    tools: &Tools<'_>,
    nodes: &[NodeName],
    to: NodeAction,
    wanted: fn(&Node) -> bool,
) -> slurmctl::Result<Taken> {
    let mut known = tools.slurm.nodes(Some(&list(nodes))).await?;
    known.retain(wanted);
    let names: Vec<NodeName> = known.into_iter().map(|node| node.name).collect();
    if !names.is_empty() {
        tools.slurm.set_state(&list(&names), to, None).await?;
    }
    Ok(Taken { nodes: names.into_iter().collect(), ..Taken::default() })
}

impl Executor<'_> {
    /// Puts a step to those that say the same; gives it back if it is another's.
    pub(super) fn gather(&self, step: Step, all: &mut Gathered) -> Option<Step> {
        match step {
            Step::ReturnToService { node } => all.add(Saying::Return, [node]),
            Step::Undrain { nodes } => all.add(Saying::Undrain, nodes),
            Step::SetAddress { node, address } => {
                all.places.insert(node.clone(), address);
                all.add(Saying::Places, [node]);
            }
            Step::GiveBack { node, reason, how: Return::PowerDown, .. } => {
                let still = self.still(&node);
                all.add(Saying::GiveBack(still, reason), [node]);
            }
            step => return Some(step),
        }
        None
    }

    fn still(&self, node: &NodeName) -> Still {
        match self.report.operation {
            Operation::Finish | Operation::Resize => Still::On,
            Operation::Reconcile if self.has_found(FindingKind::Ghost, node) => Still::Silent,
            Operation::Reconcile
            | Operation::Start
            | Operation::Stop
            | Operation::StopAll
            | Operation::Failed
            | Operation::Rebuild
            | Operation::Rollout
            | Operation::Deploy => Still::Awaited,
        }
    }

    /// Says all of it, a call for each thing to say.
    pub(super) async fn say(&mut self, Gathered { nodes, places }: Gathered) {
        for (saying, nodes) in nodes {
            if self.breaks_off(&nodes) {
                continue;
            }
            let tools = self.tools;
            let result = saying.say(tools, &nodes, &places).await;
            let refused =
                result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Unavailable);
            if refused && nodes.len() > 1 && saying.is_repeatable() {
                for node in nodes.iter().map(from_ref) {
                    if !self.breaks_off(node) {
                        let result = saying.say(tools, node, &places).await;
                        self.heard(&saying, node, result);
                    }
                }
            } else {
                self.heard(&saying, &nodes, result);
            }
            self.done_with(&nodes);
        }
    }

    /// Notes what became of it.
    fn heard(&mut self, saying: &Saying, nodes: &[NodeName], result: slurmctl::Result<Taken>) {
        match (saying, &result) {
            (Saying::GiveBack(_, reason), Ok(taken)) => {
                for node in &taken.nodes {
                    self.tools.note_node(EventKind::GivenBack, node, reason.as_str());
                }
            }
            (Saying::Return, Ok(Taken { nodes, .. })) => {
                for node in nodes {
                    self.tools.note_node(EventKind::Returned, node, "returned to service");
                    self.cooldowns.wake(node);
                }
                let wake = |all: &mut crate::Cooldowns| nodes.iter().for_each(|it| all.wake(it));
                cooldowns::change(self.tools.state, wake);
            }
            (Saying::Places | Saying::Undrain, Ok(_)) | (_, Err(_)) => {}
        }
        self.said(nodes, &result.map(|_| ()));
    }

    /// True if there is no time for these any more: a reconcile does the rest the next time. What others
    /// say last undoes what they have begun, and is said in any case.
    fn breaks_off(&mut self, nodes: &[NodeName]) -> bool {
        let cause = if self.report.operation != Operation::Reconcile {
            return false;
        } else if self.tools.cancel.is_cancelled() {
            Cause::Cancelled
        } else if Instant::now() >= self.deadline {
            Cause::Timeout
        } else {
            return false;
        };
        for node in nodes {
            let failed = NodeReport::new(Outcome::Failed).because(cause, cause.words());
            self.report.note(node.clone(), failed);
        }
        true
    }

    /// Lets go of nodes to which nothing more is done.
    fn done_with(&mut self, nodes: &[NodeName]) {
        if self.report.operation == Operation::Reconcile {
            for node in nodes {
                self.locks.remove(node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(still: Still, state: &str) -> Option<bool> {
        state.parse().ok().map(|state| still.test()(&state))
    }

    #[test]
    fn a_node_that_came_up_after_the_look_is_not_powered_down() {
        for waits in ["ALLOCATED+CLOUD+POWERING_UP", "DOWN+CLOUD+NOT_RESPONDING"] {
            assert_eq!(holds(Still::Awaited, waits), Some(true), "{waits}");
        }
        for up in ["IDLE+CLOUD", "ALLOCATED+CLOUD", "MIXED+CLOUD", "DOWN+CLOUD+POWERED_DOWN"] {
            assert_eq!(holds(Still::Awaited, up), Some(false), "{up}");
        }
    }

    #[test]
    fn a_ghost_that_answered_again_was_powered_down_with_its_job() {
        for silent in ["ALLOCATED+CLOUD+NOT_RESPONDING", "DOWN+CLOUD", "IDLE+CLOUD+NOT_RESPONDING"]
        {
            assert_eq!(holds(Still::Silent, silent), Some(true), "{silent}");
        }
        for up in ["IDLE+CLOUD", "ALLOCATED+CLOUD", "MIXED+CLOUD", "DOWN+CLOUD+POWERED_DOWN"] {
            assert_eq!(holds(Still::Silent, up), Some(false), "{up}");
        }
    }
}
