//! A cache for a token that many requests share.

use crate::clock::from_now;
use crate::{ApiOperation, Error, ErrorKind, Result};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// Time before the next attempt to renew a token, and for which a refusal counts.
const HOLD_OFF: Duration = Duration::from_secs(10);
/// Timeout of a renewal while the old token is still valid.
const LONGEST_RENEWAL: Duration = Duration::from_secs(10);

/// A fetched token and its lifetime.
#[derive(Debug)]
pub struct Token<T> {
    /// The token. Wrap it in a [`Secret`](crate::Secret).
    pub value: T,
    /// The lifetime from now.
    pub life: Duration,
}

/// The sequence number of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation(u64);

/// A token from the cache.
#[derive(Debug)]
pub struct Held<T> {
    /// The token.
    pub value: Arc<T>,
    /// The number of the token, for [`TokenCache::forget`].
    pub generation: Generation,
}

impl<T> Held<T> {
    /// Creates a credential that never changes, such as a key.
    #[must_use]
    pub fn fixed(value: Arc<T>) -> Self {
        Self { value, generation: Generation::default() }
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), generation: self.generation }
    }
}

/// Keeps a token until shortly before it expires. One fetch serves all waiting requests.
///
/// A failed fetch also fails all waiting requests, and a refusal those of the next seconds, so that a thousand requests
/// with a wrong password are one attempt and do not lock the account. A token that cannot be renewed in time is used as
/// long as it is valid.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use cloud_core::{Secret, Token, TokenCache};
/// use std::time::Duration;
///
/// let cache = TokenCache::new(Duration::from_secs(60));
/// let fetch = || async {
///     Ok(Token { value: Secret::new("t1".to_owned()), life: Duration::from_secs(3600) })
/// };
/// let held = cache.get(fetch).await?;
/// assert_eq!(held.value.expose(), "t1");
/// # Ok::<(), cloud_core::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct TokenCache<T> {
    least_life: Duration,
    /// Number of fetches that have ended, successfully or not.
    fetches: AtomicU64,
    /// The newest token that was rejected.
    rejected: AtomicU64,
    slot: Mutex<Slot<T>>,
}

#[derive(Debug)]
enum Slot<T> {
    Empty,
    Good {
        held: Held<T>,
        expires: Instant,
        renew_after: Option<Instant>,
    },
    /// The last failure, and the time of the next attempt.
    Failed {
        fetch: u64,
        error: Error,
        until: Instant,
    },
}

impl<T> TokenCache<T> {
    /// Creates an empty cache. A token is renewed when its remaining lifetime falls below this.
    #[must_use]
    pub fn new(least_life: Duration) -> Self {
        Self {
            least_life,
            fetches: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            slot: Mutex::new(Slot::Empty),
        }
    }

    /// Returns the cached token, or fetches a new one.
    ///
    /// A token whose lifetime is below the minimum is returned and renewed at the next call.
    pub async fn get<F, Fut>(&self, fetch: F) -> Result<Held<T>>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<Token<T>>>,
    {
        let seen = self.fetches.load(Ordering::Acquire);
        let mut slot = self.slot.lock().await;
        match &*slot {
            // A fetch that ended while this call waited counts for it, too, even if it failed.
            Slot::Good { held, expires, renew_after }
                if !self.is_rejected(held.generation)
                    && (held.generation.0 > seen || self.is_enough(*expires, *renew_after)) =>
            {
                return Ok(held.clone());
            }
            Slot::Failed { fetch, error, until } if *fetch > seen || Instant::now() < *until => {
                return Err(error.clone());
            }
            Slot::Empty | Slot::Good { .. } | Slot::Failed { .. } => {}
        }
        let fetched = self.fetched(&slot, fetch()).await;
        let fetch = self.fetches.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        match fetched {
            Ok(Token { value, life }) => {
                let held = Held { value: Arc::new(value), generation: Generation(fetch) };
                let expires = from_now(life);
                *slot = Slot::Good { held: held.clone(), expires, renew_after: None };
                Ok(held)
            }
            Err(error) => self.after_failure(&mut slot, fetch, error),
        }
    }

    /// Fetches a token. All requests wait for it, so a slow fetch times out while the old token is valid.
    async fn fetched(
        &self,
        slot: &Slot<T>,
        fetch: impl Future<Output = Result<Token<T>>>,
    ) -> Result<Token<T>> {
        let mut fetch = pin!(fetch);
        if !self.is_usable(slot) {
            return fetch.await;
        }
        match timeout(LONGEST_RENEWAL, fetch.as_mut()).await {
            Ok(fetched) => fetched,
            Err(_elapsed) if self.is_usable(slot) => {
                let why = format!("no new token within {LONGEST_RENEWAL:?}");
                Err(Error::new(ErrorKind::Unavailable, ApiOperation::Authenticate).because(why))
            }
            Err(_elapsed) => fetch.await,
        }
    }

    /// Handles a failed fetch: uses the old token while it is valid, or fails.
    fn after_failure(&self, slot: &mut Slot<T>, fetch: u64, error: Error) -> Result<Held<T>> {
        let usable = self.is_usable(slot);
        if let Slot::Good { held, renew_after, .. } = slot
            && usable
        {
            *renew_after = Some(from_now(error.retry_after().unwrap_or_default().max(HOLD_OFF)));
            return Ok(held.clone());
        }
        let until =
            from_now(if error.kind().is_about_the_caller() { HOLD_OFF } else { Duration::ZERO });
        *slot = Slot::Failed { fetch, error: error.clone(), until };
        Err(error)
    }

    /// Drops the token with this number, because a cloud has rejected it.
    ///
    /// A newer token stays: many requests may have failed with the old one during the renewal.
    pub fn forget(&self, generation: Generation) {
        self.rejected.fetch_max(generation.0, Ordering::AcqRel);
    }

    fn is_enough(&self, expires: Instant, renew_after: Option<Instant>) -> bool {
        let now = Instant::now();
        let held_off = now < expires && renew_after.is_some_and(|then| now < then);
        held_off || expires.saturating_duration_since(now) >= self.least_life
    }

    /// True if there is a valid token that no cloud has rejected.
    fn is_usable(&self, slot: &Slot<T>) -> bool {
        match slot {
            Slot::Good { held, expires, .. } => {
                !self.is_rejected(held.generation) && Instant::now() < *expires
            }
            Slot::Empty | Slot::Failed { .. } => false,
        }
    }

    fn is_rejected(&self, generation: Generation) -> bool {
        generation.0 <= self.rejected.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use tokio::time::{advance, sleep};

    /// Counts fetches; each takes a second and gives a token of this many seconds.
    #[derive(Default)]
    struct Issuer {
        calls: AtomicU32,
    }

    impl Issuer {
        async fn issue(&self, seconds: u64) -> Result<Token<u32>> {
            sleep(Duration::from_secs(1)).await;
            let value = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Token { value, life: Duration::from_secs(seconds) })
        }

        async fn refuse(&self) -> Result<Token<u32>> {
            sleep(Duration::from_secs(1)).await;
            self.calls.fetch_add(1, Ordering::SeqCst);
            Err(Error::new(ErrorKind::Unauthenticated, ApiOperation::Authenticate))
        }
    }

    fn cache() -> TokenCache<u32> {
        TokenCache::new(Duration::from_mins(1))
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_kept_until_it_has_less_than_the_least_life() {
        let (cache, issuer) = (cache(), Issuer::default());
        for (pause, expected) in [(0, 1), (40, 1), (1, 2)] {
            advance(Duration::from_secs(pause)).await;
            let held = cache.get(|| issuer.issue(100)).await.unwrap();
            assert_eq!(*held.value, expected, "after {pause} s more");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_fetch_serves_all_who_wait() {
        let (cache, issuer) = (cache(), Issuer::default());
        // Below the minimum lifetime: waiting requests use the token nevertheless.
        let get = || cache.get(|| issuer.issue(5));
        let (a, b, c) = tokio::join!(get(), get(), get());
        assert_eq!([*a.unwrap().value, *b.unwrap().value, *c.unwrap().value], [1, 1, 1]);
        assert_eq!(*get().await.unwrap().value, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn one_failure_serves_all_who_wait_and_the_next_tries_again() {
        let (cache, issuer) = (cache(), Issuer::default());
        let get = || cache.get(|| issuer.refuse());
        let (a, b, c) = tokio::join!(get(), get(), get());
        for result in [a, b, c] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Unauthenticated);
        }
        assert_eq!(issuer.calls.load(Ordering::SeqCst), 1);
        advance(HOLD_OFF).await;
        assert_eq!(*cache.get(|| issuer.issue(100)).await.unwrap().value, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_credential_is_not_tried_again_for_a_while() {
        for kind in [ErrorKind::Unauthenticated, ErrorKind::Forbidden, ErrorKind::Unavailable] {
            let (cache, calls) = (cache(), AtomicU32::new(0));
            for _ in 0..3 {
                let refused = cache.get(|| async {
                    calls.fetch_add(1, Ordering::SeqCst);
                    Err(Error::new(kind, ApiOperation::Authenticate))
                });
                assert_eq!(refused.await.unwrap_err().kind(), kind);
            }
            let passes = kind == ErrorKind::Unavailable;
            assert_eq!(calls.load(Ordering::SeqCst), if passes { 3 } else { 1 }, "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn forgetting_an_old_token_keeps_the_new_one() {
        let (cache, issuer) = (cache(), Issuer::default());
        let get = || cache.get(|| issuer.issue(1000));
        let old = get().await.unwrap();
        cache.forget(old.generation);
        let new = get().await.unwrap();
        cache.forget(old.generation);
        assert_eq!((*new.value, *get().await.unwrap().value), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_gives_up_leaves_the_cache_usable() {
        let (cache, issuer) = (cache(), Issuer::default());
        let half = Duration::from_millis(500);
        let gave_up = tokio::time::timeout(half, cache.get(|| issuer.issue(100))).await;
        assert!(gave_up.is_err());
        assert_eq!(*cache.get(|| issuer.issue(u64::MAX)).await.unwrap().value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_token_stays_in_use_when_it_cannot_be_renewed() {
        let (cache, issuer) = (cache(), Issuer::default());
        assert_eq!(*cache.get(|| issuer.issue(100)).await.unwrap().value, 1);
        advance(Duration::from_secs(50)).await;
        let get = || cache.get(|| issuer.refuse());
        let (a, b, c) = tokio::join!(get(), get(), get());
        assert_eq!([*a.unwrap().value, *b.unwrap().value, *c.unwrap().value], [1, 1, 1]);
        assert_eq!(*get().await.unwrap().value, 1);
        assert_eq!(
            issuer.calls.load(Ordering::SeqCst),
            2,
            "one try for all, and then a while none"
        );
        advance(HOLD_OFF).await;
        assert_eq!(*get().await.unwrap().value, 1);
        assert_eq!(issuer.calls.load(Ordering::SeqCst), 3, "tried again");
        advance(Duration::from_secs(50)).await;
        assert!(get().await.is_err(), "it has expired");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_hangs_leaves_a_good_token_in_use() {
        let (cache, issuer) = (cache(), Issuer::default());
        assert_eq!(*cache.get(|| issuer.issue(100)).await.unwrap().value, 1);
        advance(Duration::from_secs(50)).await;
        let begun = Instant::now();
        let get = || cache.get(std::future::pending);
        let (a, b) = tokio::join!(get(), get());
        assert_eq!([*a.unwrap().value, *b.unwrap().value], [1, 1]);
        assert_eq!(*get().await.unwrap().value, 1);
        assert_eq!(begun.elapsed(), LONGEST_RENEWAL, "one try for all, and then a while none");
        advance(HOLD_OFF).await;
        assert_eq!(*cache.get(|| issuer.issue(100)).await.unwrap().value, 2, "tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_outlasts_the_token_is_waited_for() {
        let (cache, issuer) = (cache(), Issuer::default());
        let slow = || async {
            sleep(Duration::from_mins(1)).await;
            issuer.issue(100).await
        };
        assert_eq!(*cache.get(slow).await.unwrap().value, 1, "there is no other");
        advance(Duration::from_secs(95)).await;
        assert_eq!(*cache.get(slow).await.unwrap().value, 2, "it has but five seconds left");
        cache.forget(Generation(2));
        assert_eq!(*cache.get(slow).await.unwrap().value, 3, "it was rejected");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_token_is_not_used_when_it_cannot_be_renewed() {
        let (cache, issuer) = (cache(), Issuer::default());
        let held = cache.get(|| issuer.issue(1000)).await.unwrap();
        cache.forget(held.generation);
        assert!(cache.get(|| issuer.refuse()).await.is_err());
    }
}
