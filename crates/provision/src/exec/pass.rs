//! One pass over many nodes: the story of each, side by side.
//!
//! Everything lives in one future. Nothing is spawned, so that whoever drops the future has stopped
//! it, and requests under way are bounded by a number and not by the number of nodes.

use super::LAST_ANSWERS;
use super::bring_up::From;
use super::failure::Failure;
use super::node::NodeWork;
use super::shared::{Passed, Setting, Shared};
use super::take_down::TakeDown;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::report::Outcome;
use crate::state::NodeLock;
use cloud_core::InstanceId;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hostlist::NodeName;
use slurmctl::JobId;
use std::rc::Rc;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

/// What is to become of a node.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) node: NodeName,
    pub(super) lock: Option<Box<dyn NodeLock>>,
    pub(super) goal: Goal,
}

#[derive(Debug)]
pub(super) enum Goal {
    /// It comes up, and Slurm is told of it if somebody waits.
    Up {
        from: From,
        tells: bool,
    },
    Down(TakeDown),
    /// Nothing of it is there, but a launch may yet bring something.
    StaysDown(TakeDown),
    /// What was told to go is gone.
    Gone(Vec<InstanceId>),
}

/// Works until every node is over, and what was to be said to Slurm is said, or has been tried often enough.
pub(super) async fn pass(
    setting: Setting<'_>,
    tasks: Vec<Task>,
    comments: Vec<(JobId, String)>,
) -> (Passed, Cooldowns) {
    let shared = Shared::new(setting, tasks.iter().map(|task| task.node.clone()));
    for (job, text) in comments {
        shared.outbox.comment(job, text);
    }
    // One call to Slurm for all that fail at once: nobody's turn ends before all have had theirs.
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
    }
    // Even the last answers have not come in time.
    shared.end();
    while nodes.next().await.is_some() {}
}

impl Task {
    async fn carry_out<'a>(self, shared: &'a Shared<'a>) {
        let mut work = NodeWork::new(self.node, self.lock, shared);
        let signals = Rc::clone(&work.signals);
        let outcome = tokio::select! {
            biased;
            () = signals.late() => {
                let late = || Failure::new(Cause::Timeout, Cause::Timeout.words());
                work.failure.get_or_insert_with(late);
                Outcome::Failed
            }
            outcome = work.pursue(self.goal) => outcome,
        };
        shared.finish(work, outcome);
    }
}

impl NodeWork<'_> {
    async fn pursue(&mut self, goal: Goal) -> Outcome {
        match goal {
            Goal::Up { from, tells } => self.bring_up(from, tells).await,
            Goal::Down(how) => self.take_down(how).await,
            Goal::StaysDown(how) => self.sweep(how).await,
            Goal::Gone(ids) => self.wait_gone(ids).await,
        }
    }
}

impl Shared<'_> {
    /// Stops all when the deadline has come or somebody says so, and waits for the last answers.
    async fn time_is_up(&self) {
        let mut cancel = self.tools.cancel.clone();
        let stopped = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.stop(Cause::Cancelled);
                Instant::now()
            }
            () = sleep_until(self.deadline) => {
                self.stop(Cause::Timeout);
                self.deadline
            }
        };
        sleep_until(stopped + LAST_ANSWERS).await;
    }
}
