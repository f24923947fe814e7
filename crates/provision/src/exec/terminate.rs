//! Terminates instances that are in the way of a launch or not wanted any more.

use super::ambiguous_launch::Asker;
use super::listing::{LookedUp, Seen, Wait, Waiter};
use super::node::{End, NodeWork};
use super::stage::Executor;
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::{Clear, Finding, Handling};
use crate::retry::{self, Retry};
use crate::state::{EventKind, LEAVING};
use cloud_core::{Error, Instance, InstanceId};
use futures_util::stream::{self, StreamExt as _};
use std::collections::BTreeSet;
use tokio::time::Instant;

impl NodeWork<'_> {
    /// Terminates what is in the way of a launch, and waits until it is gone. Returns an instance if an
    /// earlier launch, or another process, turns out to have created one: no launch is needed then.
    pub(super) async fn clear_the_way(
        &mut self,
        in_the_way: Vec<Clear>,
    ) -> Result<Option<Instance>, Failure> {
        let (mut ids, mut leaving) = (Vec::new(), BTreeSet::new());
        for clear in in_the_way {
            match clear {
                Clear::Terminate(id) => ids.push(id),
                Clear::AwaitGone(id) => {
                    self.note(EventKind::Waiting, &id);
                    leaving.insert(id);
                }
            }
        }
        while let Some(id) = ids.pop() {
            if let Err(failure) = self.terminate(&id, false).await {
                return Err(self.failure.clone().unwrap_or(failure));
            }
            leaving.insert(id);
        }
        if !leaving.is_empty()
            && let Some(found) = self.gone_or_found(leaving).await?
        {
            return Ok(Some(found));
        }
        if self.has_open_launch() && !self.presumed_lost {
            return self.resolve_launch(self.repeat_or_launch(), Asker::Before).await;
        }
        Ok(None)
    }

    /// Terminates an instance, with retries: termination is idempotent. With `asks`, before each repeat Slurm is asked
    /// whether it has resumed the node, whose job then runs there.
    pub(super) async fn terminate(&mut self, id: &InstanceId, asks: bool) -> Result<(), Failure> {
        let mut retry = Retry::default();
        loop {
            let permit = self.permit().await;
            let Err(error) = self.request_end(id, End::Terminate, permit).await else {
                return Ok(());
            };
            self.pause_or_fail(id, &mut retry, &error).await?;
            if asks && self.shared.outbox.is_wanted(&self.name).await != Some(false) {
                return Ok(());
            }
        }
    }

    /// Waits before a termination is requested again; an error if it should not be.
    pub(super) async fn pause_or_fail(
        &self,
        id: &InstanceId,
        retry: &mut Retry,
        error: &Error,
    ) -> Result<(), Failure> {
        if retry.wait(error).await {
            return Ok(());
        }
        let failure = Failure::of(error, None, self.names());
        let text = &failure.text;
        self.shared.warn(format!("{}: {id} could not be terminated: {text}", self.name));
        Err(failure)
    }

    /// Waits until the old instances of a node are gone, or another instance is found. Bare metal takes long
    /// to go, so this may use half of the time that is left; the other half is for the boot. The deadline of a
    /// run that waits a day for jobs does not count here.
    pub(super) async fn gone_or_found(
        &mut self,
        leaving: BTreeSet<InstanceId>,
    ) -> Result<Option<Instance>, Failure> {
        let now = Instant::now();
        let left = self.shared.deadline.saturating_duration_since(now);
        let left = left.min(self.shared.site.policies.deadline);
        let others = self.until_gone(leaving, now + LEAVING.max(left / 2), true).await?;
        if others.is_empty() { Ok(None) } else { self.adopt_found(&others).map(Some) }
    }

    /// Waits until the cloud says that instances are gone; that a listing omits them is not enough. With
    /// `or_others`, returns other instances of the node as soon as one is listed.
    pub(super) async fn until_gone(
        &mut self,
        mut ids: BTreeSet<InstanceId>,
        until: Instant,
        or_others: bool,
    ) -> Result<Vec<Instance>, Failure> {
        let mut waiter = Waiter::new(self.shared, &self.name, Wait::Gone);
        let mut hidden: Option<InstanceId> = None;
        while !ids.is_empty() {
            let shown = match waiter.next(hidden.take()).await? {
                Seen::Listed(shown) => shown,
                Seen::LookedUp(id, found) => {
                    if self.is_gone(&id, &found) {
                        ids.remove(&id);
                    }
                    continue;
                }
            };
            let now = self.shared.tools.now();
            let is_other = |one: &&Instance| {
                !one.state.is_leaving()
                    && !ids.contains(&one.id)
                    && !self.record.is_terminated(&one.id, now)
            };
            let others: Vec<Instance> = shown.iter().filter(is_other).cloned().collect();
            if or_others && !others.is_empty() {
                return Ok(others);
            }
            for gone in shown.iter().filter(|one| !one.state.is_live()) {
                if ids.remove(&gone.id) {
                    self.note_gone(&gone.id);
                }
            }
            if !ids.is_empty() && Instant::now() >= until {
                let text = "an instance on its way out did not go";
                return Err(Failure::new(Cause::Timeout, text));
            }
            // A listing that shows it running is behind.
            let leaves =
                |id: &InstanceId| shown.iter().any(|one| one.id == *id && one.state.is_leaving());
            hidden = ids.iter().find(|id| !leaves(id)).cloned();
        }
        Ok(Vec::new())
    }

    /// True if an instance that was looked up by id is gone or not ours any more. Records that.
    fn is_gone(&mut self, id: &InstanceId, found: &LookedUp) -> bool {
        match found {
            LookedUp::NotOurs => self.disown(id),
            LookedUp::Missing => self.note_gone(id),
            LookedUp::Instance(one) if !one.state.is_live() => self.note_gone(id),
            LookedUp::Instance(_) | LookedUp::Unknown => return false,
        }
        true
    }
}

impl Executor<'_> {
    /// Terminates instances of this cluster that belong to no node.
    pub(super) async fn terminate_nameless(&mut self, ids: Vec<InstanceId>) {
        let (tools, concurrency) = (self.tools, self.site.policies.concurrency.max(1));
        let deadline = self.deadline;
        let ended: Vec<(InstanceId, Result<(), Error>)> = stream::iter(ids)
            .map(|id| async move {
                let result = retry::until(deadline, || tools.cloud.terminate(&id)).await;
                (id, result)
            })
            .buffer_unordered(concurrency)
            .collect()
            .await;
        for (id, result) in ended {
            match result {
                Ok(()) => {
                    self.tools.note(&self.tools.event(EventKind::Terminated).with(id.as_str()));
                }
                Err(error) => {
                    self.report.failures.push(format!("{id}: {error}"));
                    let named = |it: &&mut Finding| it.node.is_none() && it.instances.contains(&id);
                    for finding in self.report.findings.iter_mut().filter(named) {
                        finding.handling = Handling::Watched;
                    }
                }
            }
        }
    }
}
