//! The pacer against a limiter, in virtual time.

use cloud_core::pace::{Experience, Lane, LaneExperience, Pace, Pacer};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A cloud that takes so many requests per second, as a token bucket.
struct Limiter {
    rate: f64,
    burst: f64,
    state: Mutex<(f64, Instant)>,
}

impl Limiter {
    fn new(rate: f64, burst: f64) -> Self {
        Self { rate, burst, state: Mutex::new((burst, Instant::now())) }
    }

    fn takes(&self) -> bool {
        let mut state = self.state.lock().expect("not poisoned");
        let now = Instant::now();
        let tokens =
            (state.0 + now.duration_since(state.1).as_secs_f64() * self.rate).min(self.burst);
        let taken = tokens >= 1.0;
        *state = (if taken { tokens - 1.0 } else { tokens }, now);
        taken
    }
}

#[derive(Debug)]
struct Run {
    seconds: f64,
    refused: u32,
}

/// A pacer that knows a limit of this many requests per second in both lanes.
fn knowing(limit: f64, pace: Pace) -> Pacer {
    let lane = LaneExperience { limit: Some(limit), ..LaneExperience::default() };
    Pacer::with_experience(pace, Experience { writes: lane, reads: lane })
}

/// What the lane that launches lets pass in a second.
fn rate(pacer: &Pacer) -> f64 {
    pacer.rate(Lane::Write).expect("it is limited")
}

/// Sends so many requests, each repeated until it is taken.
async fn run(pacer: Pacer, limiter: Limiter, requests: u32, latency: Duration) -> Run {
    run_against(pacer, Arc::new(limiter), requests, latency).await
}

async fn run_against(pacer: Pacer, limiter: Arc<Limiter>, requests: u32, latency: Duration) -> Run {
    let begin = Instant::now();
    let refused = Arc::new(AtomicU32::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..requests {
        let (pacer, limiter) = (pacer.clone(), Arc::clone(&limiter));
        let refused = Arc::clone(&refused);
        tasks.spawn(async move {
            loop {
                let permit = pacer.acquire(Lane::Write).await;
                sleep(latency / 2).await;
                let taken = limiter.takes();
                sleep(latency / 2).await;
                if taken {
                    return permit.accepted();
                }
                permit.throttled(Some(Duration::from_secs(1)));
                refused.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while tasks.join_next().await.is_some() {}
    Run { seconds: begin.elapsed().as_secs_f64(), refused: refused.load(Ordering::Relaxed) }
}

#[tokio::test(start_paused = true)]
async fn finds_a_limit_of_20_per_second_and_stays_there() {
    let limiters = [2.0, 5.0, 20.0].map(|burst| [20, 200].map(|latency| (burst, latency)));
    for (burst, latency) in limiters.into_iter().flatten() {
        let latency = Duration::from_millis(latency);
        let pacer = Pacer::new(Pace::default());
        let run = run(pacer, Limiter::new(20.0, burst), 1000, latency).await;
        let reached = 1000.0 / run.seconds / 20.0;
        let percent = 100.0 * reached;
        println!("burst {burst}, latency {latency:?}: {percent:.1} % of the rate, {run:?}");
        assert!(reached >= 0.95, "{run:?}");
        assert!(run.refused <= 30, "{run:?}");
    }
}

/// What one process has learned, the next one uses: it is refused even less.
#[tokio::test(start_paused = true)]
async fn a_limit_that_is_remembered_is_kept_from_the_first_request() {
    for (burst, latency) in [(2.0, 50), (20.0, 50), (20.0, 200)] {
        let latency = Duration::from_millis(latency);
        let first = Pacer::new(Pace::default());
        run(first.clone(), Limiter::new(20.0, burst), 1000, latency).await;
        let (writes, reads) = first.learned();
        assert_eq!(reads, None, "nothing was looked at");
        let experience = Experience { writes: writes.expect("learned"), ..Experience::default() };
        let next = Pacer::with_experience(Pace::default(), experience);
        let run = run(next, Limiter::new(20.0, burst), 1000, latency).await;
        println!("burst {burst}, latency {latency:?}: {run:?} with {experience:?}");
        assert!(1000.0 / run.seconds / 20.0 >= 0.95, "{run:?}");
        assert!(run.refused <= 15, "{run:?}");
    }
}

/// Nothing is known of the cloud, and it takes everything: the pace is as many at a time as may be, after a few round trips.
#[tokio::test(start_paused = true)]
async fn a_cloud_without_a_limit_is_used_in_full_after_a_few_round_trips() {
    let latency = Duration::from_millis(50);
    let unlimited = || Limiter::new(1e6, 1e6);
    let floor = 1000.0 / 32.0 * latency.as_secs_f64();
    let first = Pacer::new(Pace::default());
    let cold = run(first.clone(), unlimited(), 1000, latency).await;
    assert!(cold.seconds <= 1.2 * floor, "{cold:?}");
    let (writes, _) = first.learned();
    let experience = Experience { writes: writes.expect("learned"), ..Experience::default() };
    assert_eq!(experience.writes, LaneExperience { window: 32.0, limit: None });
    let warm = run(Pacer::with_experience(Pace::default(), experience), unlimited(), 1000, latency);
    let warm = warm.await;
    assert!(warm.seconds <= 1.1 * floor, "{warm:?}");
}

/// Two processes and one limit: the one that launches leaves room for the looks of the other.
#[tokio::test(start_paused = true)]
async fn launches_of_one_process_do_not_starve_the_looks_of_another() {
    let latency = Duration::from_millis(50);
    for burst in [2.0, 5.0, 20.0] {
        let limiter = Arc::new(Limiter::new(20.0, burst));
        let launching =
            tokio::spawn(run_against(Pacer::new(Pace::default()), limiter.clone(), 1000, latency));
        let (mut longest, mut looks) = (Duration::ZERO, 0);
        while !launching.is_finished() {
            sleep(Duration::from_secs(3)).await;
            let begin = Instant::now();
            while !limiter.takes() {
                sleep(Duration::from_secs(1)).await;
            }
            looks += 1;
            longest = longest.max(begin.elapsed());
        }
        println!("burst {burst}: {looks} looks, the longest took {longest:?}");
        assert!(longest <= Duration::from_secs(5), "{longest:?}");
        let run = launching.await.expect("it ends");
        assert!(1000.0 / run.seconds / 20.0 >= 0.9, "{run:?}");
    }
}

/// An operator who knows a fast cloud starts fast; a cloud that turns out slow refuses few all the
/// same.
#[tokio::test(start_paused = true)]
async fn a_start_at_ten_times_the_limit_is_rarely_refused() {
    let pace = Pace { most: 200.0, burst: 8, concurrency: 8, ..Pace::default() };
    for burst in [2.0, 5.0, 20.0] {
        let latency = Duration::from_millis(50);
        let run = run(knowing(200.0, pace), Limiter::new(20.0, burst), 1000, latency).await;
        println!("burst {burst}: {run:?}");
        assert!(1000.0 / run.seconds / 20.0 >= 0.95, "{run:?}");
        assert!(run.refused <= 25, "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn uses_all_of_its_own_rate_when_nothing_is_refused() {
    let pacer = Pacer::new(Pace { most: 20.0, ..Pace::default() });
    let run = run(pacer, Limiter::new(1e6, 1e6), 1000, Duration::from_millis(50)).await;
    assert!(1000.0 / run.seconds / 20.0 >= 0.95, "{run:?}");
    assert_eq!(run.refused, 0);
}

async fn past_the_first_second(pacer: &Pacer) {
    pacer.acquire(Lane::Write).await.accepted();
    sleep(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn does_not_grow_while_it_is_not_used() {
    let pacer = knowing(10.0, Pace::default());
    for _ in 0..100 {
        pacer.acquire(Lane::Write).await.accepted();
        sleep(Duration::from_secs(1)).await;
    }
    assert!(rate(&pacer) <= 10.0, "{}", rate(&pacer));
    let unlimited = Pacer::new(Pace::default());
    for _ in 0..100 {
        unlimited.acquire(Lane::Write).await.accepted();
    }
    assert_eq!(unlimited.learned(), (None, None), "one at a time says nothing");
}

#[tokio::test(start_paused = true)]
async fn recovers_after_a_time_of_refusals() {
    let pacer = knowing(50.0, Pace::default());
    past_the_first_second(&pacer).await;
    for _ in 0..5 {
        pacer.acquire(Lane::Write).await.throttled(None);
    }
    let slow = rate(&pacer);
    assert!(slow < 5.0, "{slow}");
    let begin = Instant::now();
    while rate(&pacer) < 50.0 {
        pacer.acquire(Lane::Write).await.accepted();
    }
    assert!(begin.elapsed() < Duration::from_mins(5), "{:?}", begin.elapsed());
}

/// Uses the pacer one after the other, so that it grows.
async fn warm(pacer: &Pacer, requests: u32) {
    for _ in 0..requests {
        let permit = pacer.acquire(Lane::Write).await;
        sleep(Duration::from_millis(30)).await;
        permit.accepted();
    }
}

#[tokio::test(start_paused = true)]
async fn one_stray_refusal_in_a_quiet_moment_keeps_most_of_the_rate() {
    let pacer = knowing(10.0, Pace::default());
    warm(&pacer, 1200).await;
    let warm = rate(&pacer);
    sleep(Duration::from_secs(30)).await;
    pacer.acquire(Lane::Write).await.throttled(None);
    let after = rate(&pacer);
    assert!(after >= warm / 3.0 && after < warm, "{after} after {warm}");
}

/// How many pass at once after a rest.
async fn burst(pacer: &Pacer) -> u32 {
    sleep(Duration::from_secs(10)).await;
    let begin = Instant::now();
    let mut passed = 0;
    while begin.elapsed().is_zero() {
        pacer.acquire(Lane::Read).await.accepted();
        passed += 1;
    }
    passed - 1
}

#[tokio::test(start_paused = true)]
async fn the_burst_recovers() {
    let pacer = knowing(10.0, Pace { burst: 8, ..Pace::default() });
    assert_eq!(burst(&pacer).await, 8);
    pacer.acquire(Lane::Read).await.throttled(None);
    assert_eq!(burst(&pacer).await, 4, "quiet for ten seconds is not enough");
    // The first that passes after a long rest brings it back, the next rest fills it.
    sleep(Duration::from_secs(30)).await;
    pacer.acquire(Lane::Read).await.accepted();
    assert_eq!(burst(&pacer).await, 8);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(burst(&pacer).await, 8, "and no more than that");
}

#[tokio::test(start_paused = true)]
async fn repeated_refusals_close_the_gate_for_as_long_as_the_cloud_asks() {
    let pacer = knowing(20.0, Pace { least: 20.0, ..Pace::default() });
    past_the_first_second(&pacer).await;
    let pause = Duration::from_secs(30);
    pacer.acquire(Lane::Write).await.throttled(Some(pause));
    let refused = Instant::now();
    let again = pacer.acquire(Lane::Write).await;
    assert!(refused.elapsed() < Duration::from_secs(1), "one refusal alone only slows down");
    let refused = Instant::now();
    again.throttled(Some(pause));
    pacer.acquire(Lane::Write).await.accepted();
    assert!(refused.elapsed() >= pause, "{:?}", refused.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_a_year_closed_the_gate_for_a_year() {
    let pacer = knowing(20.0, Pace { least: 20.0, ..Pace::default() });
    past_the_first_second(&pacer).await;
    for _ in 0..2 {
        pacer.acquire(Lane::Write).await.throttled(Some(Duration::from_secs(u64::MAX)));
    }
    let closed = Instant::now();
    pacer.acquire(Lane::Read).await.accepted();
    assert!(closed.elapsed() <= Duration::from_secs(61), "{:?}", closed.elapsed());
}

#[tokio::test(start_paused = true)]
async fn polls_are_not_held_up_by_a_thousand_launches() {
    let pacer = Pacer::new(Pace { most: 10.0, burst: 1, ..Pace::default() });
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let pacer = pacer.clone();
        tasks.spawn(async move { pacer.acquire(Lane::Write).await.accepted() });
    }
    tokio::task::yield_now().await;
    let begin = Instant::now();
    for _ in 0..10 {
        pacer.acquire(Lane::Read).await.accepted();
    }
    // In turns with the launches: twenty passes at ten per second, and one for good measure.
    assert!(begin.elapsed() <= Duration::from_millis(2200), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_the_bound() {
    let pacer = knowing(1000.0, Pace { concurrency: 3, ..Pace::default() });
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (pacer, now, most) = (pacer.clone(), Arc::clone(&now), Arc::clone(&most));
        tasks.spawn(async move {
            let permit = pacer.acquire(Lane::Write).await;
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(Duration::from_millis(100)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        });
    }
    while tasks.join_next().await.is_some() {}
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(64))]

    /// In no stretch of time do more pass than the highest rate and one burst allow, whatever
    /// the cloud answers.
    #[test]
    fn never_exceeds_its_rate(
        most in 0.5f64..200.0,
        start in 0.0f64..400.0,
        burst in 0u32..10,
        responses in prop::collection::vec(0u8..4, 1..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time().start_paused(true).build().expect("a runtime");
        let passes = runtime.block_on(async {
            let pace = Pace { start, most, burst, least: 0.1, concurrency: 8 };
            let pacer = if start > 200.0 { Pacer::new(pace) } else { knowing(start, pace) };
            let mut passes = Vec::new();
            for response in responses {
                let permit = pacer.acquire(Lane::Read).await;
                passes.push(Instant::now());
                match response {
                    0 => permit.throttled(Some(Duration::from_secs(1))),
                    1 => drop(permit),
                    _ => permit.accepted(),
                }
                assert!(pacer.rate(Lane::Read).is_none_or(|rate| rate <= most));
            }
            passes
        });
        for (n, from) in passes.iter().enumerate() {
            let mut passed = 0.0;
            for to in passes.iter().skip(n) {
                passed += 1.0;
                let allowed = f64::from(burst.max(1)) + most * (*to - *from).as_secs_f64() + 1e-6;
                prop_assert!(passed <= allowed, "{passed} passed, {allowed} allowed");
            }
        }
    }
}
