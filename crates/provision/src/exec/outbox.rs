//! The outbox: batches notifications to Slurm and sends them one call at a time.

use super::notification::{Notification, Still, Taken};
use super::shared::Shared;
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::our_reason;
use hostlist::NodeName;
use slurmctl::{JobId, NodeAddress};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep;

/// How often a call that slurmctld did not answer is repeated.
const MOST_TRIES: u32 = 3;

/// How Slurm answered when a node was returned to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// It is up, or has a job.
    InUse,
    /// It is neither up nor on its way.
    Idle,
    /// Slurm does not answer, or was not asked.
    Unanswered,
}

/// Whether Slurm wants a node again that is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    None,
    WantedAgain,
    Unknown,
}

/// The notifications that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: RefCell<Queue>,
    changed: Notify,
    sending: Cell<bool>,
}

/// By node, with the channel for the answer. What nobody waits for any more is not sent.
type Waiting<T, R> = BTreeMap<NodeName, (T, oneshot::Sender<R>)>;

/// The notifications that are not sent yet, by kind.
#[derive(Debug, Default)]
struct Queue {
    /// Nodes that cannot be had, by reason.
    returns: BTreeMap<String, Waiting<Cause, Verdict>>,
    /// Nodes to take down, unless Slurm wants them again.
    confirmations: Waiting<(), Wish>,
    addresses: Waiting<NodeAddress, bool>,
    /// Addresses that are sent one by one, because Slurm refused a call with several.
    singles: Waiting<NodeAddress, bool>,
    /// Nodes of jobs that cannot get all of them.
    releases: BTreeSet<NodeName>,
    /// Comments for jobs: the first reason, once for each job.
    comments: BTreeMap<JobId, String>,
    commented: BTreeSet<JobId>,
}

/// One call.
#[derive(Debug)]
enum Call {
    Return(String, Waiting<Cause, Verdict>),
    Confirm(Waiting<(), Wish>),
    Addresses(Waiting<NodeAddress, bool>),
    Release(BTreeSet<NodeName>),
    Comment(JobId, String),
}

impl Outbox {
    /// Returns a node to Slurm, in one call with others that failed for the same reason.
    pub(super) fn return_to_slurm(
        &self,
        node: &NodeName,
        failure: &Failure,
    ) -> impl Future<Output = Verdict> + use<> {
        let (sender, verdict) = oneshot::channel();
        self.change(|queue| {
            let alike = queue.returns.entry(failure.text.clone()).or_default();
            alike.insert(node.clone(), (failure.cause, sender));
        });
        async { verdict.await.unwrap_or(Verdict::Unanswered) }
    }

    /// Reports the address of a node; false if Slurm did not accept it.
    pub(super) async fn report_address(&self, address: NodeAddress) -> bool {
        let (sender, reported) = oneshot::channel();
        self.change(|queue| {
            queue.addresses.insert(address.node.clone(), (address, sender));
        });
        reported.await.unwrap_or(false)
    }

    /// Asks Slurm whether it wants a node again that is to go.
    pub(super) async fn confirm(&self, node: &NodeName) -> Wish {
        let (sender, wish) = oneshot::channel();
        self.change(|queue| {
            queue.confirmations.insert(node.clone(), ((), sender));
        });
        wish.await.unwrap_or(Wish::Unknown)
    }

    /// Returns nodes to Slurm whose jobs cannot get all of their nodes.
    pub(super) fn release(&self, nodes: impl IntoIterator<Item = NodeName>) {
        self.change(|queue| queue.releases.extend(nodes));
    }

    /// Drops the release of a node that is not ours any more.
    pub(super) fn keep(&self, node: &NodeName) {
        self.change(|queue| {
            queue.releases.remove(node);
        });
    }

    /// Comments on a job, once.
    pub(super) fn comment(&self, job: JobId, text: String) {
        self.change(|queue| {
            if queue.commented.insert(job) {
                queue.comments.insert(job, text);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Queue)) {
        change(&mut self.queue.borrow_mut());
        self.changed.notify_waiters();
    }

    /// Waits until everything is sent.
    pub(super) async fn drained(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.sending.get() && self.queue.borrow_mut().is_empty() {
                return;
            }
            changed.await;
        }
    }

    async fn next(&self) -> Call {
        loop {
            let changed = self.changed.notified();
            if let Some(call) = self.queue.borrow_mut().next() {
                return call;
            }
            changed.await;
        }
    }
}

impl Queue {
    /// The next call: failed nodes first, so that their jobs are requeued, then nodes that are up.
    fn next(&mut self) -> Option<Call> {
        self.forget_abandoned();
        if let Some((reason, nodes)) = self.returns.pop_first() {
            return Some(Call::Return(reason, nodes));
        }
        if !self.confirmations.is_empty() {
            return Some(Call::Confirm(std::mem::take(&mut self.confirmations)));
        }
        if let Some(single) = self.singles.pop_last() {
            return Some(Call::Addresses(BTreeMap::from([single])));
        }
        if !self.addresses.is_empty() {
            return Some(Call::Addresses(std::mem::take(&mut self.addresses)));
        }
        if !self.releases.is_empty() {
            return Some(Call::Release(std::mem::take(&mut self.releases)));
        }
        let (job, text) = self.comments.pop_first()?;
        Some(Call::Comment(job, text))
    }

    fn forget_abandoned(&mut self) {
        for nodes in self.returns.values_mut() {
            nodes.retain(|_, (_, sender)| !sender.is_closed());
        }
        self.returns.retain(|_, nodes| !nodes.is_empty());
        self.confirmations.retain(|_, ((), sender)| !sender.is_closed());
        self.addresses.retain(|_, (_, sender)| !sender.is_closed());
        self.singles.retain(|_, (_, sender)| !sender.is_closed());
    }

    fn is_empty(&mut self) -> bool {
        self.forget_abandoned();
        self.returns.is_empty()
            && self.confirmations.is_empty()
            && self.addresses.is_empty()
            && self.singles.is_empty()
            && self.releases.is_empty()
            && self.comments.is_empty()
    }

    /// Puts back a call that is to be repeated.
    fn put_back(&mut self, call: Call) {
        match call {
            Call::Return(reason, nodes) => {
                self.returns.entry(reason).or_default().extend(nodes);
            }
            Call::Confirm(nodes) => self.confirmations.extend(nodes),
            Call::Addresses(nodes) => self.addresses.extend(nodes),
            Call::Release(nodes) => self.releases.extend(nodes),
            Call::Comment(job, text) => {
                self.comments.insert(job, text);
            }
        }
    }
}

impl Shared<'_> {
    /// Sends notifications as they arrive; never returns.
    pub(super) async fn deliver(&self) {
        let mut tries = 0;
        loop {
            let call = self.outbox.next().await;
            self.outbox.sending.set(true);
            match self.send(&call).await {
                Ok(taken) => {
                    tries = 0;
                    self.delivered(call, &taken);
                }
                Err(error) if error.kind() != slurmctl::ErrorKind::Unavailable => {
                    self.warn(format!("slurm could not be told: {error}"));
                    self.refused_by_slurm(call);
                }
                Err(_) if tries < MOST_TRIES => {
                    self.put_back(call);
                    sleep(Duration::from_secs(1 << tries)).await;
                    tries += 1;
                    // No listing may come to ask for this while all nodes wait for Slurm.
                    self.yield_nodes();
                }
                Err(error) => {
                    tries = 0;
                    self.warn(format!("slurm could not be told: {error}"));
                    if matches!(call, Call::Comment(..)) {
                        // Nobody waits for comments, and each of them would be repeated as often.
                        self.outbox.queue.borrow_mut().comments.clear();
                    }
                    self.undelivered(call);
                }
            }
            self.outbox.sending.set(false);
            self.outbox.changed.notify_waiters();
        }
    }

    /// Puts a call back into the queue, without nodes that have been yielded since it was made.
    fn put_back(&self, mut call: Call) {
        if let Call::Release(nodes) = &mut call {
            nodes.retain(|node| !self.has_left(node));
        }
        self.outbox.queue.borrow_mut().put_back(call);
    }

    /// Makes one call.
    async fn send(&self, call: &Call) -> slurmctl::Result<Taken> {
        let tools = self.tools;
        match call {
            Call::Return(reason, nodes) => {
                let notification = Notification::Return(Still::PoweringUp, our_reason(reason));
                notification.send(tools, nodes.keys(), &[]).await
            }
            Call::Confirm(nodes) => Notification::Confirm.send(tools, nodes.keys(), &[]).await,
            Call::Addresses(nodes) => {
                let addresses: Vec<NodeAddress> =
                    nodes.values().map(|(address, _)| address.clone()).collect();
                Notification::Addresses.send(tools, nodes.keys(), &addresses).await
            }
            Call::Release(nodes) => {
                let reason = our_reason(Cause::JobIncomplete.words());
                Notification::Return(Still::Unused, reason).send(tools, nodes, &[]).await
            }
            Call::Comment(job, text) => {
                Notification::Comment(*job, text.clone()).send(tools, [], &[]).await
            }
        }
    }

    fn delivered(&self, call: Call, taken: &Taken) {
        match call {
            Call::Return(reason, nodes) => {
                let lost: Vec<NodeName> = nodes.keys().cloned().collect();
                let mut failed = Vec::new();
                for (node, (cause, sender)) in nodes {
                    let verdict = taken.verdict(&node);
                    if verdict == Verdict::Taken {
                        self.note_returned(&node, cause, &reason);
                        failed.push((node, cause));
                    }
                    let _ = sender.send(verdict);
                }
                self.rest(&failed);
                self.release_jobs_of(&lost);
            }
            Call::Confirm(nodes) => {
                for (node, ((), sender)) in nodes {
                    let wanted = taken.nodes.contains(&node);
                    let _ = sender.send(if wanted { Wish::WantedAgain } else { Wish::None });
                }
            }
            Call::Addresses(nodes) => {
                for (node, (address, sender)) in nodes {
                    self.note_up(&node, address.address);
                    let _ = sender.send(true);
                }
            }
            Call::Release(nodes) => self.released(&nodes, taken),
            Call::Comment(..) => {}
        }
    }

    /// Handles a refused call. Several addresses are sent again one by one, so that a bad one does not affect
    /// the others.
    fn refused_by_slurm(&self, call: Call) {
        match call {
            Call::Addresses(nodes) if nodes.len() > 1 => {
                self.outbox.queue.borrow_mut().singles.extend(nodes);
            }
            other => self.undelivered(other),
        }
    }

    /// Gives up on a call. Dropping its channels tells those who wait that Slurm did not answer; nodes held for a
    /// release go on.
    fn undelivered(&self, call: Call) {
        if let Call::Release(nodes) = call {
            for node in &nodes {
                self.unhold(node);
            }
        }
    }
}
