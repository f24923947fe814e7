//! Work that fails after it was accepted, for every operation that has a work request.

use crate::support::{Answered, COMPARTMENT, Fixture, IMAGE, launch_body};
use cloud_sim::{Capacity, Fault, Rule, State};
use serde_json::{Value, json};

fn doom(operation: &str) -> Rule {
    let (code, message) = ("InternalError".to_owned(), "it went wrong".to_owned());
    Rule::once(operation, Fault::FailLater { code, message })
}

/// The status of the work that an answer began, and its error.
async fn work(fixture: &Fixture, answer: &Answered) -> (Value, Value) {
    let work = format!("/20160918/workRequests/{}", answer.header("opc-work-request-id").unwrap());
    let errors = fixture.get(&format!("{work}/errors")).await.ok().json();
    (fixture.get(&work).await.ok().json()["status"].clone(), errors[0]["message"].clone())
}

async fn running(fixture: &Fixture) -> String {
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    id
}

#[tokio::test]
async fn a_launch_that_fails_leaves_the_boot_volume() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let volume = "/20160918/bootVolumes/ocid1.bootvolume.oc1.phx.bv1";
    let before = fixture.get(volume).await.ok().json();
    let mut body = launch_body("n1");
    body["sourceDetails"] = json!({"sourceType": "bootVolume", "bootVolumeId": before["id"]});
    let full = Capacity { availability_domain: None, shape: None, instances: 0, fails_later: true };
    admin.set_capacity(vec![full]).unwrap();
    let doomed = fixture.launch_with(None, &body).await.ok();
    fixture.launch_with(None, &body).await.refused(409, "IncorrectState");
    fixture.advance(3600);
    assert_eq!(work(&fixture, &doomed).await.0, "FAILED");
    assert_eq!(fixture.get(volume).await.ok().json(), before);
    // By another's hand it comes to be after all, and then the volume ends with it.
    let saved = fixture.launch_with(None, &body).await.ok().json();
    let id = saved["id"].as_str().unwrap();
    admin.set_state(id, State::Running).unwrap();
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    fixture.advance(10);
    fixture.get(volume).await.refused(404, "NotAuthorizedOrNotFound");
}

/// OCI accepts the launch, and finds out when it makes the VNIC.
#[tokio::test]
async fn a_launch_with_a_taken_host_name_fails_later() {
    let fixture = Fixture::frozen().await;
    let named = |label: &str| {
        let mut body = launch_body("n1");
        body["createVnicDetails"]["hostnameLabel"] = json!(label);
        body
    };
    let first = fixture.launch_with(None, &named("N1")).await.ok().json();
    for _ in 0..2 {
        // That one ended which never had it did not free it.
        let second = fixture.launch_with(None, &named("n1")).await.ok();
        fixture.advance(60);
        let (status, why) = work(&fixture, &second).await;
        assert_eq!(status, "FAILED");
        let why = why.as_str().unwrap();
        assert!(why.contains("(Hostname n1 is already used in subnet ocid1.subnet."), "{why}");
    }
    let target = format!("/20160918/instances/{}", first["id"].as_str().unwrap());
    fixture.send("DELETE", &target, "").await.ok();
    fixture.advance(60);
    assert_eq!(fixture.fate(&named("n1")).await, "SUCCEEDED");
}

#[tokio::test]
async fn actions_and_terminations_can_fail_later() {
    let fixture = Fixture::frozen().await;
    let id = running(&fixture).await;
    let one = format!("/20160918/instances/{id}");
    let new =
        json!({"sourceDetails": {"sourceType": "image", "imageId": "ocid1.image.oc1.phx.new"}});
    let image = json!({"compartmentId": COMPARTMENT, "instanceId": id});
    let table = [
        ("InstanceAction", "POST", format!("{one}?action=STOP"), String::new()),
        ("InstanceAction", "POST", format!("{one}?action=SOFTRESET"), String::new()),
        ("InstanceAction", "POST", format!("{one}?action=SENDDIAGNOSTICINTERRUPT"), String::new()),
        ("UpdateInstance", "PUT", one.clone(), new.to_string()),
        ("CreateImage", "POST", "/20160918/images".to_owned(), image.to_string()),
        ("TerminateInstance", "DELETE", one.clone(), String::new()),
    ];
    for (operation, method, target, body) in table {
        for rule in [doom(operation), doom("*")] {
            fixture.cloud.admin().add_fault(rule).unwrap();
            let answer = fixture.send(method, &target, &body).await.ok();
            assert_eq!(fixture.cloud.admin().faults(), [], "{operation}");
            fixture.advance(10);
            let (status, error) = work(&fixture, &answer).await;
            assert_eq!((status, error), (json!("FAILED"), json!("it went wrong")), "{target}");
            let instance = fixture.get(&one).await.ok().json();
            assert_eq!(instance["lifecycleState"], "RUNNING", "{operation}");
            assert_eq!(instance["imageId"], IMAGE, "{operation}");
            if operation == "CreateImage" {
                let image = format!("/20160918/images/{}", answer.json()["id"].as_str().unwrap());
                assert_eq!(fixture.get(&image).await.ok().json()["lifecycleState"], "DELETED");
            }
        }
    }
    let stopped = fixture.send("POST", &format!("{one}?action=STOP"), "").await.ok();
    fixture.advance(10);
    assert_eq!(work(&fixture, &stopped).await.0, "SUCCEEDED");
    fixture.cloud.admin().add_fault(doom("InstanceAction")).unwrap();
    fixture.send("POST", &format!("{one}?action=START"), "").await.ok();
    fixture.advance(10);
    assert_eq!(fixture.state(&id).await, "STOPPED");
}

#[tokio::test]
async fn a_rule_is_not_used_up_by_a_request_that_begins_nothing() {
    let fixture = Fixture::frozen().await;
    let body = launch_body("n1");
    let first = fixture.launch_with(Some("t1"), &body).await.ok();
    let id = first.json()["id"].as_str().unwrap().to_owned();
    let admin = fixture.cloud.admin();
    admin.add_fault(doom("LaunchInstance")).unwrap();
    admin.add_fault(doom("InstanceAction")).unwrap();
    admin.add_fault(doom("UpdateInstance")).unwrap();
    let waiting = admin.faults();
    fixture.launch_with(Some("t1"), &body).await.ok();
    let mut refused = body.clone();
    refused["shape"] = json!("VM.Nope");
    fixture.launch_with(None, &refused).await.refused(400, "InvalidParameter");
    refused = body.clone();
    refused["createVnicDetails"]["privateIp"] = json!("10.1.0.2");
    fixture.launch_with(None, &refused).await.refused(400, "InvalidParameter");
    let act = format!("/20160918/instances/{id}?action=STOP");
    fixture.send("POST", &act, "").await.refused(409, "IncorrectState");
    let tags = json!({"freeformTags": {"a": "b"}}).to_string();
    fixture.send("PUT", &format!("/20160918/instances/{id}"), &tags).await.ok();
    assert_eq!(admin.faults(), waiting, "none has happened");
    fixture.advance(10);
    assert_eq!(fixture.state(&id).await, "RUNNING");
    let doomed = fixture.launch_with(Some("t2"), &body).await.ok();
    fixture.advance(3);
    assert_eq!(work(&fixture, &doomed).await.0, "FAILED");
    assert_eq!(admin.faults().len(), 2);
}

#[tokio::test]
async fn an_action_that_fails_later_takes_no_room_away() {
    let fixture = Fixture::frozen().await;
    let id = running(&fixture).await;
    fixture.cloud.admin().add_fault(doom("InstanceAction")).unwrap();
    fixture.send("POST", &format!("/20160918/instances/{id}?action=STOP"), "").await.ok();
    let left = format!(
        "/20190729/services/compute/limits/standard-e5-core-count/resourceAvailability\
         ?compartmentId={COMPARTMENT}&availabilityDomain=Uocm%3APHX-AD-1"
    );
    assert_eq!(fixture.get(&left).await.ok().json()["used"], 1);
    fixture.advance(10);
    assert_eq!(fixture.cloud.admin().instances().len(), 1);
    assert_eq!(fixture.cloud.admin().instances()[0].lifecycle_state, State::Running);
}
