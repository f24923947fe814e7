//! Locks the nodes of a run.

use super::Run;
use crate::failure::chain;
use crate::plan::is_wanted_again;
use crate::state::{NodeLock, WISH};
use hostlist::{Hostlist, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Interval between attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long an operator's program waits for a node that another process has locked.
pub(super) const HAND_WAIT: Duration = Duration::from_mins(2);

/// Interval at which a request to yield is renewed.
const RENEWAL: Duration = Duration::from_secs(3);

/// Known nodes and unknown names.
pub(super) struct Known {
    pub(super) known: Vec<NodeName>,
    pub(super) unknown: Vec<NodeName>,
}

/// The locked nodes, and those that another process has locked.
pub(super) struct Locked {
    pub(super) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    pub(super) busy: Vec<NodeName>,
}

/// Whether a request to yield needs Slurm's consent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// Nodes that Slurm is starting are left to the process that starts them.
    Slurms,
    /// No consent needed: an operator has decided.
    Nobodys,
}

impl Run<'_> {
    /// Separates nodes from unknown names, for which no lock file is created.
    pub(super) async fn known(&self, nodes: &[NodeName]) -> Known {
        let in_conf = |node: &NodeName| self.conf.get(node).is_some();
        let (mut known, mut unknown): (Vec<NodeName>, Vec<NodeName>) =
            nodes.iter().cloned().partition(in_conf);
        if unknown.is_empty() {
            return Known { known, unknown };
        }
        // slurmctld may have nodes that are not in slurm.conf.
        let Ok(all) = self.tools.slurm.nodes(None).await else {
            return Known { known: nodes.to_vec(), unknown: Vec::new() };
        };
        let all: BTreeSet<NodeName> = all.into_iter().map(|node| node.name).collect();
        let more = unknown.extract_if(.., |node| all.contains(node));
        known.extend(more);
        Known { known, unknown }
    }

    /// Takes the free locks, and waits for the others until the deadline.
    pub(super) async fn lock(&self, nodes: &[NodeName], until: Instant) -> Locked {
        self.lock_enough(nodes, nodes.len(), until).await
    }

    /// Locks nodes, and waits only until it has one lock, so that no node waits for the lock of another.
    pub(super) async fn lock_any(&self, nodes: &[NodeName], until: Instant) -> Locked {
        self.lock_enough(nodes, 1, until).await
    }

    /// Locks nodes, and requests other processes to yield them.
    ///
    /// The request is renewed while this process waits, so that it expires soon after the process ends. If Slurm's consent
    /// is needed, nodes that Slurm is starting are omitted from the result.
    pub(super) async fn lock_asking(
        &self,
        nodes: &[NodeName],
        consent: Consent,
        until: Instant,
    ) -> Locked {
        let mut all = Locked { locks: BTreeMap::new(), busy: nodes.to_vec() };
        loop {
            if consent == Consent::Slurms {
                self.leave_wanted(&mut all.busy, until).await;
            }
            let _ = self.tools.state.ask_to_yield(&all.busy, self.tools.now() + WISH);
            let got = self.lock(&all.busy, (Instant::now() + RENEWAL).min(until)).await;
            all.locks.extend(got.locks);
            all.busy = got.busy;
            let late = Instant::now() >= until || self.tools.cancel.is_cancelled();
            if all.busy.is_empty() || late {
                let _ = self.tools.state.stop_asking(nodes);
                return all;
            }
        }
    }

    /// Removes the nodes that Slurm is starting.
    async fn leave_wanted(&self, nodes: &mut Vec<NodeName>, until: Instant) {
        let list: Hostlist = nodes.iter().collect();
        let Ok(Ok(known)) = timeout_at(until, self.tools.slurm.nodes(Some(&list))).await else {
            return;
        };
        let wanted = known.into_iter().filter(|node| is_wanted_again(&node.state));
        let wanted: BTreeSet<NodeName> = wanted.map(|node| node.name).collect();
        let left: Vec<NodeName> = nodes.extract_if(.., |node| wanted.contains(node)).collect();
        let _ = self.tools.state.stop_asking(&left);
    }

    async fn lock_enough(&self, nodes: &[NodeName], enough: usize, until: Instant) -> Locked {
        let mut locked = Locked { locks: BTreeMap::new(), busy: Vec::new() };
        let mut waiting: Vec<NodeName> = nodes.to_vec();
        waiting.sort();
        waiting.dedup();
        let mut pause = PAUSE;
        loop {
            waiting = self.take(waiting, &mut locked);
            let done = waiting.is_empty() || locked.locks.len() >= enough;
            if done || Instant::now() >= until {
                locked.busy = waiting;
                return locked;
            }
            let mut cancel = self.tools.cancel.clone();
            let left = until.saturating_duration_since(Instant::now());
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    locked.busy = waiting;
                    return locked;
                }
                () = sleep(pause.min(left)) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Takes the locks that are free now, and returns the other nodes.
    fn take(&self, nodes: Vec<NodeName>, locked: &mut Locked) -> Vec<NodeName> {
        let mut left = Vec::new();
        for node in nodes {
            match self.tools.state.try_lock(&node) {
                Ok(Some(lock)) => {
                    locked.locks.insert(node, lock);
                }
                Ok(None) => left.push(node),
                // Continue without a state that cannot be used: the cloud's tags are the source of truth.
                Err(error) => {
                    locked.locks.insert(node, Box::new(NoLock(chain(&error))));
                }
            }
        }
        left
    }
}

/// A placeholder for a lock that cannot be taken.
#[derive(Debug)]
struct NoLock(String);

impl NodeLock for NoLock {
    fn record(&self) -> crate::state::NodeRecord {
        crate::state::NodeRecord::default()
    }

    fn keep(&mut self, _: &crate::state::NodeRecord) -> crate::state::Result<()> {
        Ok(())
    }

    fn trouble(&self) -> Option<String> {
        Some(format!("nodes cannot be locked: {}", self.0))
    }
}
