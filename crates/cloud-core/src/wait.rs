//! Waiting for instances, many at a time.

use crate::clock::from_now;
use crate::{
    Error, ErrorKind, ImageId, Instance, InstanceFilter, InstanceId, InstanceState, Provider,
    Result,
};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Pauses are at least this, so that a wait is never a busy loop.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

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

/// How often to look, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The first pause, before the first look unless that is taken at once; each later one is half as
    /// long again.
    pub first: Duration,
    /// Longest pause between looks.
    pub longest: Duration,
    /// When to stop waiting, counted from the call.
    pub deadline: Duration,
}

impl Poll {
    /// Looks after a second, then ever less often up to every ten, until the deadline.
    #[must_use]
    pub const fn until(deadline: Duration) -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(10), deadline }
    }

    fn after(&self, pause: Duration) -> Duration {
        pause
            .saturating_mul(3)
            .checked_div(2)
            .unwrap_or(pause)
            .min(self.longest)
            .max(SHORTEST_PAUSE)
    }
}

/// How a wait ended for one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// What was waited for has come; as last seen.
    Reached(Instance),
    /// It has failed or is terminating, or what it was to become has failed; as last seen.
    Lost(Instance),
    /// There is no such instance any more.
    Gone,
    /// The deadline came first; as last seen, if it ever was.
    TimedOut(Option<Instance>),
    /// The cloud would not be asked any more, for the reason in [`Waited::last_error`]; as last
    /// seen, if it ever was.
    Unknown(Option<Instance>),
}

/// How a wait ended, for each instance that was waited for.
#[derive(Debug)]
pub struct Waited {
    /// One outcome for each id.
    pub outcomes: BTreeMap<InstanceId, WaitOutcome>,
    /// The last error of a look. The wait went on after it, unless an outcome is
    /// [`WaitOutcome::Unknown`].
    pub last_error: Option<Error>,
}

/// Waits over any [`Provider`].
///
/// A wait does not fail: whatever happens, each instance has its outcome. A look that ends in an
/// error that may pass (throttled, unavailable, an answer that makes no sense) is repeated at the
/// next interval; any other error ends the wait at once, and those who were not there yet are
/// [`Unknown`](WaitOutcome::Unknown).
///
/// All but [`wait_back`](Self::wait_back) poll one listing for all instances, at a growing
/// interval, until the deadline. An instance that is missing in a few looks in a row is asked for
/// by itself, and only if the cloud does not know it then it is [`Gone`](WaitOutcome::Gone).
pub trait ProviderExt: Provider {
    /// Waits until they run, after a launch. The first look is after the first pause: what was just
    /// accepted does not run yet.
    ///
    /// The filter has to match them; an instance that it does not show yet is waited for. Not for
    /// after a reboot, a rebuild or a start: a listing may still show them running as they were
    /// before. That is [`wait_back`](Self::wait_back).
    fn wait_running(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Waited> + Send {
        wait(self, Some(filter), ids, poll, Goal::Running)
    }

    /// The same until they also have an address, which is then in the instance.
    fn wait_address(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Waited> + Send {
        wait(self, Some(filter), ids, poll, Goal::Address)
    }

    /// Waits until they are gone: [`WaitOutcome::Gone`], or still shown as terminated and
    /// [`WaitOutcome::Reached`].
    fn wait_gone(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Waited> + Send {
        wait(self, Some(filter), ids, poll, Goal::Gone)
    }

    /// Waits until they run again after a reboot, a start or a rebuild, and then with this image.
    ///
    /// Asks for each by itself, because listings lag behind, and for the first time after the
    /// first pause, so that the cloud has begun. The image is not compared where the cloud does
    /// not show any.
    fn wait_back(
        &self,
        ids: &[InstanceId],
        image: Option<&ImageId>,
        poll: Poll,
    ) -> impl Future<Output = Waited> + Send {
        wait(self, None, ids, poll, Goal::Back(image))
    }
}

impl<P: Provider + ?Sized> ProviderExt for P {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal<'a> {
    Running,
    Address,
    Gone,
    Back(Option<&'a ImageId>),
}

impl Goal<'_> {
    /// True if it may be there as soon as the cloud has accepted what leads to it.
    fn may_be_reached_at_once(self) -> bool {
        match self {
            Goal::Gone => true,
            Goal::Running | Goal::Address | Goal::Back(_) => false,
        }
    }

    /// True if waiting makes no sense any more.
    fn is_out_of_reach(self, instance: &Instance) -> bool {
        match self {
            Goal::Running | Goal::Address => instance.state.is_lost(),
            // It may run on as it was before, and the cloud says that the rebuild has failed.
            Goal::Back(_) => instance.state.is_lost() || instance.fault.is_some(),
            Goal::Gone => false,
        }
    }

    fn is_reached(self, instance: &Instance) -> bool {
        let running = instance.state == InstanceState::Running;
        match self {
            Goal::Running => running,
            Goal::Address => running && instance.address.is_some(),
            Goal::Gone => !instance.state.is_live(),
            Goal::Back(wanted) => {
                let shown = instance.image.as_ref();
                running && wanted.zip(shown).is_none_or(|(wanted, shown)| wanted == shown)
            }
        }
    }
}

async fn wait<P: Provider + ?Sized>(
    provider: &P,
    filter: Option<&InstanceFilter>,
    ids: &[InstanceId],
    poll: Poll,
    goal: Goal<'_>,
) -> Waited {
    let deadline = from_now(poll.deadline);
    let end = poll.first.min(poll.deadline / 20).max(SHORTEST_PAUSE);
    let mut round = Round::new(ids);
    let mut pause = poll.first.max(SHORTEST_PAUSE);
    if !goal.may_be_reached_at_once() && !round.waiting.is_empty() {
        sleep(pause.min(poll.deadline / 2)).await;
        pause = poll.after(pause);
    }
    while !round.waiting.is_empty() {
        let look = async {
            match filter {
                Some(filter) => round.look_at_all(provider, filter, goal).await,
                None => round.look_at_each(provider, goal).await,
            }
        };
        match timeout_at(deadline, look).await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return round.finish(WaitOutcome::Unknown),
            Err(_elapsed) => break,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left <= end {
            break;
        }
        if !round.waiting.is_empty() {
            // Shorter at the end, so that the last look is not long before the deadline.
            sleep(pause.min(left / 2)).await;
            pause = poll.after(pause);
        }
    }
    round.finish(WaitOutcome::TimedOut)
}

/// Who is still waited for, who was last seen how, and who is done.
struct Round {
    waiting: BTreeSet<InstanceId>,
    /// Who has been in a listing.
    listed: BTreeSet<InstanceId>,
    /// How many looks in a row have missed whom.
    missed: BTreeMap<InstanceId, u32>,
    seen: BTreeMap<InstanceId, Instance>,
    outcomes: BTreeMap<InstanceId, WaitOutcome>,
    last_error: Option<Error>,
}

impl Round {
    fn new(ids: &[InstanceId]) -> Self {
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
    async fn look_at_all<P: Provider + ?Sized>(
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
    async fn look_at_each<P: Provider + ?Sized>(
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
        let mut answers = futures_util::stream::iter(requests).buffer_unordered(AT_A_TIME);
        while let Some((id, shown)) = answers.next().await {
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
        let passes = error.kind().passes();
        self.last_error = Some(error);
        if passes { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Gives the rest this outcome, with what was last seen of them.
    fn finish(mut self, rest: fn(Option<Instance>) -> WaitOutcome) -> Waited {
        for id in self.waiting {
            let last = self.seen.remove(&id);
            self.outcomes.insert(id, rest(last));
        }
        Waited { outcomes: self.outcomes, last_error: self.last_error }
    }
}
