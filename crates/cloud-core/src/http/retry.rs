//! Decides whether to repeat a request, and when. It is pure: no I/O and no clock.

use super::Effect;
use crate::{ApiOperation, Error, ErrorKind};
use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use std::time::Duration;

/// Bounds of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts, including the first.
    pub attempts: u32,
    /// Pause after the first attempt, before jitter. It doubles with each attempt.
    pub first: Duration,
    /// Maximum pause, before jitter. The cloud may request a longer one.
    pub longest: Duration,
    /// Maximum time of all attempts and pauses. No attempt starts after it. Waiting for the pacer does not count; it is
    /// bounded by [`ClientConfig::longest_queue`](super::ClientConfig::longest_queue).
    pub budget: Duration,
    /// True to repeat a refused connection. It helps while a service restarts, but not with a mistyped address.
    pub refused_connections: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 6,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(15),
            budget: Duration::from_mins(2),
            refused_connections: true,
        }
    }
}

impl Retry {
    /// No retries.
    #[must_use]
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }
}

/// The outcome of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was not attempted: no credential, no signature, or no permit.
    Unasked,
    /// It was not sent.
    NotSent,
    /// The cloud refused it and did nothing.
    Refused,
    /// The cloud refused it for now and did nothing.
    RefusedForNow,
    /// It may have been carried out.
    Unknown,
}

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) fate: Fate,
    pub(super) error: Error,
}

/// The decision after a failure.
#[derive(Debug)]
pub(super) enum Next {
    Again(Duration),
    GiveUp(Error),
}

/// The attempts of one request so far.
#[derive(Debug)]
pub(super) struct Attempts {
    retry: Retry,
    effect: Effect,
    pauses: ExponentialBackoff,
    made: u32,
    spent: Duration,
    /// True if an attempt of a request that changes something may have been carried out.
    perhaps_done: bool,
}

impl Attempts {
    pub(super) fn new(retry: Retry, effect: Effect, seed: u64) -> Self {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(retry.first.min(retry.longest))
            .with_max_delay(retry.longest)
            .with_factor(2.0)
            .with_jitter()
            .with_jitter_seed(seed)
            .without_max_times()
            .build();
        Self { retry, effect, pauses, made: 0, spent: Duration::ZERO, perhaps_done: false }
    }

    /// Decides after a failed attempt of this duration.
    pub(super) fn after(&mut self, failure: Failure, took: Duration) -> Next {
        self.made = self.made.saturating_add(1);
        self.spent = self.spent.saturating_add(took);
        self.perhaps_done |= failure.fate == Fate::Unknown && self.effect != Effect::None;
        let may_repeat = match failure.fate {
            Fate::NotSent | Fate::RefusedForNow => true,
            // Fetching credentials has its own retries, and the queue its own bound.
            Fate::Unasked | Fate::Refused => false,
            // A response that is not understood will not be the next time.
            Fate::Unknown => {
                self.effect.repeatable() && failure.error.kind() != ErrorKind::Protocol
            }
        };
        if failure.error.is_given_up() || !may_repeat || self.made >= self.retry.attempts {
            return Next::GiveUp(self.conclude(failure));
        }
        let ours = self.pauses.next().unwrap_or(self.retry.longest);
        let pause = failure.error.retry_after().map_or(ours, |asked| asked.max(ours));
        let spent = self.spent.saturating_add(pause);
        if spent > self.retry.budget {
            return Next::GiveUp(self.conclude(failure));
        }
        self.spent = spent;
        Next::Again(pause)
    }

    /// Counts an attempt that is repeated immediately with another credential. Returns false if no time is left.
    pub(super) fn renew(&mut self, took: Duration) -> bool {
        self.made = self.made.saturating_add(1);
        self.spent = self.spent.saturating_add(took);
        self.spent <= self.retry.budget
    }

    /// The error to return. It must not mean that nothing was done if something may have been.
    pub(super) fn conclude(&self, Failure { fate, error }: Failure) -> Error {
        let inconclusive = match error.kind() {
            ErrorKind::Unavailable
            | ErrorKind::Throttled
            | ErrorKind::Unauthenticated
            | ErrorKind::Protocol => true,
            // An earlier attempt of a launch may still be in progress, and cause an error about capacity, name or lock. A
            // repeated delete that finds nothing has succeeded.
            ErrorKind::Conflict
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::Quota
            | ErrorKind::Capacity => error.operation() == ApiOperation::Launch,
            ErrorKind::TokenUsedUp | ErrorKind::Ambiguous | ErrorKind::Unsupported => false,
        };
        // Only the cloud can tell that an earlier attempt was not carried out.
        if self.perhaps_done && (inconclusive || fate == Fate::Unasked) {
            error.with_kind(ErrorKind::Ambiguous)
        } else {
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn failure(fate: Fate, kind: ErrorKind, retry_after: Option<u64>) -> Failure {
        let error = Error::new(kind, ApiOperation::Launch);
        let error = match retry_after {
            Some(millis) => error.with_retry_after(Duration::from_millis(millis)),
            None => error,
        };
        Failure { fate, error }
    }

    fn any_failure() -> impl Strategy<Value = (Fate, ErrorKind, Option<u64>, u64)> {
        let fates = prop_oneof![
            (Just(Fate::NotSent), Just(ErrorKind::Unavailable)),
            (Just(Fate::Unasked), prop::sample::select(ErrorKind::ALL.to_vec())),
            (Just(Fate::Unknown), Just(ErrorKind::Unavailable)),
            (Just(Fate::Unknown), Just(ErrorKind::Protocol)),
            (Just(Fate::Refused), prop::sample::select(ErrorKind::ALL.to_vec())),
            (Just(Fate::RefusedForNow), Just(ErrorKind::Throttled)),
            (Just(Fate::RefusedForNow), Just(ErrorKind::Conflict)),
        ];
        let retry_after = prop::option::weighted(0.3, prop_oneof![0u64..5_000, Just(u64::MAX)]);
        (fates, retry_after, 0u64..20_000)
            .prop_map(|((fate, kind), retry_after, took)| (fate, kind, retry_after, took))
    }

    fn any_retry() -> impl Strategy<Value = Retry> {
        (0u32..12, 0u64..5_000, 0u64..30_000, 0u64..120_000).prop_map(
            |(attempts, first, longest, budget)| Retry {
                attempts,
                first: Duration::from_millis(first),
                longest: Duration::from_millis(longest),
                budget: Duration::from_millis(budget),
                ..Retry::default()
            },
        )
    }

    fn any_effect() -> impl Strategy<Value = Effect> {
        prop::sample::select(vec![Effect::None, Effect::Idempotent, Effect::Once])
    }

    fn cases(cases: u32) -> ProptestConfig {
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    proptest! {
        #![proptest_config(cases(2000))]

        #[test]
        fn bounds_hold_and_nothing_that_may_be_done_is_done_twice(
            retry in any_retry(),
            effect in any_effect(),
            seed in any::<u64>(),
            failures in prop::collection::vec(any_failure(), 1..20),
        ) {
            let mut attempts = Attempts::new(retry, effect, seed);
            let (mut sent, mut paused, mut spent) = (0, Duration::ZERO, Duration::ZERO);
            let mut perhaps_done = false;
            for (fate, kind, retry_after, took) in failures {
                sent += 1;
                spent += Duration::from_millis(took);
                perhaps_done |= fate == Fate::Unknown;
                let failure = failure(fate, kind, retry_after);
                match attempts.after(failure, Duration::from_millis(took)) {
                    Next::Again(pause) => {
                        prop_assert!(sent < retry.attempts, "one attempt too many");
                        prop_assert!(!(perhaps_done && effect == Effect::Once), "done twice");
                        let asked = retry_after.map(Duration::from_millis);
                        prop_assert!(pause >= asked.unwrap_or_default());
                        paused += pause;
                        spent += pause;
                        prop_assert!(paused <= retry.budget && spent <= retry.budget);
                    }
                    Next::GiveUp(error) => {
                        let nothing_done = [
                            ErrorKind::Unavailable,
                            ErrorKind::Throttled,
                            ErrorKind::Unauthenticated,
                        ]
                        .contains(&error.kind());
                        let nothing_done = nothing_done || fate == Fate::Unasked;
                        let nothing_done = nothing_done && error.kind() != ErrorKind::Ambiguous;
                        prop_assert!(!(nothing_done && perhaps_done && effect != Effect::None));
                        return Ok(());
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_pauses_and_another_seed_others() {
        let pauses = |seed| {
            let mut attempts = Attempts::new(Retry::default(), Effect::None, seed);
            let next = |_| match attempts
                .after(failure(Fate::NotSent, ErrorKind::Unavailable, None), Duration::ZERO)
            {
                Next::Again(pause) => Some(pause),
                Next::GiveUp(_) => None,
            };
            (0..6).map(next).collect::<Vec<_>>()
        };
        assert_eq!(pauses(1), pauses(1));
        assert_ne!(pauses(1), pauses(2));
        let shortest: Vec<bool> = pauses(3)
            .iter()
            .flatten()
            .zip([500, 1000, 2000, 4000, 8000])
            .map(|(pause, least)| *pause >= Duration::from_millis(least))
            .collect();
        assert_eq!(shortest, [true; 5], "grows, and ends after the sixth attempt");
        assert_eq!(pauses(3).last(), Some(&None));
    }

    #[test]
    fn what_was_answered_for_good_is_not_repeated() {
        for kind in ErrorKind::ALL {
            let table =
                [(Fate::Unasked, false), (Fate::Refused, false), (Fate::RefusedForNow, true)];
            for (fate, expected) in table {
                let mut attempts = Attempts::new(Retry::default(), Effect::Once, 1);
                let next = attempts.after(failure(fate, kind, None), Duration::ZERO);
                assert_eq!(matches!(next, Next::Again(_)), expected, "{fate:?} {kind}");
            }
        }
    }

    #[test]
    fn an_attempt_without_an_answer_is_not_forgotten_when_the_next_is_refused() {
        let mut attempts = Attempts::new(Retry::default(), Effect::Idempotent, 1);
        let lost = failure(Fate::Unknown, ErrorKind::Unavailable, None);
        assert!(matches!(attempts.after(lost, Duration::ZERO), Next::Again(_)));
        let refused = failure(Fate::RefusedForNow, ErrorKind::Throttled, Some(u64::MAX));
        match attempts.after(refused, Duration::ZERO) {
            Next::GiveUp(error) => assert_eq!(error.kind(), ErrorKind::Ambiguous),
            Next::Again(pause) => panic!("again after {pause:?}"),
        }
    }

    #[test]
    fn a_launch_stays_ambiguous_when_its_repeat_is_refused() {
        use ErrorKind::{Capacity, Conflict, Forbidden, Invalid, NotFound, Quota};
        let after_loss = |operation, kind| {
            let mut attempts = Attempts::new(Retry::default(), Effect::Idempotent, 1);
            let lost = failure(Fate::Unknown, ErrorKind::Unavailable, None);
            assert!(matches!(attempts.after(lost, Duration::ZERO), Next::Again(_)));
            let refused = Failure { fate: Fate::Refused, error: Error::new(kind, operation) };
            match attempts.after(refused, Duration::ZERO) {
                Next::GiveUp(error) => error.kind(),
                Next::Again(pause) => panic!("again after {pause:?}"),
            }
        };
        for kind in [Capacity, Conflict, Forbidden, Invalid, NotFound, Quota] {
            assert_eq!(after_loss(ApiOperation::Launch, kind), ErrorKind::Ambiguous, "{kind}");
            assert_eq!(after_loss(ApiOperation::Terminate, kind), kind);
        }
    }

    #[test]
    fn a_launch_stays_ambiguous_when_its_repeat_finds_a_lock() {
        let rows = [
            (ErrorKind::Conflict, ErrorKind::Ambiguous),
            // The used token tells that the first attempt was carried out.
            (ErrorKind::TokenUsedUp, ErrorKind::TokenUsedUp),
        ];
        for (kind, expected) in rows {
            let mut attempts = Attempts::new(Retry::default(), Effect::Idempotent, 1);
            let lost = failure(Fate::Unknown, ErrorKind::Unavailable, None);
            assert!(matches!(attempts.after(lost, Duration::ZERO), Next::Again(_)));
            let error = Error::new(kind, ApiOperation::Launch);
            let refused = Failure { fate: Fate::Refused, error };
            match attempts.after(refused, Duration::ZERO) {
                Next::GiveUp(error) => assert_eq!(error.kind(), expected, "{kind}"),
                Next::Again(pause) => panic!("{kind}: again after {pause:?}"),
            }
        }
    }

    #[test]
    fn an_attempt_stays_ambiguous_when_the_next_gets_no_credential() {
        for kind in ErrorKind::ALL {
            let mut attempts = Attempts::new(Retry::default(), Effect::Idempotent, 1);
            let lost = failure(Fate::Unknown, ErrorKind::Unavailable, None);
            assert!(matches!(attempts.after(lost, Duration::ZERO), Next::Again(_)));
            match attempts.after(failure(Fate::Unasked, kind, None), Duration::ZERO) {
                Next::GiveUp(error) => assert_eq!(error.kind(), ErrorKind::Ambiguous, "{kind}"),
                Next::Again(pause) => panic!("again after {pause:?}"),
            }
        }
    }

    #[test]
    fn an_attempt_that_ends_with_a_renewal_counts() {
        let retry = Retry { attempts: 2, ..Retry::default() };
        let mut attempts = Attempts::new(retry, Effect::None, 1);
        assert!(attempts.renew(Duration::from_secs(1)));
        let next = attempts
            .after(failure(Fate::NotSent, ErrorKind::Unavailable, None), Duration::from_secs(1));
        assert!(matches!(next, Next::GiveUp(_)), "that was the second: {next:?}");
        let mut attempts = Attempts::new(retry, Effect::None, 1);
        assert!(!attempts.renew(retry.budget + Duration::from_secs(1)), "its time counts too");
    }
}
