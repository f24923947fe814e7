//! What Slurm is told, one call at a time: whatever comes up during a call goes into the next.

use super::engine::Engine;
use super::tools::Tools;
use super::work::{Aim, Failure, Life, Phase, Then, Word, Work};
use super::{end::remove, groups};
use crate::outcome::Outcome;
use crate::plan::{Why, is_wanted_again, our_reason};
use crate::report::Cause;
use crate::state::EventKind;
use futures_util::future::BoxFuture;
use hostlist::{Hostlist, NodeName};
use slurmctl::{JobId, NodeAction, NodeAddress, NodeState, Reason};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// How often a call that did not reach slurmctld is repeated.
const MOST_TRIES: u32 = 3;

/// What is to be said, by kind.
#[derive(Debug, Default)]
pub(super) struct Desk {
    addresses: BTreeMap<NodeName, NodeAddress>,
    /// Nodes to be given back, by reason.
    backs: BTreeMap<String, BTreeSet<NodeName>>,
    /// Nodes of jobs that cannot get all of them, by reason.
    releases: BTreeMap<String, BTreeSet<NodeName>>,
    comments: VecDeque<(JobId, String)>,
    /// Nodes that are to go, unless Slurm wants them again.
    confirms: BTreeSet<NodeName>,
    tries: u32,
    not_before: Option<Instant>,
}

/// One call.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Addresses(Vec<NodeAddress>),
    GiveBack(Vec<NodeName>, String),
    Release(Vec<NodeName>, String),
    Comment(JobId, String),
    Confirm(Vec<NodeName>),
}

/// A call that has ended; with the nodes that Slurm took back.
pub(super) struct Told {
    message: Message,
    result: slurmctl::Result<Taken>,
}

/// What Slurm took back, and what it did not because it is in use.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) nodes: BTreeSet<NodeName>,
    in_use: BTreeSet<NodeName>,
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

impl Desk {
    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
            && self.backs.is_empty()
            && self.releases.is_empty()
            && self.comments.is_empty()
            && self.confirms.is_empty()
    }

    pub(super) fn not_before(&self) -> Instant {
        self.not_before.unwrap_or_else(Instant::now)
    }

    pub(super) fn tell_address(&mut self, address: NodeAddress) {
        self.addresses.insert(address.node.clone(), address);
    }

    pub(super) fn give_back(&mut self, node: &NodeName, reason: &str) {
        self.addresses.remove(node);
        self.backs.entry(reason.to_owned()).or_default().insert(node.clone());
    }

    pub(super) fn release(&mut self, nodes: impl IntoIterator<Item = NodeName>, reason: &str) {
        self.releases.entry(reason.to_owned()).or_default().extend(nodes);
    }

    pub(super) fn comment(&mut self, job: JobId, text: String) {
        self.comments.push_back((job, text));
    }

    pub(super) fn confirm(&mut self, node: &NodeName) {
        self.confirms.insert(node.clone());
    }

    /// Says nothing of nodes that are no longer ours.
    pub(super) fn forget(&mut self, nodes: &BTreeSet<NodeName>) {
        self.addresses.retain(|node, _| !nodes.contains(node));
        for queue in [&mut self.backs, &mut self.releases] {
            for waiting in queue.values_mut() {
                waiting.retain(|node| !nodes.contains(node));
            }
            queue.retain(|_, waiting| !waiting.is_empty());
        }
    }

    /// The next call: what failed first, so that its job is requeued; then what is up.
    fn next(&mut self) -> Option<Message> {
        if let Some((reason, nodes)) = self.backs.pop_first() {
            return Some(Message::GiveBack(nodes.into_iter().collect(), reason));
        }
        if !self.confirms.is_empty() {
            let nodes = std::mem::take(&mut self.confirms);
            return Some(Message::Confirm(nodes.into_iter().collect()));
        }
        if !self.addresses.is_empty() {
            let addresses = std::mem::take(&mut self.addresses);
            return Some(Message::Addresses(addresses.into_values().collect()));
        }
        if let Some((job, text)) = self.comments.pop_front() {
            return Some(Message::Comment(job, text));
        }
        let (reason, nodes) = self.releases.pop_first()?;
        Some(Message::Release(nodes.into_iter().collect(), reason))
    }

    /// Puts a call back whose time will come.
    fn again(&mut self, message: Message) {
        match message {
            Message::Addresses(addresses) => {
                for address in addresses {
                    self.addresses.entry(address.node.clone()).or_insert(address);
                }
            }
            Message::GiveBack(nodes, reason) => self.backs.entry(reason).or_default().extend(nodes),
            Message::Release(nodes, reason) => self.release(nodes, &reason),
            Message::Comment(job, text) => self.comments.push_front((job, text)),
            Message::Confirm(nodes) => self.confirms.extend(nodes),
        }
    }

    /// True if the call may be made again, after a pause.
    fn retries(&mut self) -> bool {
        if self.tries >= MOST_TRIES {
            self.tries = 0;
            return false;
        }
        self.not_before = Some(Instant::now() + Duration::from_secs(1 << self.tries));
        self.tries += 1;
        true
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
            Err(error) => {
                // What is to go does not wait for a slurmctld that is away.
                let passes = error.kind() == slurmctl::ErrorKind::Unavailable
                    && !matches!(message, Message::Confirm(_));
                if passes && self.desk.retries() {
                    self.desk.again(message);
                    return;
                }
                self.passed.warnings.insert(format!("slurm could not be told: {error}"));
                self.untold(&message);
                return;
            }
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
                self.release_groups(&nodes);
            }
            Message::Release(nodes, _) => {
                for node in &nodes {
                    self.released(node, taken.nodes.contains(node));
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

    /// Slurm has said whether it wants a node again that is to go.
    fn confirmed(&mut self, node: &NodeName, wanted: bool) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        (work.unheard, work.confirmed) = (false, Some(Instant::now()));
        if wanted && matches!(work.phase, Phase::Remove { .. }) {
            let words = Why::WantedAgain.to_string();
            work.failure = Some(Failure::new(Cause::Conflict, words));
            work.goes(Phase::Over(Outcome::Nothing));
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
    fn released(&mut self, node: &NodeName, taken: bool) {
        if taken {
            self.ends_probes(node);
        }
        if let Some(work) = self.works.get_mut(node) {
            work.held = false;
            if taken && !matches!(work.phase, Phase::Over(Outcome::Yielded)) {
                work.failure =
                    Some(Failure::new(Cause::JobIncomplete, Cause::JobIncomplete.words()));
                (work.telling, work.unheard) = (false, false);
                let ids = work.instance.clone().into_iter().collect();
                work.goes(remove(ids, Then::Over(Outcome::Released)));
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
            Message::Confirm(nodes) => {
                for node in nodes {
                    self.confirmed(node, false);
                    if let Some(work) = self.works.get_mut(node) {
                        work.confirms = false;
                    }
                }
                return;
            }
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
            take_back(tools, nodes, &our_reason(reason), NodeState::is_powering_up).await
        }
        Message::Release(nodes, reason) => {
            take_back(tools, nodes, &our_reason(reason), groups::is_free).await
        }
        Message::Comment(job, text) => {
            tools.slurm.comment(*job, text).await?;
            Ok(Taken::default())
        }
        Message::Confirm(nodes) => {
            let known = tools.slurm.nodes(Some(&nodes.iter().collect())).await?;
            let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
            Ok(Taken { nodes: wanted.map(|node| node.name).collect(), ..Taken::default() })
        }
    }
}

/// Powers down those of the nodes that are as they should be for it; Slurm may have gone on.
pub(super) async fn take_back(
    tools: &Tools<'_>,
    nodes: &[NodeName],
    reason: &Reason,
    wanted: fn(&NodeState) -> bool,
) -> slurmctl::Result<Taken> {
    let list: Hostlist = nodes.iter().collect();
    let known = tools.slurm.nodes(Some(&list)).await?;
    let (taken, left): (Vec<_>, Vec<_>) = known.into_iter().partition(|node| wanted(&node.state));
    let in_use = |node: &slurmctl::Node| node.state.is_up() || node.state.has_job();
    let taken = Taken {
        nodes: taken.into_iter().map(|node| node.name).collect(),
        in_use: left.into_iter().filter(in_use).map(|node| node.name).collect(),
    };
    if !taken.nodes.is_empty() {
        let list: Hostlist = taken.nodes.iter().collect();
        tools.slurm.set_state(&list, NodeAction::PowerDownForce, Some(reason)).await?;
    }
    Ok(taken)
}
