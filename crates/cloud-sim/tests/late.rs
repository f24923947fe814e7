//! Answers that are late, and clients that do not wait for them.

use crate::support::{Fixture, eventually, launch_body};
use cloud_sim::{Fault, Rule};
use std::time::Duration;

/// Launches, and gives up when the cloud has done the work and not answered.
async fn give_up(fixture: &Fixture, token: Option<&str>, instances: usize) {
    let admin = fixture.cloud.admin();
    let body = launch_body("n1");
    tokio::select! {
        answer = fixture.launch_with(token, &body) => {
            assert_eq!(answer.status, 0, "answered at once");
        }
        () = eventually("the work is done", || admin.instances().len() == instances) => {}
    }
}

#[tokio::test]
async fn a_client_that_gives_up_on_a_late_answer_does_not_undo_the_work() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let late = Fault::Delay { millis: 3_600_000 };
    admin.add_fault(Rule::once("LaunchInstance", late.clone())).unwrap();
    give_up(&fixture, Some("t1"), 1).await;
    fixture.launch_with(Some("t1"), &launch_body("n1")).await.ok();
    assert_eq!(admin.instances().len(), 1, "the token finds it");
    admin.add_fault(Rule::once("LaunchInstance", late)).unwrap();
    give_up(&fixture, None, 2).await;
    fixture.launch("n1").await;
    assert_eq!(admin.instances().len(), 3, "without a token it is made twice");
}

#[tokio::test]
async fn latency_comes_after_the_work_too() {
    let fixture = Fixture::frozen().await;
    fixture.cloud.admin().set_latency(Duration::from_hours(1));
    give_up(&fixture, None, 1).await;
}

#[tokio::test]
async fn a_client_that_leaves_is_no_longer_under_way() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    admin.add_fault(Rule::once("LaunchInstance", Fault::Delay { millis: 3_600_000 })).unwrap();
    give_up(&fixture, None, 1).await;
    let none_left = || {
        admin.clear_requests();
        admin.most_in_flight() == 0
    };
    eventually("nothing is under way", none_left).await;
    fixture.launch("n2").await;
    assert_eq!(admin.most_in_flight(), 1);
}

#[tokio::test]
async fn an_answer_that_is_an_error_leaves_the_drop_behind_it_for_the_next_request() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    admin
        .add_fault(Rule::once("LaunchInstance", Fault::answer(429, "TooManyRequests", "x")))
        .unwrap();
    admin.add_fault(Rule::once("LaunchInstance", Fault::DropAfter)).unwrap();
    let body = launch_body("n1");
    fixture.launch_with(None, &body).await.refused(429, "TooManyRequests");
    let body = body.to_string();
    let launch = fixture.try_send("POST", "/20160918/instances", &[], &body);
    launch.await.unwrap_err();
    assert_eq!(admin.instances().len(), 1);
}
