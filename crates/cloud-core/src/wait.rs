//! Waiting for instances, many at a time.

use crate::clock::from_now;
use crate::{
    Advice, Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceState, Provider, Result,
};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Pauses are at least this, so that a wait is never a busy loop.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// How often to look, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Pause after the first look; each later one is half as long again.
    pub first: Duration,
    /// Longest pause between looks.
    pub longest: Duration,
    /// When to stop waiting, counted from the call.
    pub deadline: Duration,
}

impl Poll {
    /// Looks after one second, then ever less often up to every ten, until the deadline.
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
    /// It has failed or is terminating, and will never get there; as last seen.
    Lost(Instance),
    /// There is no such instance any more.
    Gone,
    /// The deadline came first; as last seen, if it ever was.
    TimedOut(Option<Instance>),
}

/// How a wait ended, for each instance that was waited for.
#[derive(Debug)]
pub struct Waited {
    /// One outcome for each id.
    pub outcomes: BTreeMap<InstanceId, WaitOutcome>,
    /// The last error of a look; the wait went on after it.
    pub last_error: Option<Error>,
}

/// Waits over any [`Provider`].
///
/// Each polls one listing for all instances, at a growing interval, until the deadline. A look
/// that ends in a passing error (throttled, unavailable) is repeated at the next interval; any
/// other error ends the wait at once.
pub trait ProviderExt: Provider {
    /// Waits until they run.
    ///
    /// The filter has to match them; an instance that it does not show yet is waited for.
    fn wait_running(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Result<Waited>> + Send {
        wait(self, filter, ids, poll, Goal::Running)
    }

    /// Waits until they run and have an address, which is then in the instance.
    fn wait_address(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Result<Waited>> + Send {
        wait(self, filter, ids, poll, Goal::Address)
    }

    /// Waits until they are gone: [`WaitOutcome::Gone`], or still shown as terminated and
    /// [`WaitOutcome::Reached`].
    fn wait_gone(
        &self,
        filter: &InstanceFilter,
        ids: &[InstanceId],
        poll: Poll,
    ) -> impl Future<Output = Result<Waited>> + Send {
        wait(self, filter, ids, poll, Goal::Gone)
    }
}

impl<P: Provider + ?Sized> ProviderExt for P {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Goal {
    Running,
    Address,
    Gone,
}

async fn wait<P: Provider + ?Sized>(
    provider: &P,
    filter: &InstanceFilter,
    ids: &[InstanceId],
    poll: Poll,
    goal: Goal,
) -> Result<Waited> {
    let deadline = from_now(poll.deadline);
    let mut round = Round::new(ids);
    let mut pause = poll.first.max(SHORTEST_PAUSE);
    let mut last_error = None;
    while !round.waiting.is_empty() {
        match timeout_at(deadline, round.look(provider, filter, goal)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) if passes(&error) => last_error = Some(error),
            Ok(Err(error)) => return Err(error),
            Err(_elapsed) => break,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if round.waiting.is_empty() || left <= poll.first {
            break;
        }
        // Shorter at the end, so that the last look is not long before the deadline.
        sleep(pause.min(left / 2)).await;
        pause = poll.after(pause);
    }
    Ok(Waited { outcomes: round.finish(), last_error })
}

fn passes(error: &Error) -> bool {
    match error.advice() {
        Advice::RetryAfter | Advice::RetryIfIdempotent | Advice::LookAgain => true,
        Advice::TryElsewhere | Advice::GiveUp => false,
    }
}

/// Who is still waited for, who was last seen how, and who is done.
struct Round {
    waiting: BTreeSet<InstanceId>,
    /// Who has been in a listing: only they can leave it.
    listed: BTreeSet<InstanceId>,
    seen: BTreeMap<InstanceId, Instance>,
    outcomes: BTreeMap<InstanceId, WaitOutcome>,
}

impl Round {
    fn new(ids: &[InstanceId]) -> Self {
        let waiting = ids.iter().cloned().collect();
        Self { waiting, listed: BTreeSet::new(), seen: BTreeMap::new(), outcomes: BTreeMap::new() }
    }

    async fn look<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        filter: &InstanceFilter,
        goal: Goal,
    ) -> Result<()> {
        let listed = provider.list(filter).await?;
        let mut shown: BTreeMap<_, _> =
            listed.into_iter().map(|instance| (instance.id.clone(), instance)).collect();
        if goal == Goal::Address {
            self.fill_addresses(provider, &mut shown).await?;
        }
        for id in self.waiting.clone() {
            let outcome = match shown.remove(&id) {
                Some(instance) => {
                    self.listed.insert(id.clone());
                    self.judge(instance, goal)
                }
                // It was there and is not: gone, whatever we waited for.
                None if self.listed.contains(&id) => Some(WaitOutcome::Gone),
                None => self.judge_unlisted(provider, &id, goal).await?,
            };
            if let Some(outcome) = outcome {
                self.waiting.remove(&id);
                self.outcomes.insert(id, outcome);
            }
        }
        Ok(())
    }

    /// One request for all that run and show no address in the listing.
    async fn fill_addresses<P: Provider + ?Sized>(
        &self,
        provider: &P,
        shown: &mut BTreeMap<InstanceId, Instance>,
    ) -> Result<()> {
        let without: Vec<InstanceId> = shown
            .values()
            .filter(|instance| self.waiting.contains(&instance.id))
            .filter(|instance| instance.state == InstanceState::Running)
            .filter(|instance| instance.address.is_none())
            .map(|instance| instance.id.clone())
            .collect();
        if without.is_empty() {
            return Ok(());
        }
        for (id, address) in provider.addresses(&without).await? {
            if let Some(instance) = shown.get_mut(&id) {
                instance.address = Some(address);
            }
        }
        Ok(())
    }

    fn judge(&mut self, instance: Instance, goal: Goal) -> Option<WaitOutcome> {
        let running = instance.state == InstanceState::Running;
        let reached = match goal {
            Goal::Running => running,
            Goal::Address => running && instance.address.is_some(),
            Goal::Gone => !instance.state.is_live(),
        };
        if reached {
            return Some(WaitOutcome::Reached(instance));
        }
        if goal != Goal::Gone && instance.state.is_lost() {
            return Some(WaitOutcome::Lost(instance));
        }
        self.seen.insert(instance.id.clone(), instance);
        None
    }

    /// A listing may lag behind a launch, so that absence alone does not prove it gone.
    async fn judge_unlisted<P: Provider + ?Sized>(
        &mut self,
        provider: &P,
        id: &InstanceId,
        goal: Goal,
    ) -> Result<Option<WaitOutcome>> {
        if goal != Goal::Gone {
            return Ok(None);
        }
        match provider.get(id).await {
            Ok(instance) => Ok(self.judge(instance, goal)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(WaitOutcome::Gone)),
            Err(error) => Err(error),
        }
    }

    fn finish(mut self) -> BTreeMap<InstanceId, WaitOutcome> {
        for id in self.waiting {
            let last = self.seen.remove(&id);
            self.outcomes.insert(id, WaitOutcome::TimedOut(last));
        }
        self.outcomes
    }
}
