//! What is to be said to Slurm, one call at a time: whatever comes up during a call goes into the next.

use hostlist::NodeName;
use slurmctl::{JobId, NodeAddress};
use std::collections::{BTreeMap, BTreeSet};
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
    /// What the owners of jobs are told: the first reason, once.
    comments: BTreeMap<JobId, String>,
    commented: BTreeSet<JobId>,
    /// Nodes that are to go, unless Slurm wants them again.
    confirms: BTreeSet<NodeName>,
    /// Addresses that are told one by one, since one of them was refused.
    singles: Vec<NodeAddress>,
    pub(super) tries: u32,
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

impl Desk {
    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
            && self.backs.is_empty()
            && self.releases.is_empty()
            && self.comments.is_empty()
            && self.confirms.is_empty()
            && self.singles.is_empty()
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
        if self.commented.insert(job) {
            self.comments.insert(job, text);
        }
    }

    /// Says nothing to the owners of jobs: nobody else waits for it, and each would be tried as often again.
    pub(super) fn drop_comments(&mut self) {
        self.comments.clear();
    }

    pub(super) fn confirm(&mut self, node: &NodeName) {
        self.confirms.insert(node.clone());
    }

    /// Says nothing of nodes that are no longer ours.
    pub(super) fn forget(&mut self, nodes: &BTreeSet<NodeName>) {
        self.addresses.retain(|node, _| !nodes.contains(node));
        self.singles.retain(|address| !nodes.contains(&address.node));
        for queue in [&mut self.backs, &mut self.releases] {
            for waiting in queue.values_mut() {
                waiting.retain(|node| !nodes.contains(node));
            }
            queue.retain(|_, waiting| !waiting.is_empty());
        }
    }

    /// The next call: what failed first, so that its job is requeued; then what is up.
    pub(super) fn next(&mut self) -> Option<Message> {
        if let Some((reason, nodes)) = self.backs.pop_first() {
            return Some(Message::GiveBack(nodes.into_iter().collect(), reason));
        }
        if !self.confirms.is_empty() {
            let nodes = std::mem::take(&mut self.confirms);
            return Some(Message::Confirm(nodes.into_iter().collect()));
        }
        if let Some(address) = self.singles.pop() {
            return Some(Message::Addresses(vec![address]));
        }
        if !self.addresses.is_empty() {
            let addresses = std::mem::take(&mut self.addresses);
            return Some(Message::Addresses(addresses.into_values().collect()));
        }
        if let Some((reason, nodes)) = self.releases.pop_first() {
            return Some(Message::Release(nodes.into_iter().collect(), reason));
        }
        let (job, text) = self.comments.pop_first()?;
        Some(Message::Comment(job, text))
    }

    /// What is left to try of a call that was refused: each address by itself, so that one that
    /// Slurm does not like is no matter for the others.
    pub(super) fn one_by_one(&mut self, message: Message) -> Option<Message> {
        match message {
            Message::Addresses(addresses) if addresses.len() > 1 => {
                self.singles.extend(addresses);
                None
            }
            other => Some(other),
        }
    }

    /// Puts a call back whose time will come.
    pub(super) fn again(&mut self, message: Message) {
        match message {
            Message::Addresses(addresses) => {
                for address in addresses {
                    self.addresses.entry(address.node.clone()).or_insert(address);
                }
            }
            Message::GiveBack(nodes, reason) => self.backs.entry(reason).or_default().extend(nodes),
            Message::Release(nodes, reason) => self.release(nodes, &reason),
            Message::Comment(job, text) => {
                self.comments.insert(job, text);
            }
            Message::Confirm(nodes) => self.confirms.extend(nodes),
        }
    }

    /// True if the call may be made again, after a pause.
    pub(super) fn retries(&mut self) -> bool {
        if self.tries >= MOST_TRIES {
            self.tries = 0;
            return false;
        }
        self.not_before = Some(Instant::now() + Duration::from_secs(1 << self.tries));
        self.tries += 1;
        true
    }
}
