//! One pass over many nodes, which are worked on concurrently.
//!
//! Everything lives in one future and nothing is spawned: dropping the future stops the work. A
//! semaphore limits the number of concurrent requests.

use super::LAST_ANSWERS;
use super::bring_up::From;
use super::node::NodeWork;
use super::shared::{Passed, Shared};
use super::take_down::TakeDown;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::failure::Failure;
use crate::report::Outcome;
use crate::state::NodeLock;
use cloud_core::InstanceId;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::NodeName;
use std::rc::Rc;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};
use tracing::Instrument as _;

/// One node, its lock, and what to achieve for it.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) node: NodeName,
    pub(super) lock: Option<Box<dyn NodeLock>>,
    pub(super) goal: Goal,
}

#[derive(Debug)]
pub(super) enum Goal {
    /// Bring the node up; with `reports`, report its address to Slurm.
    Up { from: From, reports: bool },
    /// Terminate the node's instances.
    Down(TakeDown),
    /// Wait until terminated instances are gone.
    Gone(Vec<InstanceId>),
}

/// Works until every node has an outcome, and the outbox is empty or has given up.
pub(super) async fn pass(shared: Shared<'_>, tasks: Vec<Task>) -> (Passed, Cooldowns) {
    // Nodes that fail at the same moment share one call to Slurm, so no node may be interrupted by
    // the scheduler before all of them have been polled.
    unconstrained(carry_out(&shared, tasks)).await;
    (shared.passed.into_inner(), shared.cooldowns.into_inner())
}

async fn carry_out<'a>(shared: &'a Shared<'a>, tasks: Vec<Task>) {
    let mut nodes: FuturesUnordered<_> =
        tasks.into_iter().map(|task| task.carry_out(shared)).collect();
    let work = async {
        while nodes.next().await.is_some() {}
        shared.outbox.drained().await;
    };
    tokio::select! {
        biased;
        () = shared.time_is_up() => {}
        () = work => return,
        () = shared.deliver() => {}
        () = shared.refresh_listing() => {}
        () = shared.watch_for_yields() => {}
    }
    // Requests under way had LAST_ANSWERS to finish: give up on the rest.
    shared.end();
    while nodes.next().await.is_some() {}
}

impl Task {
    async fn carry_out<'a>(self, shared: &'a Shared<'a>) {
        let span = tracing::info_span!("node", node = %self.node);
        self.work(shared).instrument(span).await;
    }

    async fn work<'a>(self, shared: &'a Shared<'a>) {
        let mut work = NodeWork::new(self.node, self.lock, shared);
        let signals = Rc::clone(&work.signals);
        let outcome = tokio::select! {
            biased;
            () = signals.late() => {
                let late = || Failure::new(Cause::Timeout, Cause::Timeout.words());
                work.failure.get_or_insert_with(late);
                if signals.is_yielded() { Outcome::Yielded } else { Outcome::Failed }
            }
            outcome = work.pursue(self.goal) => outcome,
        };
        shared.finish(work, outcome);
    }
}

impl NodeWork<'_> {
    async fn pursue(&mut self, goal: Goal) -> Outcome {
        match goal {
            Goal::Up { from, reports } => self.bring_up(from, reports).await,
            Goal::Down(how) => self.take_down(how).await,
            Goal::Gone(ids) => self.wait_gone(ids).await,
        }
    }
}

impl Shared<'_> {
    /// Stops all nodes at the deadline or on cancellation, then waits for requests under way to finish.
    async fn time_is_up(&self) {
        let mut cancel = self.tools.cancel.clone();
        let stopped = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.stop(Cause::Cancelled);
                Instant::now()
            }
            () = self.deadline_passed() => {
                self.stop(Cause::Timeout);
                self.deadline
            }
        };
        sleep_until(stopped + LAST_ANSWERS).await;
    }

    /// Waits for the deadline. One that has passed is ready at once, before any node begins: a timer may need a turn of its
    /// driver first.
    async fn deadline_passed(&self) {
        if Instant::now() < self.deadline {
            sleep_until(self.deadline).await;
        }
    }
}
