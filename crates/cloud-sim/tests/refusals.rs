//! What the cloud refuses, and what it forgets on purpose: tokens, limits, faults, wrong keys.

use crate::support::{COMPARTMENT, DOMAIN, Fixture, IMAGE, SUBNET, Signer, escaped, launch_body};
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::RsaKeyPair;
use cloud_sim::{Capacity, CloudSettings, Fault, Limit, Mismatch, Rule, Throttle};
use serde_json::json;
use std::time::{Duration, SystemTime};

const LIST: &str = "/20160918/instances?compartmentId=ocid1.compartment.oc1..aaaacomp";

#[tokio::test]
async fn retry_tokens() {
    let fixture = Fixture::frozen().await;
    let body = launch_body("n1");
    let id = |answer: crate::support::Answered| answer.ok().json()["id"].clone();
    let first = fixture.launch_with(Some("t1"), &body).await.ok();
    let again = fixture.launch_with(Some("t1"), &body).await.ok();
    for header in ["etag", "opc-work-request-id"] {
        assert_eq!(first.header(header), again.header(header), "{header}");
    }
    assert_eq!(first.json()["id"], again.json()["id"]);
    let changed = fixture.launch_with(Some("t1"), &launch_body("n2")).await;
    changed.refused(409, "InvalidatedRetryToken");
    let other = id(fixture.launch_with(Some("t2"), &body).await);
    assert_ne!(other, first.json()["id"], "names are not unique");
    let without =
        (id(fixture.launch_with(None, &body).await), id(fixture.launch_with(None, &body).await));
    assert_ne!(without.0, without.1);
    let one = format!("/20160918/instances/{}", first.json()["id"].as_str().unwrap());
    fixture.send("DELETE", &one, "").await.ok();
    fixture.launch_with(Some("t1"), &body).await.refused(409, "InvalidatedRetryToken");
    fixture.advance(24 * 3600 - 60);
    fixture.launch_with(Some("t1"), &body).await.refused(409, "InvalidatedRetryToken");
    fixture.advance(61);
    assert_ne!(id(fixture.launch_with(Some("t1"), &body).await), first.json()["id"]);
    let long = "x".repeat(65);
    fixture.launch_with(Some(&long), &body).await.refused(400, "InvalidParameter");
}

#[tokio::test]
async fn every_change_takes_a_token_of_its_own() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let act = async |action: &str| {
        let target = format!("/20160918/instances/{id}?action={action}");
        fixture.try_send("POST", &target, &[("opc-retry-token", "t")], "").await.unwrap()
    };
    let first = act("SOFTRESET").await.ok();
    // Off, and on again.
    fixture.advance(10);
    let again = act("SOFTRESET").await.ok();
    let work = "opc-work-request-id";
    assert_eq!(first.header(work), again.header(work));
    assert_eq!(again.json()["lifecycleState"], "RUNNING", "as it is now");
    assert_eq!(fixture.cloud.admin().boots(&id), Some(2));
    act("RESET").await.refused(409, "InvalidatedRetryToken");
    let other = fixture.launch_with(Some("t"), &launch_body("n2")).await;
    assert_ne!(other.ok().json()["id"], json!(id), "another operation's");
}

#[tokio::test]
async fn etags_guard_changes() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    let target = format!("/20160918/instances/{id}");
    let body = json!({"freeformTags": {"cluster": "c1"}}).to_string();
    let stale = [("if-match", "stale")];
    let put = fixture.try_send("PUT", &target, &stale, &body).await.unwrap();
    put.refused(412, "NoEtagMatch");
    fixture.try_send("DELETE", &target, &stale, "").await.unwrap().refused(412, "NoEtagMatch");
    let etag = fixture.get(&target).await.ok().header("etag").unwrap();
    let put = fixture.try_send("PUT", &target, &[("if-match", &etag)], &body).await.unwrap().ok();
    assert_ne!(put.header("etag").unwrap(), etag);
    assert_eq!(put.json()["freeformTags"], json!({"cluster": "c1"}));
}

#[tokio::test]
async fn a_refused_cluster_is_not_made() {
    let fixture = Fixture::frozen().await;
    let body = json!({"compartmentId": COMPARTMENT, "availabilityDomain": DOMAIN,
        "displayName": "refused", "freeformTags": []});
    let made = fixture.send("POST", "/20160918/computeClusters", &body.to_string()).await;
    made.refused(400, "CannotParseRequest");
    let list = format!("/20160918/computeClusters?compartmentId={COMPARTMENT}");
    assert_eq!(fixture.get(&list).await.ok().json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_with_another_body_is_answered_as_the_settings_say() {
    let token_mismatch = Mismatch { status: 400, code: "InvalidParameter".into() };
    let fixture = Fixture::new(CloudSettings { token_mismatch, ..CloudSettings::default() }).await;
    fixture.launch_with(Some("t1"), &launch_body("n1")).await.ok();
    let changed = fixture.launch_with(Some("t1"), &launch_body("n2")).await;
    changed.refused(400, "InvalidParameter");
    assert_eq!(fixture.cloud.admin().token_mismatches(), 1);
}

#[tokio::test]
async fn an_address_is_free_when_its_instance_has_ended() {
    let fixture = Fixture::frozen().await;
    let mut body = launch_body("n1");
    body["createVnicDetails"] = json!({"subnetId": SUBNET, "privateIp": "10.1.0.17"});
    let first = fixture.launch_with(None, &body).await.ok();
    fixture.launch_with(None, &body).await.refused(400, "InvalidParameter");
    let target = format!("/20160918/instances/{}", first.json()["id"].as_str().unwrap());
    fixture.send("DELETE", &target, "").await.ok();
    fixture.launch_with(None, &body).await.refused(400, "InvalidParameter");
    fixture.advance(5);
    fixture.launch_with(None, &body).await.ok();
}

/// Room for one instance.
fn one(fails_later: bool) -> Capacity {
    let availability_domain = Some(DOMAIN.to_owned());
    Capacity { availability_domain, shape: None, instances: 1, fails_later }
}

#[tokio::test]
async fn room_is_taken_until_the_very_end() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    admin.set_capacity(vec![one(false)]).unwrap();
    let id = fixture.launch("n1").await;
    let full = fixture.launch_with(None, &launch_body("n2")).await.refused(500, "InternalError");
    assert_eq!(full.json()["message"], "Out of host capacity.");
    let mut elsewhere = launch_body("n2");
    elsewhere["availabilityDomain"] = json!("Uocm:PHX-AD-2");
    fixture.launch_with(None, &elsewhere).await.ok();
    let report = json!({"compartmentId": fixture.cloud.credentials().tenancy, "availabilityDomain": DOMAIN,
        "shapeAvailabilities": [{"instanceShape": "VM.Standard2.1"}, {"instanceShape": "VM.Nope"}]});
    let report =
        fixture.send("POST", "/20160918/computeCapacityReports", &report.to_string()).await;
    let rows = report.ok().json()["shapeAvailabilities"].clone();
    assert_eq!(rows[0]["availabilityStatus"], "OUT_OF_HOST_CAPACITY");
    assert_eq!(rows[1]["availabilityStatus"], "HARDWARE_NOT_SUPPORTED");
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    let full = fixture.launch_with(None, &launch_body("n3")).await;
    full.refused(500, "InternalError");
    fixture.advance(5);
    fixture.launch("n3").await;
}

#[tokio::test]
async fn a_launch_beyond_the_room_can_fail_later() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    admin.set_capacity(vec![one(true)]).unwrap();
    let id = fixture.launch("n1").await;
    let doomed = fixture.launch_with(None, &launch_body("n4")).await.ok();
    let work = format!("/20160918/workRequests/{}", doomed.header("opc-work-request-id").unwrap());
    fixture.advance(3);
    assert_eq!(fixture.get(&work).await.ok().json()["status"], "FAILED");
    let errors = fixture.get(&format!("{work}/errors")).await.ok().json();
    assert_eq!(errors[0]["message"], "Out of host capacity.");
    assert_eq!(fixture.state(doomed.json()["id"].as_str().unwrap()).await, "TERMINATED");
    assert_eq!(fixture.get(&format!("{work}/logs")).await.ok().json().as_array().unwrap().len(), 2);
    // One that is going to fail takes no room from one that comes after it.
    fixture.launch("n5").await;
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    admin.set_capacity(vec![Capacity { instances: 2, ..one(true) }]).unwrap();
    let fits = fixture.launch("n6").await;
    fixture.advance(10);
    assert_eq!(fixture.state(&fits).await, "RUNNING");
}

#[tokio::test]
async fn service_limits() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    fixture.launch("n4").await;
    let name = "standard-e5-core-count".to_owned();
    admin
        .set_limit(Limit { name, availability_domain: Some(DOMAIN.to_owned()), value: 3 })
        .unwrap();
    fixture.launch("n5").await;
    let last = fixture.launch("n6").await;
    let refused = fixture.launch_with(None, &launch_body("n7")).await.refused(400, "LimitExceeded");
    assert!(refused.text.contains("standard-e5-core-count"), "{}", refused.text);
    let target = format!(
        "/20190729/services/compute/limits/standard-e5-core-count/resourceAvailability\
         ?compartmentId={COMPARTMENT}&availabilityDomain=Uocm%3APHX-AD-1"
    );
    let left = fixture.get(&target).await.ok().json();
    assert_eq!((&left["used"], &left["available"]), (&json!(3), &json!(0)));
    fixture.send("DELETE", &format!("/20160918/instances/{last}"), "").await.ok();
    assert_eq!(fixture.get(&target).await.ok().json()["used"], 3, "until the very end");
    fixture.advance(5);
    assert_eq!(fixture.get(&target).await.ok().json()["used"], 2);
}

#[tokio::test]
async fn too_many_requests() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    admin
        .set_throttle(vec![Throttle { operation: "*".into(), per_second: 0.0, burst: 2.0 }])
        .unwrap();
    fixture.get(LIST).await.ok();
    fixture.get(LIST).await.ok();
    fixture.get(LIST).await.refused(429, "TooManyRequests");
    admin.set_throttle(vec![]).unwrap();
    fixture.get(LIST).await.ok();
}

#[tokio::test]
async fn faults_happen_as_told() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let body = launch_body("n1").to_string();
    let launch =
        || fixture.try_send("POST", "/20160918/instances", &[("opc-retry-token", "t")], &body);
    admin.add_fault(Rule::once("LaunchInstance", Fault::DropBefore)).unwrap();
    launch().await.unwrap_err();
    assert_eq!(admin.instances().len(), 0, "dropped before the work");
    admin.add_fault(Rule::once("LaunchInstance", Fault::DropAfter)).unwrap();
    launch().await.unwrap_err();
    assert_eq!(admin.instances().len(), 1, "dropped after the work");
    let again = launch().await.unwrap().ok();
    assert_eq!(admin.instances().len(), 1, "the token finds it");
    assert_eq!(again.json()["id"], json!(admin.instances()[0].id));
    admin
        .add_fault(Rule::once("ListInstances", Fault::answer(503, "ServiceUnavailable", "x")))
        .unwrap();
    fixture.get(LIST).await.refused(503, "ServiceUnavailable");
    admin.add_fault(Rule::once("ListInstances", Fault::answer(502, "", "<html>"))).unwrap();
    let html = fixture.get(LIST).await;
    assert_eq!((html.status, html.text.as_str()), (502, "<html>"));
    admin.add_fault(Rule::once("ListInstances", Fault::Delay { millis: 1 })).unwrap();
    fixture.get(LIST).await.ok();
    let later =
        Fault::FailLater { code: "InternalError".into(), message: "Out of host capacity.".into() };
    admin.add_fault(Rule::once("LaunchInstance", later)).unwrap();
    let doomed = fixture.launch("n2").await;
    fixture.advance(3);
    assert_eq!(fixture.state(&doomed).await, "TERMINATED");
    assert_eq!(admin.faults(), []);
    let statuses: Vec<_> = admin.requests().iter().map(|request| request.status).collect();
    assert_eq!(statuses[..3], [None, None, Some(200)]);
    assert_eq!(admin.counts()["LaunchInstance"], 4);
}

#[tokio::test]
async fn who_is_not_known_is_not_let_in() {
    let mut fixture = Fixture::frozen().await;
    let known = fixture.signer.key_id.clone();
    let stranger = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    fixture.signer = Signer::with_key(known, stranger);
    let refused = fixture.get(LIST).await.refused(401, "NotAuthenticated");
    assert!(refused.header("opc-request-id").is_some());
    fixture.signer = Signer::new(fixture.cloud.credentials());
    fixture.get(LIST).await.ok();
    fixture.signer.key_id = fixture.signer.key_id.replace("user.", "user2.");
    fixture.get(LIST).await.refused(401, "NotAuthenticated");
    let bare =
        fixture.http.get(format!("{}{LIST}", fixture.cloud.endpoint())).send().await.unwrap();
    assert_eq!(bare.status(), 401);
}

#[tokio::test]
async fn a_body_that_is_not_signed_is_refused() {
    let fixture = Fixture::frozen().await;
    let (signed, other) = (launch_body("n1").to_string(), launch_body("n2").to_string());
    assert_eq!(signed.len(), other.len());
    let (endpoint, target) = (fixture.cloud.endpoint(), "/20160918/instances");
    let host = endpoint.trim_start_matches("http://");
    let send = async |body: String| {
        let mut request = fixture.http.post(format!("{endpoint}{target}"));
        for (name, value) in fixture.signer.headers("POST", target, host, &signed) {
            request = request.header(name, value);
        }
        let answer = request.body(body).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let (status, text) = send(other).await;
    assert_eq!(status, 401, "{text}");
    assert!(text.contains("NotAuthenticated") && text.contains("x-content-sha256"), "{text}");
    assert_eq!(fixture.cloud.admin().instances().len(), 0);
    assert_eq!(send(signed.clone()).await.0, 200);
}

#[tokio::test]
async fn a_call_that_is_not_simulated_looked_like_something_that_is_gone() {
    let fixture = Fixture::frozen().await;
    for (method, target) in [
        ("GET", "/20160918/volumes/ocid1.volume.oc1.phx.x"),
        ("GET", "/20160918/instances/"),
        ("DELETE", "/20160918/instances"),
    ] {
        let answer = fixture.send(method, target, "").await.refused(501, "NotImplemented");
        assert!(answer.text.contains(&format!("{method} {target}")), "{}", answer.text);
    }
    let gone = fixture.get("/20160918/instances/ocid1.instance.oc1.phx.x").await;
    gone.refused(404, "NotAuthorizedOrNotFound");
}

#[tokio::test]
async fn a_wrong_clock_is_told_the_date() {
    let mut fixture = Fixture::frozen().await;
    fixture.signer.date = Some(SystemTime::now() - Duration::from_mins(6));
    let refused = fixture.get(LIST).await.refused(401, "NotAuthenticated");
    let date = httpdate::parse_http_date(&refused.header("date").unwrap()).unwrap();
    assert!(date + Duration::from_mins(1) > SystemTime::now());
    fixture.signer.date = None;
    fixture.get(LIST).await.ok();
    fixture.cloud.admin().set_skew(3600).unwrap();
    let refused = fixture.get(LIST).await.refused(401, "NotAuthenticated");
    let date = httpdate::parse_http_date(&refused.header("date").unwrap()).unwrap();
    assert!(date > SystemTime::now() + Duration::from_mins(50));
}

#[tokio::test]
async fn images_are_made_and_put_in() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    let make = json!({"compartmentId": COMPARTMENT, "instanceId": id, "displayName": "snap"});
    fixture
        .send("POST", "/20160918/images", &make.to_string())
        .await
        .refused(409, "IncorrectState");
    fixture.advance(10);
    let image = fixture.send("POST", "/20160918/images", &make.to_string()).await.ok().json();
    let mut early = launch_body("n2");
    early["sourceDetails"]["imageId"] = image["id"].clone();
    fixture.launch_with(None, &early).await.refused(409, "IncorrectState");
    assert_eq!(
        (&image["lifecycleState"], &image["baseImageId"]),
        (&json!("PROVISIONING"), &json!(IMAGE))
    );
    fixture.advance(10);
    let snapshot = image["id"].as_str().unwrap();
    let image = fixture.get(&format!("/20160918/images/{snapshot}")).await.ok().json();
    assert_eq!(image["lifecycleState"], "AVAILABLE");
    let newest = format!("/20160918/images?compartmentId={COMPARTMENT}&sortBy=TIMECREATED&limit=1");
    assert_eq!(fixture.get(&newest).await.ok().json()[0]["id"], json!(snapshot));

    let target = format!("/20160918/instances/{id}");
    let replace =
        json!({"sourceDetails": {"sourceType": "image", "imageId": snapshot}}).to_string();
    let put = fixture.send("PUT", &target, &replace).await.ok().json();
    assert_eq!((&put["lifecycleState"], &put["imageId"]), (&json!("STOPPING"), &json!(snapshot)));
    fixture.send("PUT", &target, &replace).await.refused(409, "IncorrectState");
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "STARTING");
    fixture.advance(5);
    assert_eq!(fixture.state(&id).await, "RUNNING");
    assert_eq!(fixture.cloud.admin().boots(&id), Some(2));
    let keys = json!({"metadata": {"user_data": "eA=="}}).to_string();
    fixture.send("PUT", &target, &keys).await.refused(400, "InvalidParameter");
}

#[tokio::test]
async fn pages_are_followed_to_the_end() {
    let fixture =
        Fixture::new(CloudSettings { page_size: 4, speed: 0.0, ..CloudSettings::default() }).await;
    for n in 0..11 {
        fixture.launch(&format!("n{n:02}")).await;
    }
    let mut names = Vec::new();
    let mut target = format!("{LIST}&sortBy=DISPLAYNAME");
    loop {
        let answer = fixture.get(&target).await.ok();
        let rows = answer.json().as_array().unwrap().clone();
        assert!(rows.len() <= 4);
        names.extend(rows.iter().map(|row| row["displayName"].as_str().unwrap().to_owned()));
        let Some(next) = answer.header("opc-next-page") else {
            break;
        };
        let next = escaped(&next);
        target = format!("{LIST}&sortBy=DISPLAYNAME&page={next}");
    }
    let expected: Vec<String> = (0..11).map(|n| format!("n{n:02}")).collect();
    assert_eq!(names, expected);
    let one = fixture.get(&format!("{LIST}&displayName=n07")).await.ok().json();
    assert_eq!(one.as_array().unwrap().len(), 1);
}
