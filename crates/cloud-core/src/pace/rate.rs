//! How many requests may be under way, or how many a second may go, and how that follows what the cloud takes. Pure: time
//! comes in.

use super::experience::FIRST_WINDOW;
use super::{LaneExperience, Pace};
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

/// How many more may be under way for each accepted request until the first refusal: half as many again in a round trip.
const WINDOW_GROWTH: f64 = 0.5;

/// Growth for each accepted request from then on until the next refusal: the rate doubles in a second.
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

/// A token bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: Instant,
}

/// The bucket for both lanes together.
pub(super) fn total(pace: Pace, now: Instant) -> Bucket {
    let rate = bounded(pace.most, SLOWEST, FASTEST);
    Bucket::new(rate, f64::from(pace.burst.max(1)), now)
}

impl Bucket {
    fn new(rate: f64, burst: f64, now: Instant) -> Self {
        Self { rate, burst, tokens: burst, filled: now }
    }

    /// Takes a token, or says when to ask again.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        self.fill(now);
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        let missing = Duration::try_from_secs_f64((1.0 - self.tokens) / self.rate);
        // Timers tick in milliseconds; a pause of nothing would be asked for again and again.
        Err(after(now, missing.unwrap_or(WINDOW).max(Duration::from_millis(1))))
    }

    fn fill(&mut self, now: Instant) {
        let gone = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + gone * self.rate).min(self.burst);
        self.filled = self.filled.max(now);
    }
}

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    Until(Instant),
    /// The answer to one that is under way.
    Answer,
}

#[derive(Debug)]
pub(super) struct Rate {
    least: f64,
    most: f64,
    start: f64,
    full_burst: f64,
    concurrency: f64,
    /// How many may be under way at a time.
    window: f64,
    under_way: u32,
    /// The rate, once the cloud has refused a request.
    limit: Option<Bucket>,
    /// When the accepted requests of the last window of time were answered.
    accepted: VecDeque<Instant>,
    /// What the cloud takes, as far as the last cut has shown.
    proven: Option<f64>,
    first_answer: Option<Instant>,
    cut: Option<Instant>,
    /// When the burst was last changed.
    burst_changed: Option<Instant>,
    closed_until: Instant,
    /// It was used so much that it says something about the cloud.
    has_learned: bool,
}

impl Rate {
    pub(super) fn new(pace: Pace, known: LaneExperience, now: Instant) -> Self {
        let most = bounded(pace.most, SLOWEST, FASTEST);
        let least = bounded(pace.least, SLOWEST, most);
        let full_burst = f64::from(pace.burst.max(1));
        let concurrency = f64::from(pace.concurrency.max(1));
        let limit = known.limit.map(|limit| bounded(limit, least, most));
        Self {
            least,
            most,
            start: bounded(pace.start, least, most),
            full_burst,
            concurrency,
            window: bounded(known.window, FIRST_WINDOW, concurrency),
            under_way: 0,
            limit: limit.map(|rate| Bucket::new(rate, full_burst, now)),
            accepted: VecDeque::new(),
            proven: limit,
            first_answer: None,
            cut: None,
            burst_changed: None,
            closed_until: now,
            has_learned: false,
        }
    }

    pub(super) fn limit(&self) -> Option<f64> {
        self.limit.as_ref().map(|bucket| bucket.rate)
    }

    pub(super) fn learned(&self) -> Option<LaneExperience> {
        let known = LaneExperience { window: self.window, limit: self.limit() };
        self.has_learned.then_some(known)
    }

    /// Lets a request pass, or says what it waits for.
    pub(super) fn take(&mut self, now: Instant) -> Result<Instant, Wait> {
        if now < self.closed_until {
            return Err(Wait::Until(self.closed_until));
        }
        let bound = if self.limit.is_some() { self.concurrency } else { self.window };
        if f64::from(self.under_way) + 1.0 > bound.min(self.concurrency) {
            return Err(Wait::Answer);
        }
        if let Some(bucket) = &mut self.limit {
            bucket.take(now).map_err(Wait::Until)?;
        }
        self.under_way += 1;
        Ok(now)
    }

    /// A request has its answer, or will have none.
    pub(super) fn ended(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    pub(super) fn accepted(&mut self, now: Instant) {
        self.fill(now);
        self.first_answer.get_or_insert(now);
        self.accepted.push_back(now);
        self.forget_old(now);
        let (throughput, growth) = (self.throughput(), self.growth(now));
        let Some(bucket) = &mut self.limit else {
            // Who does not use the window learns nothing about a larger one.
            if f64::from(self.under_way) + 1.0 > self.window * USED {
                self.window = (self.window + WINDOW_GROWTH).min(self.concurrency);
                self.has_learned |= self.window > 2.0 * FIRST_WINDOW;
            }
            return;
        };
        if self.burst_changed.is_some_and(|then| now.saturating_duration_since(then) >= PATIENCE) {
            bucket.burst = (bucket.burst * 2.0).min(self.full_burst);
            self.burst_changed = Some(now);
        }
        if throughput >= bucket.rate * USED {
            bucket.rate = bounded(bucket.rate + growth, self.least, self.most);
            self.has_learned = true;
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
        let again = self.cut.is_some_and(|cut| now.saturating_duration_since(cut) < SAME_EPISODE);
        self.cut = Some(now);
        self.burst_changed = Some(now);
        self.has_learned = true;
        let first = *self.first_answer.get_or_insert(now);
        self.forget_old(now);
        let throughput = self.throughput();
        let Some(bucket) = &mut self.limit else {
            // What passed was mostly the cloud's burst: the rate is not measured yet, so go on growing.
            let rate = bounded((throughput * EARLY_CUT).max(self.start), self.least, self.most);
            let mut bucket = Bucket::new(rate, (self.full_burst / 2.0).max(1.0), now);
            bucket.tokens = 0.0;
            self.limit = Some(bucket);
            return;
        };
        bucket.tokens = bucket.tokens.min(0.0);
        bucket.burst = (bucket.burst / 2.0).max(1.0);
        if now.saturating_duration_since(first) < WINDOW && self.proven.is_none() {
            bucket.rate = bounded(bucket.rate * EARLY_CUT, self.least, self.most);
            return;
        }
        // Who does not use the rate has not measured it either: a stray refusal in a quiet moment
        // must not look like a cloud that takes nothing.
        let idle = throughput < bucket.rate * USED;
        let throughput = if idle { bucket.rate / 2.0 } else { throughput.min(bucket.rate) };
        let depth = if again { DEEP_CUT } else { CUT };
        // While the rate grows fast the throughput is behind it, and the limit is in between.
        self.proven = Some(if again { throughput } else { bucket.rate });
        bucket.rate = bounded(throughput * depth, self.least, self.most);
        if again && let Some(pause) = pause {
            let pause = pause.min(LONGEST_CLOSURE);
            self.closed_until = self.closed_until.max(after(now, pause));
        }
    }

    fn fill(&mut self, now: Instant) {
        if let Some(bucket) = &mut self.limit {
            bucket.fill(now);
        }
    }

    fn growth(&self, now: Instant) -> f64 {
        let (Some(proven), Some(rate)) = (self.proven, self.limit()) else {
            return FIRST_GROWTH;
        };
        if rate < 0.9 * proven {
            return FAST_GROWTH;
        }
        let quiet = self.cut.or(self.first_answer);
        let quiet = quiet.map(|since| now.saturating_duration_since(since).as_secs_f64());
        let patience = quiet.unwrap_or_default() / PATIENCE.as_secs_f64();
        (SLOW_GROWTH * patience.exp2()).min(FAST_GROWTH)
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
