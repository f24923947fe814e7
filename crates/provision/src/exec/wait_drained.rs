//! Waits until nodes have no jobs left, which may take a day.

use super::outbox::{Outbox, Sent};
use super::stage::Executor;
use crate::cause::Cause;
use crate::plan::Notification;
use crate::report::{NodeReport, Outcome};
use crate::time::Span;
use hostlist::{Hostlist, NodeName};
use slurmctl::{JobFilter, Node, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often Slurm is asked whether nodes have drained.
const PAUSE: Duration = Duration::from_secs(5);

impl Executor<'_> {
    pub(super) async fn wait_drained(
        &mut self,
        nodes: Vec<NodeName>,
        reason: &Reason,
        deadline: Duration,
    ) {
        let until = (Instant::now() + deadline).min(self.deadline);
        let mut cancel = self.tools.cancel.clone();
        let all: Hostlist = nodes.iter().collect();
        let mut waiting: BTreeSet<NodeName> = nodes.into_iter().collect();
        let mut yielded = BTreeSet::new();
        loop {
            match self.tools.slurm.nodes(Some(&all)).await {
                Ok(known) => {
                    let lifted = self.drain_again(&known, reason).await;
                    let busy = known.into_iter().filter(|node| node.state.has_job());
                    // A node that was not drained may have got a job in between.
                    waiting = busy.map(|node| node.name).chain(lifted).collect();
                }
                Err(error) => self.report.warn(format!("slurm could not be asked: {error}")),
            }
            if waiting.is_empty() || Instant::now() >= until || cancel.is_cancelled() {
                break;
            }
            self.outdated = true;
            self.lend(&mut yielded);
            let left = until.saturating_duration_since(Instant::now());
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = sleep(left.min(PAUSE)) => {}
            }
        }
        let jobs = self.jobs_on(&waiting).await;
        let state = self.state_of_removal();
        for node in waiting {
            let report = if cancel.is_cancelled() {
                NodeReport::cancelled()
            } else {
                let jobs = jobs.get(&node).map(|ids| format!(" ({ids})")).unwrap_or_default();
                let patience = Span(deadline);
                let reason = format!("its jobs did not end within {patience}{jobs}; {state}");
                NodeReport::failed(Cause::Timeout, reason)
            };
            self.report.note(node, report);
        }
    }

    /// What a removal leaves behind that ends here.
    fn state_of_removal(&self) -> &'static str {
        if self.report.nodes.values().any(|node| node.outcome == Outcome::Down) {
            "machines are terminated already, and slurm.conf still has all nodes: run it again"
        } else {
            "nothing is removed, and the drain is lifted"
        }
    }

    /// The ids of the jobs on these nodes, as far as slurmctld says them.
    async fn jobs_on(&self, nodes: &BTreeSet<NodeName>) -> BTreeMap<NodeName, String> {
        if nodes.is_empty() {
            return BTreeMap::new();
        }
        let list: Hostlist = nodes.iter().collect();
        let jobs = self.tools.slurm.jobs(JobFilter::On(list)).await.unwrap_or_default();
        let of = |node: &NodeName| {
            let here = jobs.iter().filter(|job| job.nodes.contains(node.as_str()));
            let ids: Vec<String> = here.map(|job| format!("job {}", job.id)).collect();
            (!ids.is_empty()).then(|| (node.clone(), ids.join(", ")))
        };
        nodes.iter().filter_map(of).collect()
    }

    /// Drains nodes again that take jobs: with `idle_on_node_suspend` Slurm lifts the drain of a node that it
    /// suspends.
    async fn drain_again(&mut self, known: &[Node], reason: &Reason) -> Vec<NodeName> {
        let lifted = known.iter().filter(|node| !node.state.has_drain());
        let lifted: Vec<NodeName> = lifted.map(|node| node.name.clone()).collect();
        let outbox = Outbox::default();
        let drain = Notification::Drain { reason: reason.clone(), only_asleep: false };
        outbox.notify(drain, lifted.iter().cloned());
        while !outbox.is_empty() {
            match outbox.send_next(self.tools).await {
                Some(Sent { nodes, result: Ok(_), .. }) => self.drained_again.extend(nodes),
                Some(Sent { nodes, result: Err(error), .. }) => {
                    let nodes: Hostlist = nodes.iter().collect();
                    self.report.warn(format!("{nodes} could not be drained again: {error}"));
                }
                None => {}
            }
        }
        lifted
    }

    /// Lends the locks of nodes that others want, for example to terminate machines that Slurm has suspended. This run
    /// does nothing to them while it waits, and observes again before it goes on. It takes the locks back afterwards,
    /// because reconcile lifts a drain that nobody holds.
    fn lend(&mut self, yielded: &mut BTreeSet<NodeName>) {
        let state = self.tools.state;
        let wanted = state.asked_to_yield(self.tools.now()).unwrap_or_default();
        yielded.extend(self.locks.keys().filter(|node| wanted.contains(*node)).cloned());
        self.locks.retain(|node, _| !wanted.contains(node));
        for node in yielded.iter().filter(|node| !wanted.contains(*node)) {
            if let Ok(Some(lock)) = state.try_lock(node) {
                self.locks.insert(node.clone(), lock);
            }
        }
        yielded.retain(|node| !self.locks.contains_key(node));
    }
}
