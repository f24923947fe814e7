//! Takes one node down: terminates its instances, unless Slurm wants the node again.

use super::ambiguous_launch::{Asker, IfNotFound, Searched};
use super::node::{End, NodeWork};
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::Why;
use crate::report::Outcome;
use crate::retry::Retry;
use cloud_core::InstanceId;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// How long Slurm's confirmation that a node may go down is valid.
const CONFIRMED: Duration = Duration::from_secs(2);

/// How to take a node down.
#[derive(Debug)]
pub(super) struct TakeDown {
    /// The instances to terminate.
    pub(super) ids: Vec<InstanceId>,
    /// Stop the instance instead, unless the cloud refuses that.
    pub(super) keeps: bool,
    /// Also terminate instances that show up later, from an unanswered launch.
    pub(super) sweeps: bool,
    /// Ask Slurm before each termination whether it wants the node again: while the cloud was slow, the
    /// node may have come up and got a job.
    pub(super) confirms: bool,
}

impl NodeWork<'_> {
    /// Terminates the node's instances, and what an earlier launch may yet bring.
    pub(super) async fn take_down(&mut self, mut how: TakeDown) -> Outcome {
        if let Err(outcome) = self.terminate_all(&mut how).await {
            return outcome;
        }
        // An instance that was stopped is kept: a sweep would find and terminate it.
        if how.sweeps && !how.keeps && self.has_open_launch() {
            return self.sweep(how).await;
        }
        Outcome::Down
    }

    /// Terminates what an unanswered launch may still create.
    async fn sweep(&mut self, mut how: TakeDown) -> Outcome {
        loop {
            let signals = Rc::clone(&self.signals);
            let searched = tokio::select! {
                biased;
                failure = signals.stopped() => Err(failure),
                searched = self.search(IfNotFound::Launch, Asker::Before, false) => searched,
            };
            let found = match searched {
                Ok(Searched::Found(found)) => found,
                Ok(Searched::Nothing(_)) => {
                    self.forget_launch();
                    return if self.has_ended { Outcome::Down } else { Outcome::Nothing };
                }
                Err(failure) => return self.fails(failure),
            };
            if let [one] = &found[..] {
                self.note_instance(&one.id);
            }
            how.ids = found.into_iter().map(|one| one.id).collect();
            if let Err(outcome) = self.terminate_all(&mut how).await {
                return outcome;
            }
            if !self.has_open_launch() {
                return Outcome::Down;
            }
        }
    }

    /// Waits until instances that were terminated before are gone.
    pub(super) async fn wait_gone(&mut self, ids: Vec<InstanceId>) -> Outcome {
        let signals = Rc::clone(&self.signals);
        let until = self.shared.deadline;
        let gone = tokio::select! {
            biased;
            failure = signals.stopped() => Err(failure),
            gone = self.until_gone(ids.into_iter().collect(), until, false) => gone,
        };
        gone.map_or_else(|failure| self.fails(failure), |_| Outcome::Down)
    }

    fn fails(&mut self, failure: Failure) -> Outcome {
        self.failure = Some(failure);
        Outcome::Failed
    }

    /// Terminates all instances; goes on with the others if one fails.
    async fn terminate_all(&mut self, how: &mut TakeDown) -> Result<(), Outcome> {
        let mut confirmed: Option<Instant> = None;
        while let Some(id) = how.ids.pop() {
            let mut retry = Retry::default();
            loop {
                let permit = self.permit().await;
                if how.confirms && confirmed.is_none_or(|at| at.elapsed() >= CONFIRMED) {
                    drop(permit);
                    self.confirm(how).await?;
                    confirmed = Some(Instant::now());
                    continue;
                }
                let end = if how.keeps { End::Stop } else { End::Terminate };
                let Err(error) = self.request_end(&id, end, permit).await else {
                    break;
                };
                if how.keeps && !error.is_worth_a_retry() {
                    how.keeps = false;
                    continue;
                }
                if let Err(failure) = self.pause_or_fail(&id, &mut retry, &error).await {
                    self.failure.get_or_insert(failure);
                    break;
                }
            }
        }
        if self.failure.is_some() { Err(Outcome::Failed) } else { Ok(()) }
    }

    /// Asks Slurm whether it wants the node again. Without an answer, a stop that Slurm asked for goes on,
    /// and what reconcile found stays until Slurm answers.
    async fn confirm(&mut self, how: &mut TakeDown) -> Result<(), Outcome> {
        match self.shared.outbox.is_wanted(&self.name).await {
            Some(false) => Ok(()),
            Some(true) => {
                let words = Why::WantedAgain.to_string();
                self.failure = Some(Failure::new(Cause::Conflict, words));
                Err(Outcome::Nothing)
            }
            None if how.sweeps => {
                how.confirms = false;
                Ok(())
            }
            None => {
                let words = "slurmctld does not say whether it wants it again";
                self.failure = Some(Failure::new(Cause::Slurm, words));
                Err(Outcome::Failed)
            }
        }
    }
}
