//! The locks of a run's nodes: what is free at once, and what becomes free in time.

use super::Run;
use crate::failure::chain;
use crate::plan::is_wanted_again;
use crate::state::{NodeLock, WISH};
use hostlist::{Hostlist, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// How often a lock that another has is tried again.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a node that another process has in hand is waited for where only an operator waits.
pub(super) const HAND_WAIT: Duration = Duration::from_mins(2);

/// How often a wish for a lock is renewed.
const RENEWAL: Duration = Duration::from_secs(3);

/// The nodes that slurm.conf or Slurm has, and other names.
pub(super) struct Known {
    pub(super) known: Vec<NodeName>,
    pub(super) strange: Vec<NodeName>,
}

/// The nodes that are ours, and those that another has in hand.
pub(super) struct Locked {
    pub(super) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    pub(super) busy: Vec<NodeName>,
}

/// Whether Slurm has a say in it when others are asked to let go of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// A node that Slurm wants up is left to whoever brings it up.
    Slurms,
    /// Somebody has decided.
    Nobodys,
}

impl Run<'_> {
    /// Tells nodes from names that nobody has: these need no lock, which would be a file for each.
    pub(super) async fn known(&self, nodes: &[NodeName]) -> Known {
        let in_conf = |node: &NodeName| self.conf.get(node).is_some();
        let (mut known, mut strange): (Vec<NodeName>, Vec<NodeName>) =
            nodes.iter().cloned().partition(in_conf);
        if strange.is_empty() {
            return Known { known, strange };
        }
        // What slurm.conf has lost, or has never had, slurmctld may have.
        let Ok(all) = self.tools.slurm.nodes(None).await else {
            return Known { known: nodes.to_vec(), strange: Vec::new() };
        };
        let all: BTreeSet<NodeName> = all.into_iter().map(|node| node.name).collect();
        let more = strange.extract_if(.., |node| all.contains(node));
        known.extend(more);
        Known { known, strange }
    }

    /// Takes the locks that are free, and waits for the others no longer than until then.
    pub(super) async fn lock(&self, nodes: &[NodeName], until: Instant) -> Locked {
        self.lock_enough(nodes, nodes.len(), until).await
    }

    /// Locks nodes, and waits only until it has one lock: no node waits for the locks of others.
    pub(super) async fn lock_any(&self, nodes: &[NodeName], until: Instant) -> Locked {
        self.lock_enough(nodes, 1, until).await
    }

    /// Locks nodes, and asks the processes that work on them to yield.
    ///
    /// The wish is renewed while we wait, and so ends soon after us, however we end. What Slurm wants
    /// up, and its consent is needed, is neither asked for nor given: it is left out of the answer.
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

    /// Takes out the nodes that Slurm wants up, if it says so.
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

    /// Takes what is free now; the rest comes back.
    fn take(&self, nodes: Vec<NodeName>, locked: &mut Locked) -> Vec<NodeName> {
        let mut left = Vec::new();
        for node in nodes {
            match self.tools.state.try_lock(&node) {
                Ok(Some(lock)) => {
                    locked.locks.insert(node, lock);
                }
                Ok(None) => left.push(node),
                // A state that cannot be used is as good as none: the cloud's tags are the truth.
                Err(error) => {
                    locked.locks.insert(node, Box::new(NoLock(chain(&error))));
                }
            }
        }
        left
    }
}

/// What stands for a lock where none can be had.
#[derive(Debug)]
struct NoLock(String);

impl NodeLock for NoLock {
    fn record(&self) -> crate::state::NodeRecord {
        crate::state::NodeRecord::default()
    }

    fn keep(&mut self, _: &crate::state::NodeRecord) -> crate::state::Result<()> {
        Ok(())
    }

    fn unlocked(&self) -> Option<&str> {
        Some(&self.0)
    }
}
