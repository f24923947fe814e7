//! The token bucket, and how its rate follows what the cloud takes. Pure: time comes in.

use super::Pace;
use crate::clock::after;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Rates outside of this are taken for mistakes.
const SLOWEST: f64 = 0.01;
const FASTEST: f64 = 10_000.0;

/// How far back the throughput is measured.
const WINDOW: Duration = Duration::from_secs(1);

/// A second cut within this time of the last is a deep one: the first was not enough.
const SAME_EPISODE: Duration = Duration::from_secs(1);

/// What is left of the rate after a refusal: in the first second, later, and soon after another.
const EARLY_CUT: f64 = 0.5;
const CUT: f64 = 0.95;
const DEEP_CUT: f64 = 0.8;

/// How much of the rate has to be used before it grows.
const USED: f64 = 0.4;

/// Growth for each accepted request until the first refusal: the rate doubles in a second.
const FIRST_GROWTH: f64 = 0.7;

/// Growth for each accepted request while far below what the cloud has proven to take.
const FAST_GROWTH: f64 = 0.2;

/// Growth for each accepted request near it: one percent in a second.
const SLOW_GROWTH: f64 = 0.01;

/// Longest time that the gate is closed, whatever is asked: all requests of the process wait there,
/// and a cloud that is asked again after a minute can still say no.
const LONGEST_CLOSURE: Duration = Duration::from_mins(1);

/// Without a refusal for this long, growth doubles, and so does a burst that was cut: perhaps the
/// cloud takes more now.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Bucket {
    least: f64,
    most: f64,
    full_burst: f64,
    /// What is left of the full burst after refusals.
    burst: f64,
    rate: f64,
    tokens: f64,
    filled: Instant,
    /// When the accepted requests of the last window were answered.
    accepted: VecDeque<Instant>,
    /// What the cloud takes, as far as the last cut has shown.
    proven: Option<f64>,
    first_answer: Option<Instant>,
    cut: Option<Instant>,
    /// When the burst was last changed.
    burst_changed: Option<Instant>,
    closed_until: Instant,
}

impl Bucket {
    pub(super) fn new(pace: Pace, now: Instant) -> Self {
        let most = bounded(pace.most, SLOWEST, FASTEST);
        let least = bounded(pace.least, SLOWEST, most);
        let burst = f64::from(pace.burst.max(1));
        Self {
            least,
            most,
            full_burst: burst,
            burst,
            rate: bounded(pace.start, least, most),
            tokens: burst,
            filled: now,
            accepted: VecDeque::new(),
            proven: None,
            first_answer: None,
            cut: None,
            burst_changed: None,
            closed_until: now,
        }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// Takes a token, or says when to ask again.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        if now < self.closed_until {
            return Err(self.closed_until);
        }
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = Duration::try_from_secs_f64((1.0 - self.tokens) / self.rate);
        // Timers tick in milliseconds; a pause of nothing would be asked for again and again.
        Err(after(now, missing.unwrap_or(WINDOW).max(Duration::from_millis(1))))
    }

    pub(super) fn accepted(&mut self, now: Instant) {
        self.fill(now);
        self.first_answer.get_or_insert(now);
        self.accepted.push_back(now);
        self.forget_old(now);
        if self.burst_changed.is_some_and(|then| now.saturating_duration_since(then) >= PATIENCE) {
            self.burst = (self.burst * 2.0).min(self.full_burst);
            self.burst_changed = Some(now);
        }
        // Who does not use the rate learns nothing about a higher one.
        if self.throughput() >= self.rate * USED {
            self.rate = bounded(self.rate + self.growth(now), self.least, self.most);
        }
    }

    /// Slows down; a second refusal soon after also closes the gate as long as asked, up to
    /// a minute.
    ///
    /// One refusal alone does not close it: clouds can only ask for whole seconds, and a full
    /// second of silence for one request too many would cost a twentieth of the throughput.
    pub(super) fn throttled(&mut self, now: Instant, acquired: Instant, pause: Option<Duration>) {
        self.fill(now);
        // It was on its way before we slowed down, and says nothing new.
        if self.cut.is_some_and(|cut| acquired < cut) {
            return;
        }
        self.tokens = self.tokens.min(0.0);
        self.burst = (self.burst / 2.0).max(1.0);
        self.burst_changed = Some(now);
        let again = self.cut.is_some_and(|cut| now.saturating_duration_since(cut) < SAME_EPISODE);
        self.cut = Some(now);
        let first = *self.first_answer.get_or_insert(now);
        if now.saturating_duration_since(first) < WINDOW {
            // Perhaps it was only our first burst: nothing is measured yet, so go on growing.
            self.rate = bounded(self.rate * EARLY_CUT, self.least, self.most);
            return;
        }
        self.forget_old(now);
        // Who does not use the rate has not measured it either: a stray refusal in a quiet moment
        // must not look like a cloud that takes nothing.
        let idle = self.throughput() < self.rate * USED;
        let throughput = if idle { self.rate / 2.0 } else { self.throughput().min(self.rate) };
        let depth = if again { DEEP_CUT } else { CUT };
        // While the rate grows fast the throughput is behind it, and the limit is in between.
        self.proven = Some(if again { throughput } else { self.rate });
        self.rate = bounded(throughput * depth, self.least, self.most);
        if again && let Some(pause) = pause {
            let pause = pause.min(LONGEST_CLOSURE);
            self.closed_until = self.closed_until.max(after(now, pause));
        }
    }

    fn fill(&mut self, now: Instant) {
        let gone = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + gone * self.rate).min(self.burst);
        self.filled = self.filled.max(now);
    }

    fn growth(&self, now: Instant) -> f64 {
        let (Some(proven), Some(cut)) = (self.proven, self.cut) else {
            return FIRST_GROWTH;
        };
        if self.rate < 0.9 * proven {
            return FAST_GROWTH;
        }
        let quiet = now.saturating_duration_since(cut).as_secs_f64();
        (SLOW_GROWTH * (quiet / PATIENCE.as_secs_f64()).exp2()).min(FAST_GROWTH)
    }

    fn forget_old(&mut self, now: Instant) {
        while self.accepted.front().is_some_and(|&at| now.saturating_duration_since(at) >= WINDOW) {
            self.accepted.pop_front();
        }
    }

    fn throughput(&self) -> f64 {
        u32::try_from(self.accepted.len()).map_or(FASTEST, f64::from) / WINDOW.as_secs_f64()
    }
}

/// Puts a number between two others; what is no number becomes the smaller.
fn bounded(value: f64, least: f64, most: f64) -> f64 {
    if value.is_nan() { least } else { value.max(least).min(most) }
}
