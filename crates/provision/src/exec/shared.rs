//! What the nodes of a run share, and the signals that interrupt the work on one of them.

use super::launch_batch::Batches;
use super::listing::Listing;
use super::node::{NodeWork, Permit};
use super::outbox::Outbox;
use super::stage::Executor;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::failure::{Failure, Names};
use crate::plan::{JobGroup, Operation};
use crate::report::{NodeReport, Outcome};
use crate::site::{Pool, Site};
use crate::state::{EventKind, NodeLock, WISH};
use crate::tools::Tools;
use cloud_core::{Description, InstanceId};
use hostlist::NodeName;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep};

/// How often a run looks whether others want one of its nodes.
const YIELD_PAUSE: Duration = Duration::from_secs(2);

/// The result of one pass.
#[derive(Debug, Default)]
pub(super) struct Passed {
    pub(super) reports: BTreeMap<NodeName, NodeReport>,
    pub(super) warnings: BTreeSet<String>,
    /// The locks, for the next stage.
    pub(super) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    /// The addresses and instances of nodes that came up.
    pub(super) addresses: BTreeMap<NodeName, (IpAddr, InstanceId)>,
}

/// What the nodes of a run share.
pub(super) struct Shared<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) site: &'a Site,
    pub(super) deadline: Instant,
    /// The jobs that get all of their nodes or none.
    pub(super) groups: &'a [JobGroup],
    pub(super) listing: Listing,
    pub(super) outbox: Outbox,
    pub(super) cooldowns: RefCell<Cooldowns>,
    /// Pools that one launch probes, and its node.
    pub(super) probing: RefCell<BTreeMap<Pool, NodeName>>,
    pub(super) probes_changed: Notify,
    pub(super) passed: RefCell<Passed>,
    /// The jobs of each node, for the log.
    jobs: BTreeMap<&'a NodeName, Vec<u32>>,
    signals: BTreeMap<NodeName, Rc<Signals>>,
    requests: Semaphore,
    /// Locks are kept for the next stage.
    pub(super) keeps_locks: bool,
    /// Why nodes are taken down, if it is because they have failed.
    pub(super) given_up: Option<Cause>,
    /// When this run locked the nodes.
    begun: SystemTime,
    /// What the cloud says about itself.
    pub(super) cloud: Description,
    /// Launches that wait for others to go with.
    pub(super) batches: Batches,
}

/// The signals that interrupt the work on a node.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// No new request until it is known whether the nodes of its job are released.
    held: Cell<bool>,
    /// The deadline has passed, or the run was cancelled.
    stop: Cell<Option<Cause>>,
    /// This run does not bring the node up any more.
    leave: Cell<Option<Leave>>,
    /// The last answers did not come in time either.
    late: Cell<bool>,
    changed: Notify,
}

/// Why a run does not bring a node up any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// Another process wants it.
    Yield,
    /// Another node of its job failed, and Slurm has taken this one back.
    Release {
        /// It may still have a job: Slurm calls our stop program when that has ended.
        later: bool,
    },
}

impl Signals {
    async fn until<T>(&self, happened: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(what) = happened(self) {
                return what;
            }
            changed.await;
        }
    }

    fn change(&self, change: impl FnOnce(&Self)) {
        change(self);
        self.changed.notify_waiters();
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.get()
    }

    pub(super) async fn not_held(&self) {
        self.until(|it| (!it.held.get()).then_some(())).await;
    }

    pub(super) async fn stopped(&self) -> Failure {
        let cause = self.until(|it| it.stop.get()).await;
        Failure::new(cause, cause.words())
    }

    pub(super) async fn left(&self) -> Leave {
        self.until(|it| it.leave.get()).await
    }

    pub(super) fn is_yielded(&self) -> bool {
        self.leave.get() == Some(Leave::Yield)
    }

    pub(super) async fn late(&self) {
        self.until(|it| it.late.get().then_some(())).await;
    }
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        executor: &Executor<'a>,
        groups: &'a [JobGroup],
        nodes: impl Iterator<Item = NodeName>,
        outbox: Outbox,
    ) -> Self {
        let &Executor { tools, site, deadline, .. } = executor;
        let mut jobs: BTreeMap<&NodeName, Vec<u32>> = BTreeMap::new();
        for group in groups {
            for node in &group.nodes {
                jobs.entry(node).or_default().push(group.job.get());
            }
        }
        Self {
            tools,
            site,
            deadline,
            groups,
            jobs,
            listing: Listing::new(),
            outbox,
            cooldowns: RefCell::new(executor.cooldowns.clone()),
            probing: RefCell::default(),
            probes_changed: Notify::new(),
            passed: RefCell::default(),
            signals: nodes.map(|node| (node, Rc::default())).collect(),
            keeps_locks: false,
            given_up: (executor.report.operation == Operation::Failed)
                .then_some(Cause::NeverRegistered),
            requests: Semaphore::new(site.policies.concurrency.clamp(1, Semaphore::MAX_PERMITS)),
            begun: tools.now(),
            cloud: tools.cloud.describe(),
            batches: Batches::default(),
        }
    }

    pub(super) fn signals(&self, node: &NodeName) -> Rc<Signals> {
        self.signals.get(node).cloned().unwrap_or_default()
    }

    /// The jobs that wait for a node.
    pub(super) fn jobs_of(&self, node: &NodeName) -> impl Iterator<Item = u32> {
        self.jobs.get(node).into_iter().flatten().copied()
    }

    /// Notes that a node was returned to Slurm.
    pub(super) fn note_returned(&self, node: &NodeName, cause: Cause, reason: &str) {
        let event = self.tools.event(EventKind::ReturnedToSlurm).of(node).because(reason);
        self.tools.note(&event.caused_by(cause.as_str()).for_jobs(self.jobs_of(node)));
    }

    /// Waits until one more request may be under way.
    pub(super) async fn permit(&'a self) -> Permit<'a> {
        self.requests.acquire().await.ok()
    }

    /// What differs in the cloud's messages about this node and about others that failed alike.
    pub(super) fn names<'n>(&self, node: Option<&'n NodeName>) -> Names<'n> {
        Names { node, is_id: self.cloud.is_id }
    }

    pub(super) fn warn(&self, text: impl Into<String>) {
        self.passed.borrow_mut().warnings.insert(text.into());
    }

    /// Tells all nodes to begin nothing new, and to undo what is not finished.
    pub(super) fn stop(&self, cause: Cause) {
        for signals in self.signals.values() {
            signals.change(|it| it.stop.set(Some(cause)));
        }
    }

    /// Tells all nodes to wait for no more answers.
    pub(super) fn end(&self) {
        for signals in self.signals.values() {
            signals.change(|it| it.late.set(true));
        }
    }

    /// Holds a node until it is known whether it is released. False if it is neither up nor on its way.
    pub(super) fn hold(&self, node: &NodeName) -> bool {
        if let Some(report) = self.passed.borrow().reports.get(node) {
            return report.outcome == Outcome::Up;
        }
        let Some(signals) = self.signals.get(node) else {
            return false;
        };
        let holds = !signals.held.get() && signals.leave.get().is_none();
        if holds {
            signals.change(|it| it.held.set(true));
        }
        holds
    }

    /// Lets the work on a node go on.
    pub(super) fn unhold(&self, node: &NodeName) {
        if let Some(signals) = self.signals.get(node) {
            signals.change(|it| it.held.set(false));
        }
    }

    /// Interrupts the work on a node that Slurm has taken back.
    pub(super) fn release(&self, node: &NodeName, later: bool) {
        if let Some(report) = self.passed.borrow_mut().reports.get_mut(node) {
            if report.outcome == Outcome::Up {
                // Our stop program is called for it.
                report.outcome = Outcome::Released;
                report.cause = Some(Cause::JobIncomplete);
            }
        } else if let Some(signals) = self.signals.get(node)
            && signals.leave.get().is_none()
        {
            signals.change(|it| it.leave.set(Some(Leave::Release { later })));
        }
    }

    /// Looks every few seconds whether others want a node; never returns.
    pub(super) async fn watch_for_yields(&self) {
        loop {
            sleep(YIELD_PAUSE).await;
            self.yield_nodes();
        }
    }

    /// Yields nodes that others want. A wish from before this run locked them was meant for another start;
    /// whoever still wants the node renews the wish, and asks Slurm before.
    fn yield_nodes(&self) {
        let since = self.tools.now().max(self.begun + WISH);
        for node in self.tools.state.asked_to_yield(since).unwrap_or_default() {
            if let Some(signals) = self.signals.get(&node)
                && signals.leave.get().is_none()
            {
                self.outbox.keep(&node);
                signals.change(|it| it.leave.set(Some(Leave::Yield)));
            }
        }
    }

    /// Records the outcome of a node, and releases its lock unless the next stage needs it.
    pub(super) fn finish(&self, work: NodeWork<'_>, outcome: Outcome) {
        self.end_probes(&work.name);
        let mut passed = self.passed.borrow_mut();
        let node = work.name.clone();
        if let Some((address, id)) = work.address.zip(work.instance.clone()) {
            passed.addresses.insert(node.clone(), (address, id));
        }
        passed.reports.insert(node.clone(), work.report(outcome));
        if self.keeps_locks {
            passed.locks.extend(work.into_lock().map(|lock| (node, lock)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Operation;
    use crate::site::Identity;
    use crate::state::{MemoryState, State as _};
    use crate::world::Roster;
    use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
    use slurmconf::Config;
    use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};

    #[tokio::test(start_paused = true)]
    async fn a_node_that_another_process_wants_is_yielded() -> Result<(), Box<dyn std::error::Error>>
    {
        let node = NodeName::new("n1")?;
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n1".parse()?));
        let cloud = MemoryCloud::new(MemoryCloudSettings::default());
        let state = MemoryState::new();
        let clock = || SystemTime::UNIX_EPOCH;
        let tools = Tools { clock: &clock, ..Tools::new(&cloud, &slurm, &state) };
        let (site, config) = (Site::new(Identity::cluster("blue")), Config::default());
        let (roster, deadline) = (Roster::new(&config), Instant::now() + Duration::from_mins(9));
        let executor = Executor::new(&tools, &site, &roster, Operation::Start, deadline);
        let shared = Shared::new(&executor, &[], [node.clone()].into_iter(), Outbox::default());
        let wish = |since| state.ask_to_yield(std::slice::from_ref(&node), since + WISH);
        wish(SystemTime::UNIX_EPOCH)?;
        shared.yield_nodes();
        assert_eq!(shared.signals(&node).leave.get(), None, "older than the start");
        wish(SystemTime::UNIX_EPOCH + Duration::from_secs(1))?;
        shared.yield_nodes();
        assert_eq!(shared.signals(&node).leave.get(), Some(Leave::Yield));
        Ok(())
    }
}
