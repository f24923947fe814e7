//! Who is missing in a listing, and what that means.

use crate::wait::{launch, listings, ours, poll, reached};
use cloud_core::memory::{InjectedFault, MemoryCloud, Settings, Span};
use cloud_core::{InstanceId, Operation, Poll, Provider as _, ProviderExt as _, WaitOutcome};
use std::time::Duration;
use tokio::time::Instant;

/// What it takes to be listed, and then never again.
async fn vanishing() -> (MemoryCloud, Vec<InstanceId>) {
    let mut settings = Settings::default();
    settings.lag = Duration::ZERO;
    settings.linger = Duration::ZERO;
    settings.terminate = Span::zero();
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 1).await;
    let (later, id) = (cloud.clone(), ids.first().expect("one").clone());
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        later.terminate(&id).await
    });
    (cloud, ids)
}

fn asked(cloud: &MemoryCloud) -> usize {
    cloud.history().iter().filter(|event| event.operation == Operation::Get).count()
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_listing_was_called_gone_without_a_question() {
    for goal in ["running", "gone"] {
        let (cloud, ids) = vanishing().await;
        let waited = match goal {
            "running" => cloud.wait_running(&ours(), &ids, poll()).await,
            _ => cloud.wait_gone(&ours(), &ids, poll()).await,
        };
        assert_eq!(waited.outcomes.get(&ids[0]), Some(&WaitOutcome::Gone));
        assert_eq!(asked(&cloud), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn who_was_missing_in_one_listing_was_called_gone() {
    let mut settings = Settings::default();
    settings.lag = Duration::ZERO;
    for goal in ["running", "gone"] {
        let cloud = MemoryCloud::new(settings.clone());
        let ids = launch(&cloud, 2).await;
        let flaps = [
            InjectedFault::Delay(Duration::ZERO),
            InjectedFault::Flap,
            InjectedFault::Delay(Duration::ZERO),
        ];
        for fault in flaps.into_iter().chain([InjectedFault::Flap, InjectedFault::Flap]) {
            cloud.inject(Operation::List, fault);
        }
        let waited = match goal {
            "running" => cloud.wait_running(&ours(), &ids, poll()).await,
            _ => cloud.wait_gone(&ours(), &ids, poll()).await,
        };
        for outcome in waited.outcomes.values() {
            let as_expected = match outcome {
                WaitOutcome::Reached(_) => goal == "running",
                WaitOutcome::TimedOut(Some(_)) => goal == "gone",
                WaitOutcome::Lost(_)
                | WaitOutcome::Gone
                | WaitOutcome::TimedOut(None)
                | WaitOutcome::Unknown(_) => false,
            };
            assert!(as_expected, "{goal}: {outcome:?}");
        }
        assert_eq!(asked(&cloud), 2, "once for each, after two looks in a row");
    }
}

#[tokio::test(start_paused = true)]
async fn who_was_gone_before_it_was_ever_listed_was_waited_for_until_the_deadline() {
    let mut settings = Settings::default();
    settings.linger = Duration::ZERO;
    settings.terminate = Span::zero();
    settings.lag = Duration::from_secs(5);
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 1).await;
    cloud.terminate(&ids[0]).await.expect("success");
    // Nor is what it was before it went shown by a listing that is behind.
    cloud.inject_randomly(Some(Operation::List), InjectedFault::Flap, 1.0);
    let begin = Instant::now();
    let waited = cloud.wait_running(&ours(), &ids, poll()).await;
    assert_eq!(waited.outcomes.get(&ids[0]), Some(&WaitOutcome::Gone));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_listing_far_behind_is_not_made_up_for_by_a_request_for_each() {
    let mut settings = Settings::default();
    settings.latency = Span::zero();
    settings.lag = Duration::from_secs(20);
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 300).await;
    let waited = cloud.wait_running(&ours(), &ids, poll()).await;
    assert_eq!(reached(&waited), 300);
    assert!(asked(&cloud) <= 8 * listings(&cloud).len() / 3, "{}", asked(&cloud));
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_is_behind_does_not_make_an_instance_gone() {
    let mut settings = Settings::default();
    settings.lag = Duration::from_mins(1);
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 1).await;
    let short = Poll::until(Duration::from_secs(20));
    let waited = cloud.wait_gone(&ours(), &ids, short).await;
    let outcome = waited.outcomes.values().next().expect("one");
    assert!(matches!(outcome, WaitOutcome::TimedOut(Some(_))), "{outcome:?}");
}
