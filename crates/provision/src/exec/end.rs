//! Instances that are told to go.

use super::ask::MOST_TRIES;
use super::engine::Engine;
use super::failure::Failure;
use super::work::{Aim, Phase, Then};
use crate::report::Outcome;
use crate::state::{EventKind, LEAVING};
use cloud_core::{Error, InstanceId};
use hostlist::NodeName;
use std::collections::BTreeSet;
use tokio::time::Instant;

impl Engine<'_> {
    pub(super) fn terminated(
        &mut self,
        node: &NodeName,
        id: &InstanceId,
        result: Result<(), Error>,
    ) {
        let now = self.tools.now();
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        match result {
            Ok(()) => {
                work.notes_termination(id, now);
                work.ended = true;
                work.tries = 0;
                if let Phase::Remove { ids, told, .. } = &mut work.phase {
                    ids.retain(|left| left != id);
                    told.insert(id.clone());
                    if ids.is_empty() {
                        self.removed(node);
                    }
                }
                let event = self.tools.event(EventKind::Terminated).of(node);
                self.tools.note(&event.with(id.as_str()));
            }
            Err(error) => {
                let again =
                    error.kind().is_transient() && work.retries(MOST_TRIES, error.retry_after());
                if !again {
                    self.stays(node, id, Failure::of(&error, None, Some(node)));
                }
            }
        }
    }

    /// An instance that would not go.
    fn stays(&mut self, node: &NodeName, id: &InstanceId, failure: Failure) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        self.passed
            .warnings
            .insert(format!("{node}: {id} could not be terminated: {}", failure.text));
        let first = work.failure.clone().unwrap_or(failure);
        match &mut work.phase {
            // The others are to go all the same.
            Phase::Remove { ids, then: Then::Over(outcome), .. } => {
                ids.retain(|left| left != id);
                let (outcome, none_left) = (*outcome, ids.is_empty());
                work.tries = 0;
                let outcome = match work.aim {
                    Aim::Gone { .. } => {
                        work.failure = Some(first);
                        Outcome::Failed
                    }
                    Aim::Up(_) => outcome,
                };
                if none_left {
                    work.goes(Phase::Over(outcome));
                }
            }
            Phase::Remove { then: Then::Launch, .. }
            | Phase::AwaitGone { .. }
            | Phase::Doubt { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Watch(_)
            | Phase::Over(_) => self.fail(node, first),
        }
    }

    /// All of the node's instances have been told to go.
    pub(super) fn removed(&mut self, node: &NodeName) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let Phase::Remove { told, then, .. } = &work.phase else {
            return;
        };
        let (told, mut then) = (told.clone(), *then);
        if !work.is_up_wanted() && work.failure.is_some() {
            // One of them would not go.
            then = Then::Over(Outcome::Failed);
        }
        let certain = match work.aim {
            Aim::Gone { certain } => certain,
            Aim::Up(_) => then == Then::Launch,
        };
        if certain && !told.is_empty() {
            return self.await_gone(node, told, then);
        }
        work.goes_on(then, self.tools);
    }

    /// Waits until these are gone, in bounds: bare metal takes its time, and half of what is left is for the boot. A
    /// day that jobs are waited for is not meant for this.
    pub(super) fn await_gone(&mut self, node: &NodeName, ids: BTreeSet<InstanceId>, then: Then) {
        let now = Instant::now();
        let left = self.deadline.saturating_duration_since(now).min(self.site.policies.deadline);
        let until = now + LEAVING.max(left / 2);
        if let Some(work) = self.works.get_mut(node) {
            work.goes(Phase::AwaitGone { ids, until, then });
        }
    }
}

/// These are to be told to go.
pub(crate) fn remove(ids: Vec<InstanceId>, then: Then) -> Phase {
    Phase::Remove { ids, told: BTreeSet::new(), then }
}
