//! Token buckets: how many requests per second the cloud takes from one caller.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::time::Instant;

/// A bound on requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// The operation's name, or `*` for all operations together.
    pub operation: String,
    /// How many requests per second, in the long run.
    pub per_second: f64,
    /// How many at once.
    pub burst: f64,
}

/// The buckets: one per bound and caller.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    bounds: Vec<Throttle>,
    filled: HashMap<(usize, String), (f64, Instant)>,
}

impl Buckets {
    pub(crate) fn new(bounds: Vec<Throttle>) -> Self {
        Self { bounds, filled: HashMap::new() }
    }

    pub(crate) fn bounds(&self) -> &[Throttle] {
        &self.bounds
    }

    /// Takes one request, or says that it is one too many, which then counts for no bound.
    pub(crate) fn take(&mut self, operation: &str, caller: &str, now: Instant) -> bool {
        let concerns = |bound: &Throttle| bound.operation == "*" || bound.operation == operation;
        let mut keys = Vec::new();
        let mut allowed = true;
        for (index, bound) in self.bounds.iter().enumerate().filter(|(_, bound)| concerns(bound)) {
            let key = (index, caller.to_owned());
            let (tokens, since) = self.filled.entry(key.clone()).or_insert((bound.burst, now));
            let gained = now.saturating_duration_since(*since).as_secs_f64() * bound.per_second;
            *tokens = (*tokens + gained).min(bound.burst);
            *since = now;
            allowed &= *tokens >= 1.0;
            keys.push(key);
        }
        if allowed {
            for key in keys {
                self.filled.entry(key).and_modify(|(tokens, _)| *tokens -= 1.0);
            }
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let bound = Throttle { operation: "*".into(), per_second: 10.0, burst: 3.0 };
        let mut buckets = Buckets::new(vec![bound]);
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let taken: Vec<bool> = [0, 0, 0, 0, 50, 100, 120, 10_000, 10_000, 10_000, 10_000]
            .into_iter()
            .map(|millis| buckets.take("GetInstance", "me", at(millis)))
            .collect();
        let (yes, no) = (true, false);
        assert_eq!(taken, [yes, yes, yes, no, no, yes, no, yes, yes, yes, no]);
    }

    #[test]
    fn callers_and_operations_are_apart() {
        let bound = Throttle { operation: "LaunchInstance".into(), per_second: 0.0, burst: 1.0 };
        let mut buckets = Buckets::new(vec![bound]);
        let now = Instant::now();
        assert!(buckets.take("LaunchInstance", "me", now));
        assert!(!buckets.take("LaunchInstance", "me", now));
        assert!(buckets.take("LaunchInstance", "you", now));
        assert!(buckets.take("GetInstance", "me", now));
    }

    #[test]
    fn a_request_that_one_bound_refuses_takes_nothing_from_another() {
        let bound = |operation: &str, burst| Throttle {
            operation: operation.to_owned(),
            per_second: 0.0,
            burst,
        };
        let mut buckets = Buckets::new(vec![bound("*", 2.0), bound("LaunchInstance", 1.0)]);
        let now = Instant::now();
        let taken: Vec<bool> = ["LaunchInstance", "LaunchInstance", "GetInstance", "GetInstance"]
            .into_iter()
            .map(|operation| buckets.take(operation, "me", now))
            .collect();
        assert_eq!(taken, [true, false, true, false]);
    }
}
