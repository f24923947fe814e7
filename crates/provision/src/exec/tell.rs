//! What Slurm is told, and what its answers mean.

use super::confirm::wanted_again;
use super::desk::Message;
use super::engine::Engine;
use super::failure::Failure;
use super::tools::Tools;
use super::work::{Aim, Life, Phase, Then, Word, Work};
use super::{end::remove, groups};
use crate::cause::Cause;
use crate::plan::{our_reason, ours};
use crate::report::Outcome;
use crate::state::EventKind;
use futures_util::future::BoxFuture;
use hostlist::{Hostlist, NodeName};
use slurmctl::{NodeAction, NodeAddress, NodeState, Reason};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// A call that has ended; with the nodes that Slurm took back.
pub(super) struct Told {
    message: Message,
    result: slurmctl::Result<Taken>,
}

/// What Slurm took back, and what it did not because it is in use.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) nodes: BTreeSet<NodeName>,
    /// Those of them that it may yet have a job on: it calls our stop program when that has ended.
    pub(super) later: BTreeSet<NodeName>,
    pub(super) in_use: BTreeSet<NodeName>,
}

impl Taken {
    fn word(&self, node: &NodeName) -> Word {
        if self.nodes.contains(node) {
            Word::Taken
        } else if self.in_use.contains(node) {
            Word::InUse
        } else {
            Word::Idle
        }
    }
}

impl Work {
    /// Goes on with a node that was given up: what may have jobs on it stays.
    fn hears(&mut self, word: Word) {
        self.unheard = false;
        let Phase::Remove { ids, then, .. } = &mut self.phase else {
            return;
        };
        if word != Word::Taken {
            *then = Then::Over(Outcome::Failed);
        }
        if !self.life.may_end(word) {
            ids.clear();
        }
    }
}

impl<'a> Engine<'a> {
    pub(super) fn begin_call(&mut self) {
        if self.call.is_some() || self.desk.not_before() > Instant::now() {
            return;
        }
        let Some(message) = self.desk.next() else {
            return;
        };
        let tools: &'a Tools<'a> = self.tools;
        let call: BoxFuture<'a, Told> = Box::pin(async move {
            let result = say(tools, &message).await;
            Told { message, result }
        });
        self.call = Some(call);
    }

    pub(super) fn told(&mut self, Told { message, result }: Told) {
        let taken = match result {
            Ok(taken) => {
                self.desk.tries = 0;
                taken
            }
            Err(error) => return self.unanswered(message, &error),
        };
        match message {
            Message::Addresses(addresses) => {
                for address in addresses {
                    self.knows_address(&address);
                }
            }
            Message::GiveBack(nodes, reason) => {
                for node in &nodes {
                    self.given_back(node, taken.word(node), &reason);
                }
                self.rest(&taken.nodes);
                self.release_groups(&nodes);
            }
            Message::Release(nodes, _) => {
                for node in &nodes {
                    self.released(node, &taken);
                }
            }
            Message::Comment(..) => {}
            Message::Confirm(nodes) => {
                for node in &nodes {
                    self.confirmed(node, taken.nodes.contains(node));
                }
            }
        }
    }

    /// Says it again, or lets it be.
    fn unanswered(&mut self, message: Message, error: &slurmctl::Error) {
        let refused = error.kind() != slurmctl::ErrorKind::Unavailable;
        if !refused && self.desk.retries() {
            return self.desk.again(message);
        }
        self.passed.warnings.insert(format!("slurm could not be told: {error}"));
        if !refused && matches!(message, Message::Comment(..)) {
            self.desk.drop_comments();
        }
        let left = if refused { self.desk.one_by_one(message) } else { Some(message) };
        if let Some(message) = left {
            self.untold(&message);
        }
    }

    fn knows_address(&mut self, address: &NodeAddress) {
        self.tools.note_node(EventKind::Up, &address.node, &address.address.to_string());
        if let Some(work) = self.works.get_mut(&address.node) {
            work.telling = false;
        }
    }

    fn given_back(&mut self, node: &NodeName, word: Word, reason: &str) {
        if let Some(work) = self.works.get_mut(node) {
            work.telling = false;
            work.hears(word);
        }
        if word == Word::Taken {
            self.tools.note_node(EventKind::GivenBack, node, reason);
        }
    }

    /// Slurm has taken the node back, or another job uses it.
    fn released(&mut self, node: &NodeName, all: &Taken) {
        let taken = all.nodes.contains(node);
        if taken {
            self.ends_probes(node);
        }
        if let Some(work) = self.works.get_mut(node) {
            work.held = false;
            if taken && !matches!(work.phase, Phase::Over(Outcome::Yielded)) {
                work.failure =
                    Some(Failure::new(Cause::JobIncomplete, Cause::JobIncomplete.words()));
                (work.telling, work.unheard) = (false, false);
                let ours = work.instance.clone().filter(|_| !all.later.contains(node));
                work.goes(remove(ours.into_iter().collect(), Then::Over(Outcome::Released)));
            }
        } else if taken && let Some(report) = self.passed.reports.get_mut(node) {
            // Our stop program is called for it.
            report.outcome = Outcome::Released;
            report.cause = Some(Cause::JobIncomplete);
        }
        if taken {
            self.tools.note_node(EventKind::GivenBack, node, Cause::JobIncomplete.words());
        }
    }

    /// Slurm does not answer: what can be said later is said later by Slurm's own means.
    fn untold(&mut self, message: &Message) {
        let (nodes, outcome): (Vec<NodeName>, _) = match message {
            Message::Addresses(addresses) => {
                let nodes = addresses.iter().map(|address| address.node.clone()).collect();
                (nodes, Some(Outcome::Untold))
            }
            Message::GiveBack(nodes, _) => (nodes.clone(), Some(Outcome::Failed)),
            Message::Release(nodes, _) => (nodes.clone(), None),
            Message::Comment(..) => (Vec::new(), None),
            Message::Confirm(nodes) => return self.unconfirmed(nodes),
        };
        for node in nodes {
            let Some(work) = self.works.get_mut(&node) else {
                continue;
            };
            work.telling = false;
            work.held = false;
            if work.unheard {
                work.hears(Word::None);
            }
            if let Some(outcome) = outcome
                && let Phase::Over(Outcome::Up | Outcome::GivenBack) = work.phase
            {
                let untold = || Failure::new(Cause::Slurm, "slurmctld could not be told");
                work.failure.get_or_insert_with(untold);
                work.phase = Phase::Over(outcome);
            }
        }
    }

    /// The node cannot be had: what was launched for it goes, and Slurm gets it back.
    pub(super) fn fail(&mut self, node: &NodeName, failure: Failure) {
        self.ends_probes(node);
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        if matches!(work.phase, Phase::Over(_)) {
            return;
        }
        let text = failure.text.clone();
        work.failure = Some(failure);
        match work.aim {
            Aim::Gone { .. } => work.goes(Phase::Over(Outcome::Failed)),
            Aim::Up(_) => {
                let ids = work.instance.clone().into_iter().collect();
                work.goes(remove(ids, Then::Over(Outcome::GivenBack)));
                if work.tells {
                    (work.telling, work.unheard) = (true, true);
                    self.desk.give_back(node, &text);
                    self.comment_jobs(node, &text);
                } else {
                    // Nobody waits for it, and nobody has been told where it is.
                    work.hears(if work.life == Life::Ran { Word::Idle } else { Word::None });
                }
            }
        }
    }

    /// Time is up for the node, or somebody told us to stop.
    pub(super) fn abandon(&mut self, node: &NodeName, failure: &Failure) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        match &work.phase {
            // To remove is what we would do anyway, if there is time.
            Phase::Over(_) | Phase::Remove { then: Then::Over(_), .. } => {}
            Phase::Remove { then: Then::Launch, .. }
            | Phase::AwaitGone { .. }
            | Phase::Doubt { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Watch(_) => self.fail(node, failure.clone()),
        }
    }
}

/// Makes one call.
async fn say(tools: &Tools<'_>, message: &Message) -> slurmctl::Result<Taken> {
    match message {
        Message::Addresses(addresses) => {
            tools.slurm.set_addresses(addresses).await?;
            Ok(Taken::default())
        }
        Message::GiveBack(nodes, reason) => {
            let how =
                |state: &NodeState| state.is_powering_up().then_some(NodeAction::PowerDownForce);
            take_back(tools, nodes, &our_reason(reason), how).await
        }
        Message::Release(nodes, reason) => {
            take_back(tools, nodes, &our_reason(reason), groups::release).await
        }
        Message::Comment(job, text) => {
            tools.slurm.comment(*job, text).await?;
            Ok(Taken::default())
        }
        Message::Confirm(nodes) => wanted_again(tools, nodes).await,
    }
}

/// Powers down those of the nodes that are as they should be for it; Slurm may have gone on.
pub(super) async fn take_back(
    tools: &Tools<'_>,
    nodes: &[NodeName],
    reason: &Reason,
    how: impl Fn(&NodeState) -> Option<NodeAction>,
) -> slurmctl::Result<Taken> {
    let list: Hostlist = nodes.iter().collect();
    let mut taken = Taken::default();
    let mut told: BTreeMap<(NodeAction, bool), Hostlist> = BTreeMap::new();
    for node in tools.slurm.nodes(Some(&list)).await? {
        let Some(action) = how(&node.state) else {
            if node.state.is_up() || node.state.has_job() {
                taken.in_use.insert(node.name);
            }
            continue;
        };
        told.entry((action, ours(&node))).or_default().push(node.name.as_str());
        if action != NodeAction::PowerDownForce {
            taken.later.insert(node.name.clone());
        }
        taken.nodes.insert(node.name);
    }
    // What waits for jobs first: if it gets no answer, nothing is done yet, and all of it is said again.
    for ((action, drained), nodes) in told.into_iter().rev() {
        // The reason of a drain of ours stays, so that it is known again as ours.
        let reason = Some(reason).filter(|_| !drained);
        tools.slurm.set_state(&nodes, action, reason).await?;
    }
    Ok(taken)
}
