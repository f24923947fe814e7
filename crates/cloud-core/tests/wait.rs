//! Waiting for many instances.

use cloud_core::memory::{InjectedFault, MemoryCloud, MemoryCloudSettings, Span};
use cloud_core::{
    ApiOperation, Error, ErrorKind, Goal, ImageId, InstanceId, InstanceName, InstanceSpec,
    InstanceState, Poll, Provider, Reboot, ShapeName, WaitOutcome, Waited, wait_until,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn spec(name: &str) -> InstanceSpec {
    InstanceSpec::new(InstanceName::new(name), ShapeName::new("small"), ImageId::new("image-1"))
}

fn poll() -> Poll {
    Poll::until(Duration::from_mins(5))
}

async fn launch(cloud: &MemoryCloud, many: usize) -> Vec<InstanceId> {
    let mut ids = Vec::new();
    for n in 0..many {
        ids.push(cloud.launch(&spec(&format!("vm-{n}"))).await.expect("a launch").id);
    }
    ids
}

fn polls(cloud: &MemoryCloud) -> Vec<Duration> {
    let polls = |operation| matches!(operation, ApiOperation::Get);
    cloud.history().iter().filter(|event| polls(event.operation)).map(|event| event.at).collect()
}

fn reached(waited: &Waited) -> usize {
    waited.outcomes.values().filter(|outcome| matches!(outcome, WaitOutcome::Reached(_))).count()
}

#[tokio::test(start_paused = true)]
async fn polls_grow_rarer() {
    let mut settings = MemoryCloudSettings::default();
    settings.latency = Span::zero();
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 1).await;
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert_eq!(reached(&waited), 1);
    let polls = polls(&cloud);
    let pauses: Vec<u128> = polls
        .iter()
        .zip(polls.iter().skip(1))
        .map(|(one, next)| next.saturating_sub(*one).as_millis())
        .collect();
    assert_eq!(polls.first(), Some(&Duration::from_secs(1)), "what was just accepted does not run");
    assert_eq!(pauses.get(..5), Some(&[1500, 2250, 3375, 5063, 7594][..]), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn addresses_come_with_one_more_request_for_all() {
    let mut settings = MemoryCloudSettings::default();
    settings.shows_addresses = false;
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 20).await;
    let waited = wait_until(&cloud, &ids, Goal::Addressed, poll()).await;
    for outcome in waited.outcomes.values() {
        assert!(matches!(outcome, WaitOutcome::Reached(instance) if instance.address.is_some()));
    }
    let history = cloud.history();
    let asked = history.iter().filter(|event| event.operation == ApiOperation::Addresses).count();
    assert!(asked <= 10, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn the_deadline_holds_even_if_a_request_hangs() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 2).await;
    cloud.inject(ApiOperation::Get, InjectedFault::Delay(Duration::from_hours(1)));
    let begin = Instant::now();
    let deadline = Duration::from_secs(30);
    let waited = wait_until(&cloud, &ids, Goal::Running, Poll::until(deadline)).await;
    assert_eq!(begin.elapsed(), deadline);
    for outcome in waited.outcomes.values() {
        assert_eq!(*outcome, WaitOutcome::TimedOut(None));
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_late_is_shown_as_last_seen_and_the_others_are_done() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 2).await;
    let (first, second) = (ids.first().expect("one"), ids.last().expect("two"));
    assert!(cloud.force(second, InstanceState::Stopped));
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert!(matches!(waited.outcomes.get(first), Some(WaitOutcome::Reached(_))));
    let late = waited.outcomes.get(second).expect("an outcome");
    let WaitOutcome::TimedOut(Some(seen)) = late else { panic!("{late:?}") };
    assert_eq!(seen.state, InstanceState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_is_remembered_and_does_not_end_the_wait() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 1).await;
    cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Throttled));
    cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Unavailable));
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert_eq!(reached(&waited), 1);
    assert_eq!(waited.last_error.as_ref().map(Error::kind), Some(ErrorKind::Unavailable));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_ends_the_wait_at_once() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 1).await;
    cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Forbidden));
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert_eq!(waited.last_error.as_ref().map(Error::kind), Some(ErrorKind::Forbidden));
    assert_eq!(waited.outcomes.get(&ids[0]), Some(&WaitOutcome::Unknown(None)));
    assert_eq!(polls(&cloud).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_will_never_run_is_lost_at_the_first_poll() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::ZERO;
    settings.linger = Duration::ZERO;
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 3).await;
    assert!(cloud.force(&ids[0], InstanceState::Failed));
    cloud.terminate(&ids[1]).await.expect("success");
    let begin = Instant::now();
    let waited = wait_until(&cloud, &ids[..2], Goal::Running, poll()).await;
    assert!(begin.elapsed() < Duration::from_secs(2));
    for outcome in waited.outcomes.values() {
        assert!(matches!(outcome, WaitOutcome::Lost(_)), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn gone_is_gone_whether_it_is_still_shown_or_not() {
    for linger in [Duration::ZERO, Duration::from_hours(1)] {
        let mut settings = MemoryCloudSettings::default();
        settings.linger = linger;
        let cloud = MemoryCloud::new(settings);
        let ids = launch(&cloud, 3).await;
        for id in &ids {
            cloud.terminate(id).await.expect("success");
        }
        let waited = wait_until(&cloud, &ids, Goal::Gone, poll()).await;
        for outcome in waited.outcomes.values() {
            let as_expected = match outcome {
                WaitOutcome::Gone => linger.is_zero(),
                WaitOutcome::Reached(instance) => !instance.state.is_live(),
                WaitOutcome::Lost(_) | WaitOutcome::TimedOut(_) | WaitOutcome::Unknown(_) => false,
            };
            assert!(as_expected, "{outcome:?}");
        }
        assert!(cloud.instances().iter().all(|instance| !instance.state.is_live()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_permanent_error_keeps_the_outcomes_of_earlier_polls() {
    for (kind, done) in [(ErrorKind::Forbidden, 1), (ErrorKind::Protocol, 2)] {
        let cloud = MemoryCloud::new(MemoryCloudSettings::default());
        let mut ids = launch(&cloud, 1).await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        ids.extend(launch(&cloud, 1).await);
        let polled = InjectedFault::Delay(Duration::from_secs(3));
        for fault in [polled, polled, InjectedFault::Refuse(kind)] {
            cloud.inject(ApiOperation::Get, fault);
        }
        let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
        assert_eq!(reached(&waited), done, "{kind}: {:?}", waited.outcomes);
        assert_eq!(waited.last_error.as_ref().map(Error::kind), Some(kind));
        let second = waited.outcomes.get(&ids[1]).expect("an outcome");
        let unknown = matches!(second, WaitOutcome::Unknown(Some(_)));
        assert_eq!(unknown, done == 1, "{second:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_asked_for_does_not_end_the_wait_for_the_others() {
    let mut settings = MemoryCloudSettings::default();
    settings.linger = Duration::ZERO;
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 3).await;
    for id in &ids {
        cloud.terminate(id).await.expect("success");
    }
    cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Forbidden));
    let waited = wait_until(&cloud, &ids, Goal::Gone, poll()).await;
    for outcome in waited.outcomes.values() {
        assert_eq!(*outcome, WaitOutcome::Gone);
    }
    assert_eq!(waited.last_error.as_ref().map(Error::kind), Some(ErrorKind::Forbidden));
}

#[tokio::test(start_paused = true)]
async fn who_is_lost_is_seen_even_if_addresses_cannot_be_asked_for() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::ZERO;
    settings.boot = Span::zero();
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 2).await;
    assert!(cloud.force(&ids[0], InstanceState::Failed));
    cloud.inject(ApiOperation::Addresses, InjectedFault::Refuse(ErrorKind::Forbidden));
    let waited = wait_until(&cloud, &ids, Goal::Addressed, poll()).await;
    assert!(matches!(waited.outcomes.get(&ids[0]), Some(WaitOutcome::Lost(_))));
    assert!(matches!(waited.outcomes.get(&ids[1]), Some(WaitOutcome::Unknown(Some(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_wait_with_a_long_first_pause_lasts_until_its_deadline() {
    for (first, deadline) in [(30, 60), (10, 10), (1, 1), (1, 60)] {
        let mut settings = MemoryCloudSettings::default();
        settings.boot = Span::millis(1_000_000, 1_000_000);
        let cloud = MemoryCloud::new(settings);
        let ids = launch(&cloud, 1).await;
        let [first, deadline] = [first, deadline].map(Duration::from_secs);
        let begin = Instant::now();
        wait_until(&cloud, &ids, Goal::Running, Poll { first, longest: first, deadline }).await;
        let waited = begin.elapsed();
        assert!(waited >= deadline.mul_f64(0.9) && waited <= deadline, "{waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_poll_is_close_to_the_deadline() {
    let mut settings = MemoryCloudSettings::default();
    settings.latency = Span::zero();
    settings.boot = Span::millis(58_000, 58_000);
    settings.lag = Duration::ZERO;
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 1).await;
    let (begin, minute) = (Instant::now(), Duration::from_mins(1));
    let waited = wait_until(&cloud, &ids, Goal::Running, Poll::until(minute)).await;
    assert_eq!(reached(&waited), 1);
    assert!(begin.elapsed() <= minute, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nothing_to_wait_for_takes_no_request() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let waited = wait_until(&cloud, &[], Goal::Gone, poll()).await;
    assert!(waited.outcomes.is_empty());
    assert!(cloud.history().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_on_a_shared_provider_can_be_spawned() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 1).await;
    let provider: Arc<dyn Provider> = Arc::new(cloud);
    let wait = async move { wait_until(&*provider, &ids, Goal::Running, poll()).await };
    let waited = tokio::spawn(wait).await.expect("no panic");
    assert_eq!(reached(&waited), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rebuilt_instance_is_waited_for_until_it_runs_the_new_image() {
    let cloud = MemoryCloud::new(MemoryCloudSettings::default());
    let ids = launch(&cloud, 2).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let image = ImageId::new("image-2");
    cloud.rebuild(&ids[0], &image).await.expect("success");
    cloud.rebuild(&ids[1], &image).await.expect("success");
    let waited = wait_until(&cloud, &ids, Goal::RunningImage(&image), poll()).await;
    assert_eq!(reached(&waited), 2);
    for instance in cloud.instances() {
        assert_eq!((instance.state, instance.image), (InstanceState::Running, Some(image.clone())));
        assert_eq!(cloud.boots(&instance.id), Some(2));
    }
    let (first, second) = (&ids[..1], &ids[1..]);
    cloud.reboot(&ids[0], Reboot::Hard).await.expect("success");
    let waited = wait_until(&cloud, first, Goal::Running, poll()).await;
    assert_eq!((reached(&waited), cloud.boots(&ids[0])), (1, Some(3)));
    let (short, old) = (Poll::until(Duration::from_secs(20)), ImageId::new("image-1"));
    let waited = wait_until(&cloud, second, Goal::RunningImage(&old), short).await;
    let outcome = waited.outcomes.get(&ids[1]);
    assert!(matches!(outcome, Some(WaitOutcome::TimedOut(Some(_)))), "not that image: {outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_come_back_has_its_outcome() {
    let mut settings = MemoryCloudSettings::default();
    settings.linger = Duration::ZERO;
    settings.terminate = Span::zero();
    let cloud = MemoryCloud::new(settings);
    let ids = launch(&cloud, 3).await;
    assert!(cloud.force(&ids[0], InstanceState::Failed));
    cloud.terminate(&ids[1]).await.expect("success");
    cloud.inject(ApiOperation::Get, InjectedFault::Refuse(ErrorKind::Forbidden));
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert!(matches!(waited.outcomes.get(&ids[0]), Some(WaitOutcome::Lost(_))));
    assert_eq!(waited.outcomes.get(&ids[1]), Some(&WaitOutcome::Gone));
    assert_eq!(reached(&waited), 1);
    cloud.inject_randomly(
        Some(ApiOperation::Get),
        InjectedFault::Refuse(ErrorKind::Forbidden),
        1.0,
    );
    let waited = wait_until(&cloud, &ids, Goal::Running, poll()).await;
    assert!(waited.outcomes.values().all(|outcome| *outcome == WaitOutcome::Unknown(None)));
}
