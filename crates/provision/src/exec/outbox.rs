//! The outbox: everything that Slurm is told goes through here, many nodes in one call, one call at a time.

use super::notification::{Notification, OnFailure, Taken, Verdict};
use super::shared::Shared;
use crate::failure::Failure;
use crate::plan::without_our_prefix;
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

/// The notifications that are not delivered yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: RefCell<Vec<Call>>,
    /// Jobs that have a comment: each gets only the first.
    commented: RefCell<BTreeSet<JobId>>,
    changed: Notify,
    /// How often the call at hand had no answer.
    tries: Cell<u32>,
}

/// One notification and its recipients. The only recipient of what is about no node is `None`.
#[derive(Debug)]
struct Call {
    notification: Notification,
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
    pub(super) notification: Notification,
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
        let Self { notification, letters, .. } = self;
        letters.into_iter().map(move |letter| Self {
            notification: notification.clone(),
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
        self.ask(Notification::of_failure(failure), node, None)
    }

    /// Reports the address of a node; false if Slurm did not accept it.
    pub(super) async fn report_address(&self, address: NodeAddress) -> bool {
        let node = address.node.clone();
        self.ask(Notification::Addresses, &node, Some(address)).await == Verdict::Taken
    }

    /// Asks Slurm whether it wants a node again that is to go.
    pub(super) async fn is_wanted(&self, node: &NodeName) -> Option<bool> {
        match self.ask(Notification::Confirm, node, None).await {
            Verdict::Taken => Some(true),
            Verdict::InUse | Verdict::Idle => Some(false),
            Verdict::Unanswered => None,
        }
    }

    fn ask(
        &self,
        notification: Notification,
        node: &NodeName,
        address: Option<NodeAddress>,
    ) -> impl Future<Output = Verdict> + use<> {
        let (sender, verdict) = oneshot::channel();
        self.post(notification, [(Some(node.clone()), Letter { address, reply: Some(sender) })]);
        async { verdict.await.unwrap_or(Verdict::Unanswered) }
    }

    /// Tells Slurm something about nodes.
    pub(super) fn tell(
        &self,
        notification: Notification,
        nodes: impl IntoIterator<Item = NodeName>,
    ) {
        self.post(notification, nodes.into_iter().map(|node| (Some(node), Letter::default())));
    }

    /// Tells Slurm where nodes are.
    pub(super) fn tell_addresses(&self, addresses: impl IntoIterator<Item = NodeAddress>) {
        let letters = addresses.into_iter().map(|address| {
            (Some(address.node.clone()), Letter { address: Some(address), reply: None })
        });
        self.post(Notification::Addresses, letters);
    }

    /// Tells Slurm something that is about no node.
    pub(super) fn announce(&self, notification: Notification) {
        self.post(notification, [(None, Letter::default())]);
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
        for call in queue.iter_mut().filter(|call| call.notification == Notification::Release) {
            call.letters.remove(&Some(node.clone()));
        }
    }

    fn post(
        &self,
        notification: Notification,
        letters: impl IntoIterator<Item = (Option<NodeName>, Letter)>,
    ) {
        let mut queue = self.queue.borrow_mut();
        let is_alike = |call: &&mut Call| {
            call.status == Status::Collecting && call.notification == notification
        };
        if let Some(call) = queue.iter_mut().find(is_alike) {
            call.letters.extend(letters);
        } else {
            let letters = letters.into_iter().collect();
            queue.push(Call { notification, letters, status: Status::Collecting });
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

    /// The nodes that Slurm is not told about yet.
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
    fn next(&self) -> Option<(Notification, Vec<NodeName>, Vec<NodeAddress>)> {
        if self.is_empty() {
            return None;
        }
        let mut queue = self.queue.borrow_mut();
        let call = queue.iter_mut().min_by_key(|call| call.notification.delivery().rank)?;
        call.status = Status::Sending;
        let addresses = call.letters.values().filter_map(|letter| letter.address.clone());
        Some((call.notification.clone(), call.nodes(), addresses.collect()))
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
        let (notification, nodes, addresses) = self.until(|| self.next()).await;
        let result = notification.send(tools, &nodes, &addresses).await;
        let mut call = self.sending()?;
        self.changed.notify_waiters();
        let kind = result.as_ref().err().map(Error::kind);
        let silent = kind == Some(ErrorKind::Unavailable);
        let on_failure = notification.delivery().on_failure;
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
        if silent && matches!(notification, Notification::Comment(..)) {
            // Nobody waits for comments, and each of them would be repeated as often.
            let is_comment = |call: &Call| matches!(call.notification, Notification::Comment(..));
            self.queue.borrow_mut().retain(|call| !is_comment(call));
        }
        if let Ok(taken) = &result {
            call.reply(taken);
        }
        Some(Sent { notification, nodes, result })
    }
}

impl Call {
    /// Tells those who wait what Slurm did. Without an answer their channels are dropped.
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

    fn sent(&self, Sent { notification, nodes, result }: Sent) {
        let taken = match result {
            Ok(taken) => taken,
            Err(error) => {
                self.warn(format!("slurm could not be told: {error}"));
                if notification == Notification::Release {
                    for node in &nodes {
                        self.unhold(node);
                    }
                }
                return;
            }
        };
        match notification {
            Notification::Return { cause, reason, .. } => {
                let text = without_our_prefix(&reason);
                for node in &taken.nodes {
                    self.note_returned(node, cause, &text);
                }
                self.rest(&taken.nodes, cause);
                self.release_jobs_of(&nodes);
            }
            Notification::Release => self.released(&nodes, &taken),
            Notification::Confirm
            | Notification::Addresses
            | Notification::Drain { .. }
            | Notification::Condemn { .. }
            | Notification::ReleaseReservation
            | Notification::Topology(_)
            | Notification::Undrain
            | Notification::ReturnToService
            | Notification::Reboot(_)
            | Notification::Submit(_)
            | Notification::Comment(..)
            | Notification::Reload(_) => {}
        }
    }
}
