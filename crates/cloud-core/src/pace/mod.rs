//! Pacing: how many requests a process sends, and how many at a time.
//!
//! Clouds throttle, and each request they refuse is lost time for us and noise for them. A
//! [`Pacer`] is shared by all requests of a process. It starts at a modest rate, speeds up while
//! the cloud takes all it gets, slows down to what the cloud has proven to take when one is
//! refused, and then feels its way up again.

mod rate;

use rate::Bucket;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as Queue, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

/// Bounds of a [`Pacer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Requests per second to begin with.
    pub start: f64,
    /// Never slower than this.
    pub least: f64,
    /// Never faster than this.
    pub most: f64,
    /// How many may go at once after a rest.
    pub burst: u32,
    /// How many may be under way at a time.
    pub concurrency: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { start: 10.0, least: 0.2, most: 100.0, burst: 5, concurrency: 32 }
    }
}

/// Which of the two queues a request waits in.
///
/// They take turns, so that neither a thousand launches hold up the polls that see the first of
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
/// let permit = pacer.acquire(Lane::Read).await;
/// // … the request goes here, and the cloud takes it …
/// permit.accepted();
/// assert!(pacer.rate() >= 10.0);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Pacer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    writes: Queue<()>,
    reads: Queue<()>,
    /// The heads of the two queues meet here. It is first come, first served, so that a head
    /// that has passed stands behind the other one's.
    gate: Queue<()>,
    slots: Arc<Semaphore>,
    bucket: Mutex<Bucket>,
}

impl Pacer {
    /// A pacer at its starting rate. Bounds that make no sense are put right.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        let slots = usize::try_from(pace.concurrency.max(1)).unwrap_or(1);
        Self(Arc::new(Shared {
            writes: Queue::new(()),
            reads: Queue::new(()),
            gate: Queue::new(()),
            slots: Arc::new(Semaphore::new(slots.min(Semaphore::MAX_PERMITS))),
            bucket: Mutex::new(Bucket::new(pace, Instant::now())),
        }))
    }

    /// Waits for its turn. Whoever stops waiting loses nothing but its place.
    pub async fn acquire(&self, lane: Lane) -> Permit {
        let queue = match lane {
            Lane::Write => &self.0.writes,
            Lane::Read => &self.0.reads,
        };
        let _head = queue.lock().await;
        let _turn = self.0.gate.lock().await;
        // The semaphore is never closed; without a slot the bound would be one too high.
        let slot = Arc::clone(&self.0.slots).acquire_owned().await.ok();
        loop {
            let taken = self.bucket().take(Instant::now());
            match taken {
                Ok(()) => break,
                Err(ready) => sleep_until(ready).await,
            }
        }
        Permit { pacer: self.clone(), acquired: Instant::now(), _slot: slot }
    }

    /// Requests per second that it lets pass now.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bucket().rate()
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to send one request; dropping it says nothing about how it went.
#[derive(Debug)]
pub struct Permit {
    pacer: Pacer,
    acquired: Instant,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// The cloud took the request, whatever it answered.
    pub fn accepted(self) {
        self.pacer.bucket().accepted(Instant::now());
    }

    /// The cloud refused the request because of too many.
    pub fn throttled(self, retry_after: Option<Duration>) {
        self.pacer.bucket().throttled(Instant::now(), self.acquired, retry_after);
    }
}
