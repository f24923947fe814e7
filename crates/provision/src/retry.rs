//! The rule by which requests to the cloud are repeated; the outbox has the one for calls to Slurm.

use cloud_core::Error;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a request is repeated, besides what the cloud's client has done.
const MOST_TRIES: u32 = 4;

/// The pause before the first repetition; each later one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Counts how often one request was repeated.
#[derive(Debug)]
pub(crate) struct Retry {
    tries: u32,
    most: u32,
}

impl Default for Retry {
    fn default() -> Self {
        Self::at_most(MOST_TRIES)
    }
}

impl Retry {
    /// Repeats a request at most so many times.
    pub(crate) fn at_most(most: u32) -> Self {
        Self { tries: 0, most }
    }

    /// How long to wait before the request is made again. None if the error is permanent, or the
    /// request was repeated often enough.
    pub(crate) fn pause(&mut self, error: &Error) -> Option<Duration> {
        if self.tries >= self.most || !error.is_worth_a_retry() {
            return None;
        }
        let pause = FIRST_PAUSE * (1 << self.tries);
        self.tries += 1;
        Some(pause.max(error.retry_after().unwrap_or_default()))
    }

    /// Waits before the request is made again; false if it should not be.
    pub(crate) async fn wait(&mut self, error: &Error) -> bool {
        let Some(pause) = self.pause(error) else {
            return false;
        };
        sleep(pause).await;
        true
    }
}

/// Repeats a request until it succeeds, fails for good, or the next try would begin after the deadline.
pub(crate) async fn until<F: Future<Output = Result<(), Error>>>(
    deadline: Instant,
    request: impl Fn() -> F,
) -> Result<(), Error> {
    let mut retry = Retry::default();
    loop {
        let Err(error) = request().await else {
            return Ok(());
        };
        match retry.pause(&error) {
            Some(pause) if Instant::now() + pause < deadline => sleep(pause).await,
            Some(_) | None => return Err(error),
        }
    }
}
