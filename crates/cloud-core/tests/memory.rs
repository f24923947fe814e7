//! The cloud in memory is as strict as the real ones.

use cloud_core::memory::{
    InjectedFault, LoggedRequest, MemoryCloud, MemoryCloudSettings, RequestOutcome, Span, Throttle,
};
use cloud_core::{
    ApiOperation, Capabilities, Capability, Error, ErrorKind, FaultDomain, ImageFilter, ImageId,
    ImageName, InstanceFilter, InstanceName, InstanceSpec, InstanceState, LaunchToken, Provider,
    Reboot, Result, ShapeName, Tags, Zone,
};
use proptest::prelude::*;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// A cloud without latency, in which everything takes exactly ten seconds.
fn exact() -> MemoryCloudSettings {
    let ten = Span::millis(10_000, 10_000);
    let mut settings = MemoryCloudSettings::default();
    settings.latency = Span::zero();
    settings.lag = Duration::ZERO;
    (settings.boot, settings.address, settings.terminate, settings.work) = (ten, ten, ten, ten);
    settings
}

fn spec(name: &str) -> InstanceSpec {
    let mut spec = InstanceSpec::new(
        InstanceName::new(name),
        ShapeName::new("small"),
        ImageId::new("image-1"),
    );
    spec.tags = Tags::from([("cluster", "blue")]);
    spec.zone = Some(Zone::new("zone-1"));
    spec
}

fn with_token(name: &str, token: &str) -> InstanceSpec {
    let mut spec = spec(name);
    spec.token = Some(LaunchToken::new(token).expect("a token"));
    spec
}

fn all() -> InstanceFilter {
    InstanceFilter::default()
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.expect_err("an error").kind()
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_instance_lives_on_the_clock() {
    let mut settings = exact();
    settings.linger = Duration::from_secs(10);
    let cloud = MemoryCloud::new(settings);
    let id = cloud.launch(&spec("vm-1")).await.expect("a launch").id;
    let looks = [
        (0, Some(InstanceState::Pending), false),
        (10, Some(InstanceState::Running), false),
        (10, Some(InstanceState::Running), true),
    ];
    for (pause, state, addressed) in looks {
        seconds(pause).await;
        let instance = cloud.get(&id).await.expect("an instance");
        assert_eq!((Some(instance.state), instance.address.is_some()), (state, addressed));
        assert_eq!(
            cloud.addresses(std::slice::from_ref(&id)).await.expect("a map").len(),
            usize::from(addressed)
        );
    }
    cloud.terminate(&id).await.expect("success");
    for state in [InstanceState::Terminating, InstanceState::Terminated] {
        assert_eq!(cloud.get(&id).await.expect("an instance").state, state);
        seconds(10).await;
    }
    assert_eq!(kind(cloud.get(&id).await), ErrorKind::NotFound);
    cloud.terminate(&id).await.expect("gone already is a success");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_good_for_one_request_and_24_hours() {
    let cloud = MemoryCloud::new(exact());
    let first = cloud.launch(&with_token("vm-1", "t")).await.expect("a launch");
    assert_eq!(cloud.launch(&with_token("vm-1", "t")).await.expect("a repeat").id, first.id);
    assert_eq!(kind(cloud.launch(&with_token("vm-2", "t")).await), ErrorKind::Invalid);
    seconds(24 * 3600 - 1).await;
    assert_eq!(cloud.launch(&with_token("vm-1", "t")).await.expect("a repeat").id, first.id);
    seconds(1).await;
    assert_ne!(cloud.launch(&with_token("vm-1", "t")).await.expect("a launch").id, first.id);
}

#[tokio::test(start_paused = true)]
async fn a_token_of_an_instance_that_was_deleted_is_used_up() {
    let cloud = MemoryCloud::new(exact());
    let first = cloud.launch(&with_token("vm-1", "t")).await.expect("a launch");
    cloud.terminate(&first.id).await.expect("success");
    let error = cloud.launch(&with_token("vm-1", "t")).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::TokenUsedUp);
}

#[tokio::test(start_paused = true)]
async fn without_tokens_each_launch_makes_an_instance() {
    let mut settings = exact();
    settings.capabilities = Capabilities::all().without(Capability::LaunchToken);
    let cloud = MemoryCloud::new(settings);
    for _ in 0..2 {
        cloud.launch(&with_token("vm-1", "t")).await.expect("a launch");
    }
    let listed = cloud.list(&all().named(InstanceName::new("vm-1"))).await.expect("a list");
    assert_eq!(listed.len(), 2, "names are not unique");
}

#[tokio::test(start_paused = true)]
async fn listings_are_behind_and_looks_at_one_are_not() {
    let mut settings = exact();
    settings.lag = Duration::from_secs(5);
    let cloud = MemoryCloud::new(settings);
    seconds(60).await;
    let id = cloud.launch(&spec("vm-1")).await.expect("a launch").id;
    assert!(cloud.get(&id).await.is_ok());
    assert!(cloud.list(&all()).await.expect("a list").is_empty());
    seconds(12).await;
    assert_eq!(cloud.get(&id).await.expect("an instance").state, InstanceState::Running);
    let listed = cloud.list(&all()).await.expect("a list");
    assert_eq!(listed.first().expect("one").state, InstanceState::Pending);
}

#[tokio::test(start_paused = true)]
async fn each_page_is_a_request() {
    let mut settings = exact();
    settings.page = 2;
    let cloud = MemoryCloud::new(settings);
    for n in 0..5 {
        cloud.launch(&spec(&format!("vm-{n}"))).await.expect("a launch");
    }
    assert_eq!(cloud.list(&all()).await.expect("a list").len(), 5);
    assert_eq!(count(&cloud, ApiOperation::List), 3);
    // The second page fails, and so does the listing: half a list is no list.
    cloud.inject(ApiOperation::List, InjectedFault::Delay(Duration::from_secs(1)));
    cloud.inject(ApiOperation::List, InjectedFault::Refuse(ErrorKind::Unavailable));
    assert_eq!(kind(cloud.list(&all()).await), ErrorKind::Unavailable);
}

fn count(cloud: &MemoryCloud, operation: ApiOperation) -> usize {
    cloud.history().iter().filter(|event| event.operation == operation).count()
}

#[tokio::test(start_paused = true)]
async fn capacity_is_of_a_shape_in_a_zone_and_comes_back() {
    let cloud = MemoryCloud::new(exact());
    cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), Some(1));
    let first = cloud.launch(&spec("vm-1")).await.expect("a launch");
    assert_eq!(kind(cloud.launch(&spec("vm-2")).await), ErrorKind::Capacity);
    let mut elsewhere = spec("vm-2");
    elsewhere.zone = Some(Zone::new("zone-2"));
    cloud.launch(&elsewhere).await.expect("a launch in another zone");
    cloud.terminate(&first.id).await.expect("success");
    assert_eq!(kind(cloud.launch(&spec("vm-3")).await), ErrorKind::Capacity);
    seconds(10).await;
    cloud.launch(&spec("vm-3")).await.expect("a launch when the first is gone");
}

#[tokio::test(start_paused = true)]
async fn a_launch_without_a_zone_fails_when_every_zone_is_full() {
    let cloud = MemoryCloud::new(exact());
    let small = ShapeName::new("small");
    for zone in ["zone-1", "zone-3"] {
        cloud.set_capacity(small.clone(), Some(Zone::new(zone)), Some(0));
    }
    cloud.set_capacity(small.clone(), Some(Zone::new("zone-2")), Some(1));
    let mut anywhere = spec("vm-1");
    anywhere.zone = None;
    let first = cloud.launch(&anywhere).await.expect("a launch");
    assert_eq!(first.zone, Some(Zone::new("zone-2")), "the one with room");
    assert_eq!(kind(cloud.launch(&anywhere).await), ErrorKind::Capacity);
    cloud.set_capacity(small.clone(), Some(Zone::new("zone-2")), None);
    cloud.launch(&anywhere).await.expect("a launch");
    cloud.set_capacity(small, None, Some(2));
    assert_eq!(kind(cloud.launch(&anywhere).await), ErrorKind::Capacity, "in all zones together");
}

#[tokio::test(start_paused = true)]
async fn quota_counts_what_is_live_and_is_a_limit() {
    let mut settings = exact();
    settings.quota = Some(1);
    let cloud = MemoryCloud::new(settings);
    cloud.launch(&spec("vm-1")).await.expect("a launch");
    assert_eq!(kind(cloud.launch(&spec("vm-2")).await), ErrorKind::Quota);
    let limits = cloud.limits().await.expect("limits");
    let limit = limits.first().expect("one");
    assert_eq!((limit.most, limit.used), (Some(1), Some(1)));
    cloud.set_quota(None);
    cloud.launch(&spec("vm-2")).await.expect("a launch");
}

#[tokio::test(start_paused = true)]
async fn throttling_is_a_token_bucket() {
    let mut settings = exact();
    settings.throttle = Some(Throttle { rate: 2.0, burst: 3.0 });
    let cloud = MemoryCloud::new(settings);
    let mut taken = 0;
    for _ in 0..10 {
        taken += u32::from(cloud.list(&all()).await.is_ok());
    }
    assert_eq!(taken, 3);
    let error = cloud.list(&all()).await.expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Throttled);
    seconds(error.retry_after().expect("a pause").as_secs()).await;
    assert!(cloud.list(&all()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_launch_can_fail_after_it_was_accepted() {
    let cloud = MemoryCloud::new(exact());
    cloud.inject(ApiOperation::Launch, InjectedFault::FailLater(ErrorKind::Quota));
    let id = cloud.launch(&spec("vm-1")).await.expect("accepted").id;
    assert_eq!(cloud.get(&id).await.expect("an instance").fault, None);
    seconds(10).await;
    let failed = cloud.get(&id).await.expect("an instance");
    assert_eq!(failed.state, InstanceState::Failed);
    assert_eq!(failed.fault.expect("a fault").kind, ErrorKind::Quota);
    assert_eq!(kind(cloud.reboot(&id, Reboot::Hard).await), ErrorKind::Conflict);
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_on_when_its_caller_is_gone() {
    let cloud = MemoryCloud::new(exact());
    cloud.inject(ApiOperation::Launch, InjectedFault::DoneLater(Duration::from_secs(40)));
    let spec = spec("vm-1");
    let response = timeout(Duration::from_secs(2), cloud.launch(&spec)).await;
    assert!(response.is_err(), "nobody waits any more");
    assert_eq!(cloud.instances(), []);
    seconds(40).await;
    let names: Vec<_> = cloud.instances().into_iter().map(|instance| instance.name).collect();
    assert_eq!(names, [InstanceName::new("vm-1")]);
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_a_lost_request_look_the_same_and_are_not() {
    let cloud = MemoryCloud::new(exact());
    cloud.inject(ApiOperation::Launch, InjectedFault::LoseResponse);
    cloud.inject(ApiOperation::Launch, InjectedFault::LoseRequest);
    let errors = [cloud.launch(&spec("vm-1")).await, cloud.launch(&spec("vm-2")).await];
    let words = errors.map(|result| {
        let error: Error = result.expect_err("an error");
        (error.kind(), error.message().map(str::to_owned))
    });
    assert_eq!(words[0], words[1]);
    assert_eq!(words[0].0, ErrorKind::Ambiguous);
    let names: Vec<_> = cloud.instances().into_iter().map(|instance| instance.name).collect();
    assert_eq!(names, [InstanceName::new("vm-1")]);
    let outcomes: Vec<_> = cloud.history().into_iter().map(|event| event.outcome).collect();
    assert_eq!(outcomes, [RequestOutcome::DoneUnacknowledged, RequestOutcome::Lost]);
    cloud.inject(ApiOperation::List, InjectedFault::LoseResponse);
    assert_eq!(kind(cloud.list(&all()).await), ErrorKind::Unavailable, "a look changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_only_that() {
    let cloud = MemoryCloud::new(exact());
    cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_secs(30)));
    let begin = Instant::now();
    cloud.launch(&spec("vm-1")).await.expect("a launch");
    assert_eq!(begin.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn wrong_requests_are_refused() {
    let mut settings = exact();
    settings.capabilities = Capabilities::default();
    let cloud = MemoryCloud::new(settings);
    let change = |change: fn(&mut InstanceSpec)| {
        let mut spec = spec("vm-1");
        change(&mut spec);
        spec
    };
    let table = [
        (change(|spec| spec.shape = ShapeName::new("none")), ErrorKind::Invalid),
        (change(|spec| spec.image = ImageId::new("none")), ErrorKind::Invalid),
        (change(|spec| spec.zone = Some(Zone::new("none"))), ErrorKind::Invalid),
        (change(|spec| spec.shape = ShapeName::new("flex")), ErrorKind::Invalid),
        (change(|spec| spec.shape = ShapeName::new("small.1.8")), ErrorKind::Invalid),
        (change(|spec| spec.preemptible = true), ErrorKind::Unsupported),
        (change(|spec| spec.fault_domain = Some(FaultDomain::new("1"))), ErrorKind::Unsupported),
    ];
    for (spec, expected) in table {
        assert_eq!(kind(cloud.launch(&spec).await), expected, "{spec:?}");
    }
    assert!(cloud.instances().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_can_be_launched_when_it_is_ready() {
    let cloud = MemoryCloud::new(exact());
    let id = cloud.launch(&spec("vm-1")).await.expect("a launch").id;
    let image = cloud.snapshot(&id, &ImageName::new("golden")).await.expect("a snapshot");
    let mut next = spec("vm-2");
    next.image = image.clone();
    assert_eq!(kind(cloud.launch(&next).await), ErrorKind::Invalid);
    seconds(10).await;
    cloud.launch(&next).await.expect("a launch");
    let newest = cloud.images(&ImageFilter::default()).await.expect("images");
    assert_eq!(newest.first().map(|image| image.id.clone()), Some(image), "newest first");
}

#[tokio::test(start_paused = true)]
async fn chance_is_as_likely_as_asked() {
    for (probability, expected) in [(0.0, 0..=0), (0.2, 150..=250), (1.0, 1000..=1000)] {
        let cloud = MemoryCloud::new(exact());
        cloud.inject_randomly(
            Some(ApiOperation::Get),
            InjectedFault::Refuse(ErrorKind::Quota),
            1.0,
        );
        cloud.inject_randomly(
            Some(ApiOperation::List),
            InjectedFault::Refuse(ErrorKind::Unavailable),
            probability,
        );
        let mut refused = 0;
        for _ in 0..1000 {
            refused += u32::from(cloud.list(&all()).await.is_err());
        }
        assert!(expected.contains(&refused), "{refused} at {probability}");
        cloud.clear_faults();
        assert!(cloud.list(&all()).await.is_ok());
    }
}

/// A hundred launches with all kinds of trouble, each repeated until it is answered.
async fn storm(seed: u64, tokens: bool) -> (Vec<LoggedRequest>, usize) {
    let mut settings = MemoryCloudSettings::default();
    settings.seed = seed;
    settings.throttle = Some(Throttle { rate: 50.0, burst: 10.0 });
    let cloud = MemoryCloud::new(settings);
    cloud.inject_randomly(Some(ApiOperation::Launch), InjectedFault::LoseResponse, 0.2);
    cloud.inject_randomly(None, InjectedFault::Refuse(ErrorKind::Unavailable), 0.1);
    cloud.inject_randomly(None, InjectedFault::LoseRequest, 0.1);
    for n in 0..100 {
        let name = format!("vm-{n}");
        let spec = if tokens { with_token(&name, &name) } else { spec(&name) };
        while cloud.launch(&spec).await.is_err() {
            seconds(1).await;
        }
    }
    (cloud.history(), cloud.instances().len())
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_each_request_at_the_moment_it_is_carried_out() {
    let cloud = MemoryCloud::new(exact());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = std::sync::Arc::clone(&seen);
    cloud.watch(move |moment| {
        let before = moment.before.as_ref().map(|one| one.state.clone());
        let after: Vec<_> = moment.instances().into_iter().map(|one| one.state).collect();
        told.lock().expect("a lock").push((moment.event.clone(), before, after));
    });
    let id = cloud.launch(&spec("vm-1")).await.expect("a launch").id;
    seconds(10).await;
    cloud.inject(ApiOperation::Terminate, InjectedFault::LoseResponse);
    assert_eq!(kind(cloud.terminate(&id).await), ErrorKind::Ambiguous);
    let seen = seen.lock().expect("a lock");
    let [launch, end] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!((&launch.1, &launch.2[..]), (&None, &[InstanceState::Pending][..]));
    assert_eq!(end.1, Some(InstanceState::Running));
    assert_eq!(end.2, [InstanceState::Terminating]);
    assert_eq!(end.0.outcome, RequestOutcome::DoneUnacknowledged);
    assert_eq!(cloud.history(), [launch.0.clone(), end.0.clone()]);
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn the_same_seed_is_the_same_cloud_and_tokens_prevent_doubles(seed in any::<u64>()) {
        let run = |tokens| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time().start_paused(true).build().expect("a runtime");
            runtime.block_on(storm(seed, tokens))
        };
        let (history, instances) = run(true);
        prop_assert_eq!(instances, 100);
        prop_assert_eq!(&history, &run(true).0);
        prop_assert!(run(false).1 > 100, "without tokens a lost answer makes a double");
    }
}
