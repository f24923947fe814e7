//! Pacing: how many requests a process sends, and how many at a time.
//!
//! Clouds throttle, and each request they refuse is lost time for us and noise for them. A [`Pacer`] is shared by all
//! requests of a process. Requests that change something and requests that look have a lane of their own, so that neither
//! waits for the other. A lane begins with a few requests under way and allows more with every one that the cloud takes.
//! When the cloud refuses one, the lane goes on at a rate: what the cloud has proven to take. What a process has
//! [learned](Pacer::learned) is the next one's [start](Pacer::with_experience).

mod experience;
mod rate;

pub use experience::{Experience, LaneExperience};

use rate::{Bucket, Rate, Wait};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as Queue, Notify};
use tokio::time::{Instant, sleep_until};

/// Bounds of a [`Pacer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Requests per second after the first refusal, unless the cloud has proven to take more.
    pub start: f64,
    /// Never slower than this.
    pub least: f64,
    /// Never faster than this, both lanes together.
    pub most: f64,
    /// How many may go at once after a rest.
    pub burst: u32,
    /// How many may be under way at a time in each lane.
    pub concurrency: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { start: 10.0, least: 0.2, most: 1000.0, burst: 5, concurrency: 32 }
    }
}

/// Which of the two queues a request waits in.
///
/// Each has its own rate and its own bound, so that neither a thousand launches hold up the polls that see the first of
/// them run, nor the polls the launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Requests that change something.
    Write,
    /// Requests that change nothing.
    Read,
}

/// Lets requests pass at a rate that the cloud takes; clones share it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use cloud_core::pace::{Lane, Pace, Pacer};
///
/// let pacer = Pacer::new(Pace::default());
/// let permit = pacer.acquire(Lane::Write).await;
/// // … the request goes here, and the cloud refuses it …
/// permit.throttled(None);
/// assert_eq!(pacer.rate(Lane::Write), Some(10.0));
/// assert_eq!(pacer.rate(Lane::Read), None, "nothing is known of the other lane");
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Pacer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writes: LaneState,
    reads: LaneState,
    /// What holds for both lanes together. It is first come, first served.
    total: Queue<Bucket>,
}

#[derive(Debug)]
struct LaneState {
    queue: Queue<()>,
    rate: Mutex<Rate>,
    /// A request has its answer.
    answered: Notify,
}

impl LaneState {
    fn new(pace: Pace, experience: LaneExperience, now: Instant) -> Self {
        let rate = Mutex::new(Rate::new(pace, experience, now));
        Self { queue: Queue::new(()), rate, answered: Notify::new() }
    }

    fn rate(&self) -> MutexGuard<'_, Rate> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pacer {
    /// A pacer that knows nothing about the cloud yet. Bounds that make no sense are put right.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        Self::with_experience(pace, Experience::default())
    }

    /// A pacer that begins where others have come to.
    #[must_use]
    pub fn with_experience(pace: Pace, experience: Experience) -> Self {
        let now = Instant::now();
        Self(Arc::new(Shared {
            writes: LaneState::new(pace, experience.writes, now),
            reads: LaneState::new(pace, experience.reads, now),
            total: Queue::new(rate::total(pace, now)),
        }))
    }

    /// Waits for its turn. Whoever stops waiting loses nothing but its place.
    pub async fn acquire(&self, lane: Lane) -> Permit {
        let state = self.lane(lane);
        let _head = state.queue.lock().await;
        let permit = loop {
            let answered = state.answered.notified();
            let taken = state.rate().take(Instant::now());
            match taken {
                Ok(acquired) => break Permit { pacer: self.clone(), lane, acquired },
                Err(Wait::Until(ready)) => sleep_until(ready).await,
                Err(Wait::Answer) => answered.await,
            }
        };
        let mut total = self.0.total.lock().await;
        while let Err(ready) = total.take(Instant::now()) {
            sleep_until(ready).await;
        }
        permit
    }

    /// Requests per second that a lane lets pass now; none while the cloud has refused nothing.
    #[must_use]
    pub fn rate(&self, lane: Lane) -> Option<f64> {
        self.lane(lane).rate().limit()
    }

    /// What was learned about the cloud: nothing of a lane that was not used enough to tell.
    #[must_use]
    pub fn learned(&self) -> (Option<LaneExperience>, Option<LaneExperience>) {
        (self.0.writes.rate().learned(), self.0.reads.rate().learned())
    }

    fn lane(&self, lane: Lane) -> &LaneState {
        match lane {
            Lane::Write => &self.0.writes,
            Lane::Read => &self.0.reads,
        }
    }
}

/// Leave to send one request; dropping it says nothing about how it went.
#[derive(Debug)]
pub struct Permit {
    pacer: Pacer,
    lane: Lane,
    acquired: Instant,
}

impl Permit {
    /// The cloud took the request, whatever it answered.
    pub fn accepted(self) {
        self.pacer.lane(self.lane).rate().accepted(Instant::now());
    }

    /// The cloud refused the request because of too many.
    pub fn throttled(self, retry_after: Option<Duration>) {
        let acquired = self.acquired;
        self.pacer.lane(self.lane).rate().throttled(Instant::now(), acquired, retry_after);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let state = self.pacer.lane(self.lane);
        state.rate().ended();
        state.answered.notify_waiters();
    }
}
