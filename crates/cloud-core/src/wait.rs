//! Waiting for instances, many at a time.

mod round;

use crate::clock::from_now;
use crate::{Error, ImageId, Instance, InstanceFilter, InstanceId, InstanceState, Provider};
use round::Round;
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Pauses are at least this, so that a wait is never a busy loop.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

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
