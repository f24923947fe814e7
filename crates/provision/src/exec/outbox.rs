//! The outbox: every message to Slurm goes through it, many nodes in one call, one call at a time.

use super::message::{Message, OnFailure, Taken, Verdict};
use super::shared::Shared;
use crate::failure::Failure;
use crate::plan::{Notification, without_our_prefix};
use crate::tools::Tools;
use hostlist::NodeName;
use slurmctl::{Error, ErrorKind, JobId, NodeAddress};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

/// How often a call that slurmctld did not answer is repeated.
const MOST_TRIES: u32 = 3;

/// The messages that are not delivered yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: RefCell<Vec<Call>>,
    /// Jobs that have a comment: each gets only the first.
    commented: RefCell<BTreeSet<JobId>>,
    changed: Notify,
    /// How often the call at hand had no answer.
    tries: Cell<u32>,
}

/// One message, and the nodes that it is about: `None` for a message that is about no node.
#[derive(Debug)]
struct Call {
    message: Message,
    letters: BTreeMap<Option<NodeName>, Letter>,
    status: Status,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// More nodes may join.
    Collecting,
    /// It is sent as it is.
    Closed,
    Sending,
}

#[derive(Debug, Default)]
struct Letter {
    address: Option<NodeAddress>,
    /// For whoever waits. A letter that nobody waits for any more is not sent.
    reply: Option<oneshot::Sender<Verdict>>,
}

/// A call that has an answer, or gets none.
pub(super) struct Sent {
    pub(super) message: Message,
    pub(super) nodes: Vec<NodeName>,
    pub(super) result: Result<Taken, Error>,
}

impl Call {
    fn nodes(&self) -> Vec<NodeName> {
        self.letters.keys().flatten().cloned().collect()
    }

    fn is_abandoned(&self) -> bool {
        self.letters.is_empty()
    }

    /// One call for each recipient, so that a bad one does not affect the others.
    fn split(self) -> impl Iterator<Item = Self> {
        let Self { message, letters, .. } = self;
        letters.into_iter().map(move |letter| Self {
            message: message.clone(),
            letters: BTreeMap::from([letter]),
            status: Status::Closed,
        })
    }
}

impl Outbox {
    /// Returns a node to Slurm, in one call with others that failed for the same reason.
    pub(super) fn return_to_slurm(
        &self,
        node: &NodeName,
        failure: &Failure,
    ) -> impl Future<Output = Verdict> + use<> {
        self.ask(Message::of_failure(failure), node, None)
    }

    /// Reports the address of a node; false if Slurm did not accept it.
    pub(super) async fn report_address(&self, address: NodeAddress) -> bool {
        let node = address.node.clone();
        self.ask(Message::Addresses, &node, Some(address)).await == Verdict::Taken
    }

    /// Asks Slurm whether it wants a node again that is about to be terminated.
    pub(super) async fn is_wanted(&self, node: &NodeName) -> Option<bool> {
        match self.ask(Message::Confirm, node, None).await {
            Verdict::Taken => Some(true),
            Verdict::InUse | Verdict::Idle => Some(false),
            Verdict::Unanswered => None,
        }
    }

    fn ask(
        &self,
        message: Message,
        node: &NodeName,
        address: Option<NodeAddress>,
    ) -> impl Future<Output = Verdict> + use<> {
        let (sender, verdict) = oneshot::channel();
        self.post(message, [(Some(node.clone()), Letter { address, reply: Some(sender) })]);
        async { verdict.await.unwrap_or(Verdict::Unanswered) }
    }

    /// Posts a message about nodes.
    pub(super) fn notify(
        &self,
        message: impl Into<Message>,
        nodes: impl IntoIterator<Item = NodeName>,
    ) {
        self.post(message.into(), nodes.into_iter().map(|node| (Some(node), Letter::default())));
    }

    /// Posts the addresses of nodes.
    pub(super) fn notify_addresses(&self, addresses: impl IntoIterator<Item = NodeAddress>) {
        let letters = addresses.into_iter().map(|address| {
            (Some(address.node.clone()), Letter { address: Some(address), reply: None })
        });
        self.post(Message::Addresses, letters);
    }

    /// Posts a notification that is about no node.
    pub(super) fn announce(&self, notification: Notification) {
        self.post(Message::Notify(notification), [(None, Letter::default())]);
    }

    /// Comments on a job, once.
    pub(super) fn comment(&self, job: JobId, text: String) {
        if self.commented.borrow_mut().insert(job) {
            self.announce(Notification::Comment(job, text));
        }
    }

    /// Drops the release of a node that is not ours any more.
    pub(super) fn keep(&self, node: &NodeName) {
        let mut queue = self.queue.borrow_mut();
        for call in queue.iter_mut().filter(|call| call.message == Message::Release) {
            call.letters.remove(&Some(node.clone()));
        }
    }

    fn post(
        &self,
        message: Message,
        letters: impl IntoIterator<Item = (Option<NodeName>, Letter)>,
    ) {
        let mut queue = self.queue.borrow_mut();
        let is_alike =
            |call: &&mut Call| call.status == Status::Collecting && call.message == message;
        if let Some(call) = queue.iter_mut().find(is_alike) {
            call.letters.extend(letters);
        } else {
            let letters = letters.into_iter().collect();
            queue.push(Call { message, letters, status: Status::Collecting });
        }
        self.changed.notify_waiters();
    }

    /// True if everything is delivered or given up.
    pub(super) fn is_empty(&self) -> bool {
        let mut queue = self.queue.borrow_mut();
        for call in queue.iter_mut().filter(|call| call.status != Status::Sending) {
            call.letters
                .retain(|_, letter| !letter.reply.as_ref().is_some_and(oneshot::Sender::is_closed));
        }
        queue.retain(|call| call.status == Status::Sending || !call.is_abandoned());
        queue.is_empty()
    }

    /// The nodes of messages that are not delivered yet.
    pub(super) fn nodes(&self) -> Vec<NodeName> {
        self.queue.borrow().iter().flat_map(Call::nodes).collect()
    }

    /// Waits until everything is delivered or given up.
    pub(super) async fn drained(&self) {
        self.until(|| self.is_empty().then_some(())).await;
    }

    async fn until<T>(&self, happened: impl Fn() -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(what) = happened() {
                return what;
            }
            changed.await;
        }
    }

    /// Takes up the most urgent call.
    fn next(&self) -> Option<(Message, Vec<NodeName>, Vec<NodeAddress>)> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.borrow_mut();
        let call = queue.iter_mut().min_by_key(|call| call.message.delivery().rank)?;
        call.status = Status::Sending;
        let addresses = call.letters.values().filter_map(|letter| letter.address.clone());
        Some((call.message.clone(), call.nodes(), addresses.collect()))
    }

    fn sending(&self) -> Option<Call> {
        let is_sending = |call: &mut Call| call.status == Status::Sending;
        self.queue.borrow_mut().extract_if(.., is_sending).next()
    }

    /// Sends the next call as soon as there is one. None if it will be sent again: all of it if slurmctld did
    /// not answer and a repetition does no harm, one by one if slurmctld refused a call about several nodes.
    pub(super) async fn send_next(&self, tools: &Tools<'_>) -> Option<Sent> {
        let tries = self.tries.get();
        if tries > 0 {
            sleep(Duration::from_secs(1 << (tries - 1))).await;
        }
        let (message, nodes, addresses) = self.until(|| self.next()).await;
        let result = message.send(tools, &nodes, &addresses).await;
        let mut call = self.sending()?;
        self.changed.notify_waiters();
        let kind = result.as_ref().err().map(Error::kind);
        let silent = kind == Some(ErrorKind::Unavailable);
        let on_failure = message.delivery().on_failure;
        if silent && tries < MOST_TRIES && on_failure != OnFailure::GiveUp {
            self.tries.set(tries + 1);
            call.status = Status::Closed;
            self.queue.borrow_mut().push(call);
            return None;
        }
        self.tries.set(0);
        if kind.is_some() && !silent && nodes.len() > 1 && on_failure == OnFailure::Divide {
            self.queue.borrow_mut().extend(call.split());
            return None;
        }
        let is_comment =
            |message: &Message| matches!(message, Message::Notify(Notification::Comment(..)));
        if silent && is_comment(&message) {
            // Nobody waits for comments, and each of them would be repeated as often.
            self.queue.borrow_mut().retain(|call| !is_comment(&call.message));
        }
        if let Ok(taken) = &result {
            call.reply(taken);
        }
        Some(Sent { message, nodes, result })
    }
}

impl Call {
    /// Sends the verdicts to those who wait. Without an answer their channels are dropped.
    fn reply(self, taken: &Taken) {
        for (node, letter) in self.letters {
            if let (Some(node), Some(reply)) = (node, letter.reply) {
                let _ = reply.send(taken.verdict(&node));
            }
        }
    }
}

impl Shared<'_> {
    /// Sends notifications as they arrive; never returns.
    pub(super) async fn deliver(&self) {
        loop {
            if let Some(sent) = self.outbox.send_next(self.tools).await {
                self.sent(sent);
            }
        }
    }

    fn sent(&self, Sent { message, nodes, result }: Sent) {
        let taken = match result {
            Ok(taken) => taken,
            Err(error) => {
                self.warn(format!("slurmctld did not accept an update: {error}"));
                if message == Message::Release {
                    for node in &nodes {
                        self.unhold(node);
                    }
                }
                return;
            }
        };
        match message {
            Message::Notify(Notification::ReturnToSlurm { cause, reason, .. }) => {
                let text = without_our_prefix(&reason);
                for node in &taken.nodes {
                    self.note_returned(node, cause, &text);
                }
                self.rest(&taken.nodes, cause);
                self.release_jobs_of(&nodes);
            }
            Message::Release => self.released(&nodes, &taken),
            Message::Confirm | Message::Addresses | Message::Notify(_) => {}
        }
    }
}
