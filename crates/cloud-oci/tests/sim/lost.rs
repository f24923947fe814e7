//! Answers that are lost, and programs that are started again: one instance, not two, not none.

use crate::sim::fixture::{SimFixture, http, pacer, spec};
use cloud_core::conformance::Fixture as _;
use cloud_core::http::Retry;
use cloud_core::{
    ErrorKind, Goal, ImageFilter, ImageName, InstanceFilter, InstanceId, InstanceSpec, LaunchToken,
    Provider as _, Reboot, wait_until,
};
use cloud_oci::{Clock, Oci};
use cloud_sim::{CloudSettings, Fault, Rule};
use std::time::{Duration, SystemTime};

fn with_token(name: &str) -> InstanceSpec {
    let mut spec = spec(name);
    spec.token = LaunchToken::new(format!("c1:{name}:1")).ok();
    spec
}

fn lose_the_next_launch(fixture: &SimFixture) {
    fixture
        .cloud
        .admin()
        .add_fault(Rule::once("LaunchInstance", Fault::DropAfter))
        .expect("it can happen");
}

#[tokio::test]
async fn a_launch_whose_answer_is_lost_is_repeated_and_makes_one_instance() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    lose_the_next_launch(&fixture);
    let launched = provider.launch(&with_token("vm-1")).await.expect("found by its token");
    assert_eq!(fixture.cloud.admin().counts()["LaunchInstance"], 2, "sent again");
    assert_eq!(fixture.live_named("vm-1"), 1);
    assert_eq!(fixture.cloud.admin().instances()[0].id, launched.id.as_str());
}

#[tokio::test]
async fn a_program_that_is_started_again_after_a_lost_answer_finds_the_instance() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    // A program that dies with its first attempt.
    let mut once = http();
    once.retry = Retry::never();
    let clock = Clock::new(SystemTime::now);
    let dying = Oci::connect(fixture.config(), fixture.site(), once, pacer(), clock).await;
    lose_the_next_launch(&fixture);
    let error = dying.expect("a provider").launch(&with_token("vm-1")).await;
    assert_eq!(error.expect_err("no answer").kind(), ErrorKind::Ambiguous);
    assert_eq!(fixture.live_named("vm-1"), 1, "it was carried out");

    let again = fixture.provider().await;
    let launched = again.launch(&with_token("vm-1")).await.expect("the same token");
    assert_eq!(fixture.live_named("vm-1"), 1);
    assert_eq!(fixture.cloud.admin().instances()[0].id, launched.id.as_str());
}

#[tokio::test]
async fn without_a_token_a_lost_answer_is_ambiguous_and_is_not_repeated() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    lose_the_next_launch(&fixture);
    let error = provider.launch(&spec("vm-1")).await.expect_err("no answer");
    assert_eq!(error.kind(), ErrorKind::Ambiguous);
    assert_eq!(fixture.cloud.admin().counts()["LaunchInstance"], 1);
    assert_eq!(fixture.live_named("vm-1"), 1);
}

#[tokio::test]
async fn a_token_whose_instance_is_gone_says_so() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let launched = provider.launch(&with_token("vm-1")).await.expect("accepted");
    provider.terminate(&launched.id).await.expect("accepted");
    fixture.cloud.admin().advance(std::time::Duration::from_mins(1)).expect("it can be");
    let error = provider.launch(&with_token("vm-1")).await.expect_err("the token is used up");
    assert_eq!(error.kind(), ErrorKind::TokenUsedUp);
    let mut next = spec("vm-1");
    next.token = LaunchToken::new("c1:vm-1:2").ok();
    provider.launch(&next).await.expect("a new generation");
    assert_eq!(fixture.live_named("vm-1"), 1);
}

/// An instance that runs.
async fn running(fixture: &SimFixture, provider: &Oci) -> InstanceId {
    let id = provider.launch(&spec("vm-1")).await.expect("accepted").id;
    let ids = std::slice::from_ref(&id);
    wait_until(provider, ids, Goal::Running, fixture.poll()).await;
    id
}

#[tokio::test]
async fn a_reboot_whose_answer_is_lost_is_repeated_and_is_one_boot() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let id = running(&fixture, &provider).await;
    let admin = fixture.cloud.admin();
    admin.add_fault(Rule::once("InstanceAction", Fault::DropAfter)).expect("it can happen");
    // Longer than a reboot takes, so that a second one would not be refused.
    admin
        .add_fault(Rule::once("InstanceAction", Fault::Delay { millis: 1500 }))
        .expect("it can happen");
    provider.reboot(&id, Reboot::Soft).await.expect("found by its token");
    wait_until(&provider, std::slice::from_ref(&id), Goal::Running, fixture.poll()).await;
    admin.advance(Duration::from_mins(10)).expect("it can be");
    assert_eq!(admin.counts()["InstanceAction"], 2, "sent again");
    assert_eq!(admin.boots(id.as_str()), Some(2));
}

#[tokio::test]
async fn a_rebuild_whose_answer_is_lost_is_repeated_and_is_one_boot() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let id = running(&fixture, &provider).await;
    let admin = fixture.cloud.admin();
    admin.add_fault(Rule::once("UpdateInstance", Fault::DropAfter)).expect("it can happen");
    admin
        .add_fault(Rule::once("UpdateInstance", Fault::Delay { millis: 1500 }))
        .expect("it can happen");
    let image = fixture.other_image();
    provider.rebuild(&id, &image).await.expect("found by its token");
    wait_until(&provider, std::slice::from_ref(&id), Goal::RunningImage(&image), fixture.poll())
        .await;
    admin.advance(Duration::from_mins(10)).expect("it can be");
    assert_eq!(admin.counts()["UpdateInstance"], 2, "sent again");
    assert_eq!(admin.boots(id.as_str()), Some(2));
}

#[tokio::test]
async fn a_snapshot_whose_answer_is_lost_is_repeated_and_is_one_image() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let provider = fixture.provider().await;
    let id = running(&fixture, &provider).await;
    fixture
        .cloud
        .admin()
        .add_fault(Rule::once("CreateImage", Fault::DropAfter))
        .expect("it can happen");
    let name = ImageName::new("golden");
    let made = provider.snapshot(&id, &name).await.expect("found by its token");
    assert_eq!(fixture.cloud.admin().counts()["CreateImage"], 2, "sent again");
    let filter = ImageFilter { name: Some(name), ..ImageFilter::default() };
    let found = provider.images(&filter).await.expect("a list");
    let ids: Vec<_> = found.iter().map(|image| &image.id).collect();
    assert_eq!(ids, [&made]);
}

/// The process that launched it is gone, or its answer was lost: another adopts what it sees.
#[tokio::test]
async fn a_launch_of_another_process_that_fails_later_has_a_fault() {
    // The clock stands: it fails when we say so.
    let fixture = SimFixture::start(CloudSettings { speed: 0.0, ..CloudSettings::default() }).await;
    let (first, second, third) =
        (fixture.provider().await, fixture.provider().await, fixture.provider().await);
    let message = "Out of host capacity.".to_owned();
    let fail = Fault::FailLater { code: "InternalError".to_owned(), message };
    let admin = fixture.cloud.admin();
    admin.add_fault(Rule::once("LaunchInstance", fail)).expect("it can happen");
    let id = first.launch(&spec("vm-1")).await.expect("accepted").id;
    let listed = async |provider: &Oci| {
        let all = provider.list(&InstanceFilter::default()).await.expect("a list");
        all.into_iter().find(|it| it.id == id).expect("shown for a while")
    };
    assert!(!listed(&second).await.state.is_lost(), "it comes");
    admin.advance(Duration::from_mins(5)).expect("it can be");
    admin.clear_requests();
    for _look in 0..3 {
        let shown = listed(&second).await;
        assert_eq!(shown.fault.map(|fault| fault.kind), Some(ErrorKind::Capacity));
        assert!(shown.state.is_lost(), "{}", shown.state);
    }
    assert_eq!(admin.counts()["ListWorkRequests"], 1, "asked for once");
    // Who has not seen it come sees an old record, and asks nothing.
    assert_eq!(listed(&third).await.fault, None);
    assert_eq!(admin.counts()["ListWorkRequests"], 1);
}

#[tokio::test]
async fn an_instance_that_another_process_removed_has_not_failed() {
    let fixture = SimFixture::start(CloudSettings::quick()).await;
    let (first, second) = (fixture.provider().await, fixture.provider().await);
    let id = first.launch(&spec("vm-1")).await.expect("accepted").id;
    assert!(!second.get(&id).await.expect("shown").state.is_lost(), "it comes");
    first.terminate(&id).await.expect("accepted");
    fixture.cloud.admin().advance(Duration::from_mins(1)).expect("it can be");
    for _look in 0..3 {
        let shown = second.get(&id).await.expect("shown for a while");
        assert!(shown.state.is_lost() && shown.fault.is_none(), "{shown:?}");
    }
    assert_eq!(fixture.cloud.admin().counts()["ListWorkRequests"], 1, "asked for once");
}
