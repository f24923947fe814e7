//! Waiting for instances, many at a time.

use crate::clock::from_now;
use crate::{Error, ErrorKind, ImageId, Instance, InstanceId, InstanceState, Provider, Result};
use futures_util::StreamExt as _;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Pauses are at least this, so that a wait is never a busy loop.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Requests in flight at a time: one after the other, hundreds would take longer than the boots.
const CONCURRENCY: usize = 16;

/// How often to poll, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The first pause; each later one is half as long again.
    pub first: Duration,
    /// Longest pause between polls.
    pub longest: Duration,
    /// When to stop waiting, counted from the call.
    pub deadline: Duration,
}

impl Poll {
    /// Polls after a second, then less and less often down to every ten seconds, until the deadline.
    #[must_use]
    pub const fn until(deadline: Duration) -> Self {
        Self { first: Duration::from_secs(1), longest: Duration::from_secs(10), deadline }
    }

    fn after(&self, pause: Duration) -> Duration {
        pause.saturating_add(pause / 2).min(self.longest).max(SHORTEST_PAUSE)
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal<'a> {
    /// The instance runs.
    Running,
    /// The instance runs this image. A cloud that does not show images is believed.
    RunningImage(&'a ImageId),
    /// The instance runs and has an address, which is then in the instance.
    Addressed,
    /// The instance is terminated, or the cloud no longer knows it.
    Gone,
}

impl Goal<'_> {
    fn is_reached(self, instance: &Instance) -> bool {
        let running = instance.state == InstanceState::Running;
        match self {
            Self::Running => running,
            Self::RunningImage(wanted) => {
                running && instance.image.as_ref().is_none_or(|shown| shown == wanted)
            }
            Self::Addressed => running && instance.address.is_some(),
            Self::Gone => !instance.state.is_live(),
        }
    }

    fn is_out_of_reach(self, instance: &Instance) -> bool {
        // A failed rebuild leaves the instance running as it was, with a fault.
        self != Self::Gone && (instance.state.is_lost() || instance.fault.is_some())
    }
}

/// How a wait ended for one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The goal is reached; as last seen.
    Reached(Instance),
    /// It has failed or is terminating, so that the goal is out of reach; as last seen.
    Lost(Instance),
    /// There is no such instance any more.
    Gone,
    /// The deadline came first; as last seen, if it ever was.
    TimedOut(Option<Instance>),
    /// The cloud refused to answer, for the reason in [`Waited::last_error`]; as last seen, if it
    /// ever was.
    Unknown(Option<Instance>),
}

/// How a wait ended, for each instance that was waited for.
#[derive(Debug)]
pub struct Waited {
    /// One outcome for each id.
    pub outcomes: BTreeMap<InstanceId, WaitOutcome>,
    /// The last error of a poll. The wait went on after it, unless an outcome is
    /// [`WaitOutcome::Unknown`].
    pub last_error: Option<Error>,
}

/// Polls each instance by itself until all have reached the goal or the deadline has come.
///
/// A wait does not fail: whatever happens, each instance has its outcome. A transient error is
/// followed by another poll. Once every request of a poll is refused for good, the wait ends, and
/// the instances left are [`Unknown`](WaitOutcome::Unknown).
///
/// The first poll comes after the first pause, so that the cloud has begun what it accepted, unless
/// the goal may be reached at once. To wait for many launches, list instead: that takes one request
/// for all of them.
pub async fn wait_until(
    provider: &dyn Provider,
    ids: &[InstanceId],
    goal: Goal<'_>,
    poll: Poll,
) -> Waited {
    let deadline = from_now(poll.deadline);
    let shortest = poll.first.min(poll.deadline / 20).max(SHORTEST_PAUSE);
    let mut wait = Wait {
        provider,
        goal,
        waiting: ids.iter().cloned().collect(),
        seen: BTreeMap::new(),
        outcomes: BTreeMap::new(),
        last_error: None,
    };
    let mut pause = poll.first.max(SHORTEST_PAUSE);
    if goal != Goal::Gone && !wait.waiting.is_empty() {
        sleep(pause.min(poll.deadline / 2)).await;
        pause = poll.after(pause);
    }
    while !wait.waiting.is_empty() {
        match timeout_at(deadline, wait.poll()).await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return wait.finish(WaitOutcome::Unknown),
            Err(_elapsed) => break,
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left <= shortest {
            break;
        }
        if !wait.waiting.is_empty() {
            // Shorter at the end, so that the last poll is close to the deadline.
            sleep(pause.min(left / 2)).await;
            pause = poll.after(pause);
        }
    }
    wait.finish(WaitOutcome::TimedOut)
}

/// A wait on its way.
struct Wait<'a> {
    provider: &'a dyn Provider,
    goal: Goal<'a>,
    waiting: BTreeSet<InstanceId>,
    seen: BTreeMap<InstanceId, Instance>,
    outcomes: BTreeMap<InstanceId, WaitOutcome>,
    last_error: Option<Error>,
}

impl Wait<'_> {
    /// Asks for each instance that is waited for. Breaks if no later poll can succeed either.
    async fn poll(&mut self) -> ControlFlow<()> {
        let provider = self.provider;
        let requests = self.waiting.clone().into_iter().map(|id| async move {
            let shown = provider.get(&id).await;
            (id, shown)
        });
        let mut responses = futures_util::stream::iter(requests).buffer_unordered(CONCURRENCY);
        let (mut hopeless, mut shown) = (true, Vec::new());
        while let Some((id, response)) = responses.next().await {
            match response {
                Ok(instance) => shown.push(instance),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.end(&id, WaitOutcome::Gone);
                }
                Err(error) => {
                    let transient = error.kind().is_transient();
                    self.last_error = Some(error);
                    hopeless &= !transient;
                    continue;
                }
            }
            hopeless = false;
        }
        if let Err(error) = self.add_addresses(&mut shown).await {
            hopeless = !error.kind().is_transient();
            self.last_error = Some(error);
        }
        for instance in shown {
            self.judge(instance);
        }
        if hopeless { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// One request for all that run and show no address, where one is waited for.
    async fn add_addresses(&self, shown: &mut [Instance]) -> Result<()> {
        let lacks = |it: &&mut Instance| it.state == InstanceState::Running && it.address.is_none();
        let mut lacking: Vec<&mut Instance> = shown.iter_mut().filter(lacks).collect();
        if self.goal != Goal::Addressed || lacking.is_empty() {
            return Ok(());
        }
        let ids: Vec<InstanceId> = lacking.iter().map(|instance| instance.id.clone()).collect();
        let addresses = self.provider.addresses(&ids).await?;
        for instance in &mut lacking {
            instance.address = addresses.get(&instance.id).copied();
        }
        Ok(())
    }

    fn judge(&mut self, instance: Instance) {
        let id = instance.id.clone();
        if self.goal.is_reached(&instance) {
            self.end(&id, WaitOutcome::Reached(instance));
        } else if self.goal.is_out_of_reach(&instance) {
            self.end(&id, WaitOutcome::Lost(instance));
        } else {
            self.seen.insert(id, instance);
        }
    }

    fn end(&mut self, id: &InstanceId, outcome: WaitOutcome) {
        self.waiting.remove(id);
        self.outcomes.insert(id.clone(), outcome);
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
