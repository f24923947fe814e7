//! The looks of a wait: who is asked for, and what their answers mean.

use super::{Goal, WaitOutcome, Waited};
use crate::{
    Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceState, Provider, Result,
};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Looks in a row that miss an instance before it is asked for by itself. Listings of eventually
/// consistent clouds flap, and lag behind a launch more often than an instance vanishes.
const MISSED: u32 = 2;
const MISSED_NEW: u32 = 4;

/// Most instances that one look asks for by themselves, unless they are to be gone: a listing that
/// is far behind a thousand launches must not become a thousand requests.
const MOST_ASKED: usize = 8;

/// How many are asked for by themselves at a time: one after the other, a look at hundreds would take
/// longer than they do.
const AT_A_TIME: usize = 16;

/// Who is still waited for, who was last seen how, and who is done.
pub(super) struct Round {
    pub(super) waiting: BTreeSet<InstanceId>,
    /// Who has been in a listing.
    listed: BTreeSet<InstanceId>,
    /// How many looks in a row have missed whom.
    missed: BTreeMap<InstanceId, u32>,
    seen: BTreeMap<InstanceId, Instance>,
    outcomes: BTreeMap<InstanceId, WaitOutcome>,
    last_error: Option<Error>,
}

impl Round {
    pub(super) fn new(ids: &[InstanceId]) -> Self {
        Self {
            waiting: ids.iter().cloned().collect(),
            listed: BTreeSet::new(),
            missed: BTreeMap::new(),
            seen: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            last_error: None,
        }
    }

    /// One listing for all. Breaks off if it makes no sense to look again.
    pub(super) async fn look_at_all<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        filter: &InstanceFilter,
        goal: Goal<'_>,
    ) -> ControlFlow<()> {
        let listed = match provider.list(filter).await {
            Ok(listed) => listed,
            Err(error) => return self.note(error),
        };
        let mut shown: BTreeMap<_, _> =
            listed.into_iter().map(|instance| (instance.id.clone(), instance)).collect();
        let mut flow = ControlFlow::Continue(());
        if goal == Goal::Address {
            flow = self.fill_addresses(provider, &mut shown).await;
        }
        for id in self.waiting.clone() {
            if let Some(instance) = shown.remove(&id) {
                self.missed.remove(&id);
                self.listed.insert(id);
                self.judge(instance, goal);
            } else {
                let missed = self.missed.entry(id).or_default();
                *missed = missed.saturating_add(1);
            }
        }
        self.ask_for_missing(provider, goal).await;
        flow
    }

    /// One request for all that run and show no address in the listing.
    async fn fill_addresses<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        shown: &mut BTreeMap<InstanceId, Instance>,
    ) -> ControlFlow<()> {
        let without: Vec<InstanceId> = shown
            .values()
            .filter(|instance| self.waiting.contains(&instance.id))
            .filter(|instance| instance.state == InstanceState::Running)
            .filter(|instance| instance.address.is_none())
            .map(|instance| instance.id.clone())
            .collect();
        if without.is_empty() {
            return ControlFlow::Continue(());
        }
        let addresses = match provider.addresses(&without).await {
            Ok(addresses) => addresses,
            Err(error) => return self.note(error),
        };
        for (id, address) in addresses {
            if let Some(instance) = shown.get_mut(&id) {
                instance.address = Some(address);
            }
        }
        ControlFlow::Continue(())
    }

    /// Asks for those by themselves that the listings have missed for too long.
    async fn ask_for_missing<P: Provider + ?Sized>(&mut self, provider: &P, goal: Goal<'_>) {
        let most = if goal == Goal::Gone { usize::MAX } else { MOST_ASKED };
        let is_due = |id: &&InstanceId| {
            let new = goal != Goal::Gone && !self.listed.contains(*id);
            let patience = if new { MISSED_NEW } else { MISSED };
            self.missed.get(*id).is_some_and(|missed| *missed >= patience)
        };
        let due: Vec<InstanceId> = self.waiting.iter().filter(is_due).take(most).cloned().collect();
        for id in &due {
            // Whatever comes of it, others are asked for next time.
            self.missed.remove(id);
        }
        // That one of them cannot be asked for is no reason to leave all the others.
        let _ = self.ask(provider, due, goal).await;
    }

    /// One request for each. Breaks off if it makes no sense to look again.
    pub(super) async fn look_at_each<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        goal: Goal<'_>,
    ) -> ControlFlow<()> {
        let ids: Vec<InstanceId> = self.waiting.iter().cloned().collect();
        self.ask(provider, ids, goal).await
    }

    /// Asks for each by itself. Breaks off if that makes no sense for any of them.
    async fn ask<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        ids: Vec<InstanceId>,
        goal: Goal<'_>,
    ) -> ControlFlow<()> {
        let mut hopeless = !ids.is_empty();
        let requests = ids.into_iter().map(|id| async {
            let shown = provider.get(&id).await;
            (id, shown)
        });
        let mut responses = futures_util::stream::iter(requests).buffer_unordered(AT_A_TIME);
        while let Some((id, shown)) = responses.next().await {
            hopeless &= self.hear(&id, shown, goal).is_break();
        }
        if hopeless { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn hear(
        &mut self,
        id: &InstanceId,
        shown: Result<Instance>,
        goal: Goal<'_>,
    ) -> ControlFlow<()> {
        match shown {
            Ok(instance) => self.judge(instance, goal),
            Err(error) if error.kind() == ErrorKind::NotFound => self.end(id, WaitOutcome::Gone),
            Err(error) => return self.note(error),
        }
        ControlFlow::Continue(())
    }

    fn judge(&mut self, instance: Instance, goal: Goal<'_>) {
        let id = instance.id.clone();
        if goal.is_reached(&instance) {
            self.end(&id, WaitOutcome::Reached(instance));
        } else if goal.is_out_of_reach(&instance) {
            self.end(&id, WaitOutcome::Lost(instance));
        } else {
            self.seen.insert(id, instance);
        }
    }

    fn end(&mut self, id: &InstanceId, outcome: WaitOutcome) {
        self.waiting.remove(id);
        self.outcomes.insert(id.clone(), outcome);
    }

    fn note(&mut self, error: Error) -> ControlFlow<()> {
        let passes = error.kind().is_transient();
        self.last_error = Some(error);
        if passes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Gives the rest this outcome, with what was last seen of them.
    pub(super) fn finish(mut self, rest: fn(Option<Instance>) -> WaitOutcome) -> Waited {
        for id in self.waiting {
            let last = self.seen.remove(&id);
            self.outcomes.insert(id, rest(last));
        }
        Waited { outcomes: self.outcomes, last_error: self.last_error }
    }
}
