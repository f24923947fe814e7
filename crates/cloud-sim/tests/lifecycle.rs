//! Instances from launch to the end, on a clock that the test moves.

use crate::support::{Answered, COMPARTMENT, Fixture, launch_body};
use cloud_sim::{Capacity, Fault, Rule, State};
use serde_json::json;

#[tokio::test]
async fn an_instance_lives() {
    let fixture = Fixture::frozen().await;
    let answer = fixture.launch_with(None, &launch_body("n1")).await.ok();
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let work = answer.header("opc-work-request-id").unwrap();
    let work = format!("/20160918/workRequests/{work}");
    assert_eq!(fixture.state(&id).await, "PROVISIONING");
    assert_eq!(fixture.get(&work).await.ok().json()["status"], "IN_PROGRESS");
    fixture.advance(10);
    assert_eq!(fixture.state(&id).await, "RUNNING");
    assert_eq!(fixture.get(&work).await.ok().json()["status"], "SUCCEEDED");
    let instance = format!("/20160918/instances/{id}");
    fixture.send("DELETE", &instance, "").await.ok();
    assert_eq!(fixture.state(&id).await, "TERMINATING");
    fixture.send("DELETE", &instance, "").await.ok();
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "TERMINATED");
    fixture.send("DELETE", &instance, "").await.refused(404, "NotAuthorizedOrNotFound");
    let list = format!("/20160918/instances?compartmentId={COMPARTMENT}");
    assert_eq!(fixture.get(&list).await.ok().json().as_array().unwrap().len(), 1);
    fixture.advance(3600);
    fixture.get(&instance).await.refused(404, "NotAuthorizedOrNotFound");
    assert_eq!(fixture.get(&list).await.ok().json(), json!([]));
}

#[tokio::test]
async fn a_vnic_is_late() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    let attachments =
        format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    assert_eq!(fixture.get(&attachments).await.ok().json(), json!([]));
    fixture.advance(1);
    let early = fixture.get(&attachments).await.ok().json();
    assert_eq!(
        (&early[0]["lifecycleState"], &early[0]["vnicId"]),
        (&json!("ATTACHING"), &json!(null))
    );
    fixture.advance(1);
    let there = fixture.get(&attachments).await.ok().json();
    assert_eq!(there[0]["lifecycleState"], "ATTACHED");
    let vnic = there[0]["vnicId"].as_str().unwrap();
    let vnic = fixture.get(&format!("/20160918/vnics/{vnic}")).await.ok().json();
    assert_eq!(vnic["privateIp"], "10.1.0.2");
    let ips = format!("/20160918/privateIps?subnetId={}", crate::support::SUBNET);
    assert_eq!(fixture.get(&ips).await.ok().json()[0]["vnicId"], there[0]["vnicId"]);
}

#[tokio::test]
async fn actions_go_through_their_states() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    let act = |action: &str| format!("/20160918/instances/{id}?action={action}");
    fixture.send("POST", &act("SOFTRESET"), "").await.refused(409, "IncorrectState");
    fixture.advance(10);
    fixture.send("POST", &act("SOFTRESET"), "").await.ok();
    assert_eq!(fixture.state(&id).await, "STOPPING");
    fixture.send("POST", &act("RESET"), "").await.refused(409, "IncorrectState");
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "STARTING");
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "RUNNING");
    assert_eq!(fixture.cloud.admin().boots(&id), Some(2));
    fixture.send("POST", &act("STOP"), "").await.ok();
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "STOPPED");
    fixture.send("POST", &act("START"), "").await.ok();
    assert_eq!(fixture.state(&id).await, "STARTING");
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "RUNNING");
    fixture.send("POST", &act("EXPLODE"), "").await.refused(400, "InvalidParameter");
}

#[tokio::test]
async fn a_clock_that_is_moved_far_takes_every_step() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let instance = format!("/20160918/instances/{id}");
    fixture.send("POST", &format!("{instance}?action=RESET"), "").await.ok();
    fixture.advance(9);
    assert_eq!(fixture.state(&id).await, "STARTING");
    fixture.send("DELETE", &instance, "").await.ok();
    fixture.advance(24 * 3600);
    fixture.get(&instance).await.refused(404, "NotAuthorizedOrNotFound");
    assert_eq!(fixture.cloud.admin().instances().len(), 0);
    let other = fixture.launch("n2").await;
    fixture.advance(10);
    fixture.send("POST", &format!("/20160918/instances/{other}?action=RESET"), "").await.ok();
    fixture.advance(10);
    assert_eq!(fixture.state(&other).await, "RUNNING", "stop and start in one");
    assert_eq!(fixture.cloud.admin().boots(&other), Some(2));
}

async fn status(fixture: &Fixture, answer: &Answered) -> String {
    let work = answer.header("opc-work-request-id").unwrap();
    let answer = fixture.get(&format!("/20160918/workRequests/{work}")).await.ok();
    answer.json()["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_failure_of_a_launch_is_not_put_on_what_comes_after_it() {
    let fixture = Fixture::frozen().await;
    let fault = Fault::FailLater { code: "InternalError".into(), message: "x".into() };
    for doomed in [true, false] {
        if doomed {
            fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", fault.clone())).unwrap();
        }
        let launched = fixture.launch_with(None, &launch_body("n1")).await.ok();
        let target = format!("/20160918/instances/{}", launched.json()["id"].as_str().unwrap());
        let ended = fixture.send("DELETE", &target, "").await.ok();
        let expected = if doomed { "FAILED" } else { "CANCELED" };
        assert_eq!(status(&fixture, &launched).await, expected);
        fixture.advance(5);
        assert_eq!(status(&fixture, &ended).await, "SUCCEEDED", "doomed: {doomed}");
    }
}

#[tokio::test]
async fn the_failure_of_a_launch_ends_when_another_hand_moves_the_instance() {
    let fixture = Fixture::frozen().await;
    let fault = Fault::FailLater { code: "InternalError".into(), message: "x".into() };
    fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", fault)).unwrap();
    let launched = fixture.launch_with(None, &launch_body("n1")).await.ok();
    let id = launched.json()["id"].as_str().unwrap().to_owned();
    fixture.cloud.admin().set_state(&id, State::Running).unwrap();
    assert_eq!(status(&fixture, &launched).await, "FAILED");
    let stop = format!("/20160918/instances/{id}?action=STOP");
    let stopped = fixture.send("POST", &stop, "").await.ok();
    fixture.advance(5);
    assert_eq!(status(&fixture, &stopped).await, "SUCCEEDED");
}

#[tokio::test]
async fn a_doomed_launch_that_is_terminated_takes_no_room() {
    let fixture = Fixture::frozen().await;
    let capacity = |instances, fails_later| {
        vec![Capacity { availability_domain: None, shape: None, instances, fails_later }]
    };
    fixture.cloud.admin().set_capacity(capacity(0, true)).unwrap();
    let doomed = fixture.launch("n1").await;
    fixture.cloud.admin().set_capacity(capacity(1, false)).unwrap();
    fixture.send("DELETE", &format!("/20160918/instances/{doomed}"), "").await.ok();
    assert_eq!(fixture.state(&doomed).await, "TERMINATING");
    fixture.launch("n2").await;
    let full = fixture.launch_with(None, &launch_body("n3")).await;
    full.refused(500, "InternalError");
}

#[tokio::test]
async fn an_interrupt_has_a_work_request_that_ends() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let target = format!("/20160918/instances/{id}?action=SENDDIAGNOSTICINTERRUPT");
    let answer = fixture.send("POST", &target, "").await.ok();
    assert_eq!(status(&fixture, &answer).await, "SUCCEEDED");
    assert_eq!(fixture.state(&id).await, "RUNNING");
}

#[tokio::test]
async fn an_etag_is_stale_when_the_state_has_changed_by_itself() {
    let fixture = Fixture::frozen().await;
    let launched = fixture.launch_with(None, &launch_body("n1")).await.ok();
    let etag = launched.header("etag").unwrap();
    fixture.advance(10);
    let target = format!("/20160918/instances/{}", launched.json()["id"].as_str().unwrap());
    let ended = fixture.try_send("DELETE", &target, &[("if-match", &etag)], "").await.unwrap();
    ended.refused(412, "NoEtagMatch");
}

#[tokio::test]
async fn work_requests_are_forgotten_after_a_time() {
    let fixture = Fixture::frozen().await;
    let launched = fixture.launch_with(None, &launch_body("n1")).await.ok();
    fixture.advance(10);
    assert_eq!(status(&fixture, &launched).await, "SUCCEEDED");
    fixture.advance(24 * 3600);
    let list = format!("/20160918/workRequests?compartmentId={COMPARTMENT}");
    assert_eq!(fixture.get(&list).await.ok().json(), json!([]));
}

#[tokio::test]
async fn a_kept_boot_volume_ends_with_the_next_instance_that_has_it() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    let volumes = format!("/20160918/bootVolumes?compartmentId={COMPARTMENT}");
    let attached = format!(
        "/20160918/bootVolumeAttachments?compartmentId={COMPARTMENT}\
         &availabilityDomain=Uocm%3APHX-AD-1&instanceId={id}"
    );
    let volume = fixture.get(&attached).await.ok().json()[0]["bootVolumeId"].clone();
    let keep = format!("/20160918/instances/{id}?preserveBootVolume=true");
    fixture.send("DELETE", &keep, "").await.ok();
    let mut body = launch_body("n2");
    body["sourceDetails"] = json!({"sourceType": "bootVolume", "bootVolumeId": volume});
    fixture.launch_with(None, &body).await.refused(409, "IncorrectState");
    fixture.advance(5);
    let second = fixture.launch_with(None, &body).await.ok().json();
    fixture.launch_with(None, &body).await.refused(409, "IncorrectState");
    let target = format!("/20160918/instances/{}", second["id"].as_str().unwrap());
    fixture.send("DELETE", &target, "").await.ok();
    fixture.advance(5);
    let left = fixture.get(&volumes).await.ok().json();
    let left: Vec<_> = left.as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert_eq!(left, ["ocid1.bootvolume.oc1.phx.bv1"]);
}

#[tokio::test]
async fn a_second_termination_does_not_free_the_label_of_another() {
    let fixture = Fixture::frozen().await;
    let mut body = launch_body("n1");
    body["createVnicDetails"]["hostnameLabel"] = json!("N1");
    let first = fixture.launch_with(None, &body).await.ok().json()["id"].clone();
    assert_eq!(fixture.fate(&body).await, "FAILED");
    let first = first.as_str().unwrap();
    fixture.cloud.admin().set_state(first, State::Terminated).unwrap();
    body["createVnicDetails"]["hostnameLabel"] = json!("n1");
    assert_eq!(fixture.fate(&body).await, "SUCCEEDED");
    fixture.cloud.admin().set_state(first, State::Terminated).unwrap();
    assert_eq!(fixture.fate(&body).await, "FAILED");
}

#[tokio::test]
async fn an_instance_that_has_ended_does_not_run_again() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    admin.set_state(&id, State::Terminated).unwrap();
    for state in [State::Running, State::Terminating, State::Provisioning] {
        let refused = admin.set_state(&id, state).unwrap_err().to_string();
        assert_eq!(refused, format!("instance {id} has ended; launch another"));
    }
    let url = |id: &str| format!("{}/admin/instances/{id}", fixture.cloud.endpoint());
    let put = async |id: &str| {
        let put = fixture.http.put(url(id)).body("\"RUNNING\"").send().await.unwrap();
        put.status().as_u16()
    };
    assert_eq!((put(&id).await, put("x").await), (409, 404));
    assert_eq!(fixture.state(&id).await, "TERMINATED");
    assert!(admin.set_state("x", State::Running).is_err());
}

#[tokio::test]
async fn a_doomed_launch_that_the_admin_saves_has_a_vnic_and_room() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let room = |instances, fails_later| {
        vec![Capacity { availability_domain: None, shape: None, instances, fails_later }]
    };
    admin.set_capacity(room(0, true)).unwrap();
    let id = fixture.launch("n1").await;
    admin.set_capacity(room(1, false)).unwrap();
    admin.set_state(&id, State::Running).unwrap();
    fixture.launch_with(None, &launch_body("n2")).await.refused(500, "InternalError");
    fixture.advance(2);
    let of = format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    assert_eq!(fixture.get(&of).await.ok().json()[0]["lifecycleState"], "ATTACHED");
    fixture.advance(24 * 3600);
    assert_eq!(fixture.state(&id).await, "RUNNING");
}

#[tokio::test]
async fn a_doomed_launch_has_no_attachment_when_it_has_ended() {
    let fixture = Fixture::frozen().await;
    let fault = Fault::FailLater { code: "InternalError".into(), message: "x".into() };
    fixture.cloud.admin().add_fault(Rule::once("LaunchInstance", fault)).unwrap();
    let id = fixture.launch("n1").await;
    fixture.advance(3);
    assert_eq!(fixture.state(&id).await, "TERMINATED");
    let list = format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}");
    assert_eq!(fixture.get(&list).await.ok().json(), json!([]));
    let other = fixture.launch("n2").await;
    fixture.advance(2);
    fixture.cloud.admin().set_state(&other, State::Terminated).unwrap();
    assert_eq!(fixture.get(&list).await.ok().json()[0]["lifecycleState"], "DETACHED");
}

#[tokio::test]
async fn the_work_of_a_deleted_image_ends() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let body = json!({"compartmentId": COMPARTMENT, "instanceId": id}).to_string();
    let fault = Fault::FailLater { code: "InternalError".into(), message: "x".into() };
    for (doomed, expected) in [(false, "CANCELED"), (true, "FAILED")] {
        if doomed {
            fixture.cloud.admin().add_fault(Rule::once("CreateImage", fault.clone())).unwrap();
        }
        let made = fixture.send("POST", "/20160918/images", &body).await.ok();
        let image = format!("/20160918/images/{}", made.json()["id"].as_str().unwrap());
        assert_eq!(status(&fixture, &made).await, "IN_PROGRESS");
        fixture.send("DELETE", &image, "").await.ok();
        assert_eq!(status(&fixture, &made).await, expected);
    }
}

#[tokio::test]
async fn an_instance_is_creating_image_while_one_is_made_of_it() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let body = json!({"compartmentId": COMPARTMENT, "instanceId": id}).to_string();
    let one = format!("/20160918/instances/{id}");
    let image_of = async || fixture.send("POST", "/20160918/images", &body).await;
    let made = image_of().await.ok();
    assert_eq!(fixture.state(&id).await, "CREATING_IMAGE");
    image_of().await.refused(409, "IncorrectState");
    for action in ["STOP", "SOFTRESET", "START"] {
        let act = format!("{one}?action={action}");
        fixture.send("POST", &act, "").await.refused(409, "IncorrectState");
    }
    fixture.advance(10);
    assert_eq!(status(&fixture, &made).await, "SUCCEEDED");
    assert_eq!(fixture.state(&id).await, "RUNNING");
    assert_eq!(fixture.cloud.admin().boots(&id), Some(1), "it was on all the time");
    // One that is gone, and one that another hand has moved on.
    let image = image_of().await.ok().json()["id"].as_str().unwrap().to_owned();
    fixture.send("DELETE", &format!("/20160918/images/{image}"), "").await.ok();
    assert_eq!(fixture.state(&id).await, "RUNNING");
    image_of().await.ok();
    fixture.cloud.admin().set_state(&id, State::CreatingImage).unwrap();
    fixture.advance(10);
    assert_eq!(fixture.state(&id).await, "CREATING_IMAGE");
    fixture.cloud.admin().set_state(&id, State::Running).unwrap();
    fixture.send("POST", &format!("{one}?action=STOP"), "").await.ok();
    fixture.advance(10);
    image_of().await.ok();
    assert_eq!(fixture.state(&id).await, "STOPPED");
    fixture.advance(10);
    assert_eq!(fixture.state(&id).await, "STOPPED");
}
