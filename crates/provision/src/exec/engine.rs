//! Many nodes at a time: a loop that asks, looks, tells, and waits for whichever answers first.
//!
//! Everything lives in one future. Nothing is spawned, so that whoever drops the future has stopped
//! it, and requests under way are bounded by a number and not by the number of nodes.

use super::ask::Answer;
use super::desk::Desk;
use super::failure::Failure;
use super::look::Look;
use super::tell::Told;
use super::tools::Tools;
use super::work::{Phase, Work};
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::plan::JobGroup;
use crate::report::{NodeReport, Outcome};
use crate::site::{Pool, Site};
use crate::state::{NodeLock, WISH};
use cloud_core::InstanceId;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::NodeName;
use slurmctl::JobId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep_until};

/// How long requests under way may take to end once time is up; a run of half a minute or more
/// leaves as much of its time.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(10);

/// The pauses between looks.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// While it is not known what a launch has done.
const DOUBTFUL_PAUSE: Duration = Duration::from_secs(2);

/// What one pass of the engine made of its nodes.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    pub(crate) reports: BTreeMap<NodeName, NodeReport>,
    pub(crate) warnings: BTreeSet<String>,
    /// Locks of nodes that are over; dropped, or used by whatever comes next for the node.
    pub(crate) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    /// Where nodes are that came up.
    pub(crate) addresses: BTreeMap<NodeName, (IpAddr, InstanceId)>,
}

pub(crate) struct Engine<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) site: &'a Site,
    pub(super) works: BTreeMap<NodeName, Work>,
    pub(super) groups: Vec<JobGroup>,
    pub(super) cooldowns: Cooldowns,
    /// Pools that one launch of ours is trying.
    pub(super) probing: BTreeMap<Pool, NodeName>,
    /// Nodes with an instance that is being asked for by itself.
    pub(super) finding: BTreeSet<NodeName>,
    /// Those that have yet to be asked for, as far as the last look went.
    pub(super) unfound: VecDeque<(NodeName, InstanceId)>,
    pub(super) requests: FuturesUnordered<BoxFuture<'a, Answer>>,
    pub(super) look: Option<BoxFuture<'a, Look>>,
    pub(super) next_look: Instant,
    pause: Duration,
    pub(super) desk: Desk,
    pub(super) call: Option<BoxFuture<'a, Told>>,
    pub(super) deadline: Instant,
    /// Since when the nodes are ours.
    begun: SystemTime,
    /// Time is up, or somebody told us to stop.
    pub(super) stopping: Option<Cause>,
    /// Keep the locks of nodes that are over for the next stage.
    keeps_locks: bool,
    pub(super) passed: Passed,
}

enum Happened {
    Answer(Answer),
    Looked(Look),
    Told(Told),
    Cancelled,
    Time,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(
        tools: &'a Tools<'a>,
        site: &'a Site,
        works: Vec<Work>,
        cooldowns: Cooldowns,
        deadline: Instant,
    ) -> Self {
        Self {
            tools,
            site,
            works: works.into_iter().map(|work| (work.node.clone(), work)).collect(),
            groups: Vec::new(),
            cooldowns,
            probing: BTreeMap::new(),
            finding: BTreeSet::new(),
            unfound: VecDeque::new(),
            requests: FuturesUnordered::new(),
            look: None,
            next_look: Instant::now(),
            pause: FIRST_PAUSE,
            desk: Desk::default(),
            call: None,
            deadline,
            begun: tools.now(),
            stopping: None,
            keeps_locks: false,
            passed: Passed::default(),
        }
    }

    /// The jobs whose nodes come whole or not at all.
    pub(crate) fn with_groups(mut self, groups: Vec<JobGroup>) -> Self {
        self.groups = groups;
        self
    }

    /// What the owners of jobs are told in any case.
    pub(crate) fn with_comments(mut self, comments: Vec<(JobId, String)>) -> Self {
        for (job, text) in comments {
            self.desk.comment(job, text);
        }
        self
    }

    /// Keeps the locks of nodes that are over, for a stage that follows.
    pub(crate) fn keeping_locks(mut self) -> Self {
        self.keeps_locks = true;
        self
    }

    /// Works until every node is over, and what was to be said to Slurm is said, or has been tried often enough.
    pub(crate) async fn run(mut self) -> (Passed, Cooldowns) {
        let mut cancel = self.tools.cancel.clone();
        self.adopt_known();
        loop {
            // Before anything is begun.
            if self.stopping.is_none() && cancel.is_cancelled() {
                self.stop(Cause::Cancelled);
            } else if self.stopping.is_none() && Instant::now() >= self.deadline {
                self.stop(Cause::Timeout);
            }
            self.dispatch();
            self.collect();
            self.begin_look();
            self.begin_call();
            if self.works.is_empty() && self.call.is_none() && self.desk.is_empty() {
                return (self.passed, self.cooldowns);
            }
            if self.is_late() {
                return self.give_up();
            }
            let wake = self.wakes();
            let happened = tokio::select! {
                biased;
                Some(answer) = self.requests.next(), if !self.requests.is_empty() => {
                    Happened::Answer(answer)
                }
                told = slot(&mut self.call) => Happened::Told(told),
                look = slot(&mut self.look) => Happened::Looked(look),
                () = cancel.cancelled(), if self.stopping.is_none() => Happened::Cancelled,
                () = sleep_until(wake) => Happened::Time,
            };
            match happened {
                Happened::Answer(answer) => self.answered(answer),
                Happened::Looked(look) => self.looked(look),
                Happened::Told(told) => self.told(told),
                Happened::Cancelled | Happened::Time => {}
            }
        }
    }

    /// Instances that are up already have nothing to wait for.
    fn adopt_known(&mut self) {
        let known = self.works.values().filter_map(|work| match (&work.phase, work.address) {
            (Phase::Watch(id), Some(address)) => Some((work.node.clone(), id.clone(), address)),
            _ => None,
        });
        for (node, id, address) in known.collect::<Vec<_>>() {
            self.up(&node, &id, address);
        }
    }

    /// Takes out the nodes that are over.
    fn collect(&mut self) {
        let over: Vec<NodeName> = self
            .works
            .values()
            .filter(|work| work.is_over())
            .map(|work| work.node.clone())
            .collect();
        for node in over {
            if let Some(work) = self.works.remove(&node) {
                self.finish(work);
            }
        }
    }

    fn finish(&mut self, work: Work) {
        let outcome = match work.phase {
            Phase::Over(outcome) => outcome,
            Phase::Remove { .. }
            | Phase::AwaitGone { .. }
            | Phase::Doubt { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Watch(_) => Outcome::Failed,
        };
        let report = work.report(outcome);
        let node = work.node.clone();
        if let Some((address, id)) = work.address.zip(work.instance.clone()) {
            self.passed.addresses.insert(node.clone(), (address, id));
        }
        self.passed.reports.insert(node.clone(), report);
        if self.keeps_locks
            && let Some(lock) = work.into_lock()
        {
            self.passed.locks.insert(node, lock);
        }
    }

    fn begin_look(&mut self) {
        let due = Instant::now() >= self.next_look;
        if self.look.is_none() && due && self.works.values().any(Work::needs_look) {
            self.look = Some(self.looks());
        }
    }

    /// The next look is a little later than the last was.
    pub(super) fn plan_look(&mut self) {
        let doubtful = self.works.values().any(|work| matches!(work.phase, Phase::Doubt { .. }));
        let longest = if doubtful { DOUBTFUL_PAUSE } else { LONGEST_PAUSE };
        self.next_look = Instant::now() + self.pause.min(longest);
        self.pause = (self.pause * 3 / 2).min(LONGEST_PAUSE);
    }

    /// Has the next look come soon, if it would not anyway.
    pub(super) fn look_soon(&mut self) {
        self.next_look = self.next_look.min(Instant::now() + DOUBTFUL_PAUSE);
    }

    /// When there is something to do even if nobody answers.
    fn wakes(&self) -> Instant {
        let mut wake = match self.stopping {
            None => self.deadline,
            Some(_) => self.deadline + LAST_ANSWERS,
        };
        let now = Instant::now();
        if self.look.is_none() && self.works.values().any(Work::needs_look) {
            wake = wake.min(self.next_look);
        }
        let pausing = self.works.values().filter(|work| work.can_ask() && work.not_before > now);
        wake = pausing.map(|work| work.not_before).fold(wake, Instant::min);
        if self.call.is_none() && !self.desk.is_empty() {
            wake = wake.min(self.desk.not_before());
        }
        wake
    }

    /// Leaves nodes that others want. A wish from before they were ours was for another's start; who
    /// still has it says it again, and asks Slurm before.
    pub(super) fn yield_nodes(&mut self) {
        let since = self.tools.now().max(self.begun + WISH);
        let wanted = self.tools.state.asked_to_yield(since).unwrap_or_default();
        let mut left = Vec::new();
        for work in self.works.values_mut() {
            let yields = work.is_up_wanted() && wanted.contains(&work.node);
            // What Slurm has not been told yet is not said any more, so that nobody waits for it.
            if yields && (work.telling || !matches!(work.phase, Phase::Over(_))) {
                work.failure = Some(Failure::new(Cause::Cancelled, "stopped while it was started"));
                work.telling = false;
                work.goes(Phase::Over(Outcome::Yielded));
                left.push(work.node.clone());
            }
        }
        self.desk.forget(&wanted);
        for node in left {
            self.ends_probes(&node);
        }
    }

    /// Begins nothing new, and undoes what is not finished.
    fn stop(&mut self, cause: Cause) {
        self.stopping = Some(cause);
        if cause == Cause::Cancelled {
            self.deadline = Instant::now();
        }
        let nodes: Vec<NodeName> = self.works.keys().cloned().collect();
        for node in nodes {
            self.abandon(&node, &Failure::new(cause, cause.words()));
        }
    }

    /// True when even the last answers have not come in time.
    fn is_late(&self) -> bool {
        self.stopping.is_some() && Instant::now() >= self.deadline + LAST_ANSWERS
    }

    fn give_up(mut self) -> (Passed, Cooldowns) {
        for (_, mut work) in std::mem::take(&mut self.works) {
            let late = || Failure::new(Cause::Timeout, Cause::Timeout.words());
            work.failure.get_or_insert_with(late);
            if !matches!(work.phase, Phase::Over(_)) || work.telling {
                work.phase = Phase::Over(Outcome::Failed);
            }
            self.finish(work);
        }
        (self.passed, self.cooldowns)
    }
}

/// Waits for what is in the slot, and takes it out.
async fn slot<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    let Some(future) = slot else {
        return pending().await;
    };
    let done = future.await;
    *slot = None;
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::work::Aim;
    use crate::exec::{Cancel, Files};
    use crate::site::Identity;
    use crate::state::{MemoryState, State as _};
    use cloud_core::memory::{MemoryCloud, Settings};
    use slurmctl::memory::{MemorySlurm, Settings as SlurmSettings};
    use std::time::SystemTime;

    #[tokio::test(start_paused = true)]
    async fn a_node_that_slurm_was_about_to_be_told_of_is_let_go()
    -> Result<(), Box<dyn std::error::Error>> {
        let node = NodeName::new("n1")?;
        let cloud = MemoryCloud::new(Settings::default());
        let slurm = MemorySlurm::new(SlurmSettings::cloud(&"n1".parse()?));
        let (state, files) = (MemoryState::new(), Files::default());
        let clock = || SystemTime::UNIX_EPOCH;
        let tools = Tools {
            cloud: &cloud,
            slurm: &slurm,
            state: &state,
            clock: &clock,
            progress: &(),
            files: &files,
            run: "test",
            cancel: Cancel::never(),
        };
        let site = Site::new(Identity::cluster("blue"));
        let mut work = Work::new(node.clone(), None, Aim::Up(None), Phase::Over(Outcome::Up));
        work.telling = true;
        let deadline = Instant::now() + Duration::from_mins(9);
        let mut engine = Engine::new(&tools, &site, vec![work], Cooldowns::new(), deadline);
        let wish = |since| state.ask_to_yield(std::slice::from_ref(&node), since + WISH);
        wish(SystemTime::UNIX_EPOCH)?;
        engine.yield_nodes();
        assert!(!engine.works.get(&node).is_some_and(Work::is_over), "older than the start");
        wish(SystemTime::UNIX_EPOCH + Duration::from_secs(1))?;
        engine.yield_nodes();
        assert!(engine.works.get(&node).is_some_and(Work::is_over));
        Ok(())
    }
}
