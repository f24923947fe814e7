//! Launches and lists that cannot be: the fields of a body, and the filters of a query.

use crate::support::{COMPARTMENT, Fixture, launch_body};
use cloud_sim::{CloudSettings, Image};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

const PARSE: (u16, &str) = (400, "CannotParseRequest");
const INVALID: (u16, &str) = (400, "InvalidParameter");
const MISSING: (u16, &str) = (400, "MissingParameter");
const RELATED: (u16, &str) = (400, "RelatedResourceNotAuthorizedOrNotFound");

/// Where in the body, what instead, and how it is refused.
const REFUSED: &[(&str, &str, (u16, &str))] = &[
    ("/compartmentId", r#""nope""#, (404, "NotAuthorizedOrNotFound")),
    ("/availabilityDomain", r#""AD-9""#, INVALID),
    ("/shape", r#""VM.Nope""#, INVALID),
    ("/shape", "null", MISSING),
    ("/shape", "7", PARSE),
    ("/shapeConfig", "null", MISSING),
    ("/shapeConfig/ocpus", "1000", INVALID),
    ("/shapeConfig/ocpus", "9", INVALID),
    ("/shapeConfig/memoryInGBs", "65", INVALID),
    ("/sourceDetails", "null", MISSING),
    ("/sourceDetails/imageId", r#""x""#, RELATED),
    ("/sourceDetails/bootVolumeSizeInGBs", r#""60""#, PARSE),
    ("/sourceDetails/bootVolumeSizeInGBs", "49", INVALID),
    ("/createVnicDetails/subnetId", r#""x""#, RELATED),
    ("/createVnicDetails/privateIp", r#""192.168.0.1""#, INVALID),
    ("/createVnicDetails/hostnameLabel", r#""a_b""#, INVALID),
    ("/createVnicDetails/assignPublicIp", "true", INVALID),
    ("/createVnicDetails/assignPublicIp", r#""no""#, PARSE),
    ("/createVnicDetails/nsgIds", r#""x""#, PARSE),
    ("/createVnicDetails/nsgIds", "[7]", PARSE),
    ("/createVnicDetails/nsgIds", r#"["ocid1.subnet.oc1.phx.aaaasub"]"#, RELATED),
    ("/faultDomain", r#""FAULT-DOMAIN-4""#, INVALID),
    ("/computeClusterId", r#""x""#, RELATED),
    ("/metadata", r#"{"user_data": "%%"}"#, INVALID),
    ("/metadata", r#"{"ssh_authorized_keys": "ssh-rsa AAAA me\n"}"#, INVALID),
    ("/freeformTags", "[]", PARSE),
    ("/freeformTags", r#"{"a": 7}"#, PARSE),
    ("/definedTags", r#"{"a": "b"}"#, PARSE),
    ("/platformConfig", r#""x""#, PARSE),
];

/// A body with something else in one place.
fn with(place: &str, value: Value) -> Value {
    let mut body = launch_body("n1");
    let inside = place.split('/').skip(1).fold(&mut body, |inside, name| &mut inside[name]);
    *inside = value;
    body
}

#[tokio::test]
async fn launches_that_cannot_be() {
    let fixture = Fixture::frozen().await;
    for (place, value, (status, code)) in REFUSED {
        let body = with(place, serde_json::from_str(value).unwrap());
        let answer = fixture.launch_with(None, &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (*status, *code), "{place}: {value}");
    }
    let long = with("/metadata", json!({"x": "y".repeat(32_001)}));
    fixture.launch_with(None, &long).await.refused(400, "InvalidParameter");
    let garbage = fixture.send("POST", "/20160918/instances", "{").await;
    garbage.refused(400, "CannotParseRequest");
    assert_eq!(fixture.cloud.admin().instances().len(), 0);
    let work = format!("/20160918/workRequests?compartmentId={COMPARTMENT}");
    assert_eq!(fixture.get(&work).await.ok().json(), json!([]), "no work is left open");
    let id = fixture.launch("n1").await;
    let address = fixture.cloud.admin().address(&id).unwrap().to_string();
    assert_eq!(address, "10.1.0.2", "no address is left taken");
}

/// True if all that was said is in what is shown, which may have more.
fn is_shown(said: &Value, shown: &Value) -> bool {
    match (said, shown) {
        (Value::Object(said), Value::Object(shown)) => said
            .iter()
            .all(|(name, value)| shown.get(name).is_some_and(|shown| is_shown(value, shown))),
        (said, shown) => said == shown,
    }
}

#[tokio::test]
async fn an_instance_shows_what_its_launch_said() {
    let fixture = Fixture::frozen().await;
    let mut body = launch_body("n1");
    let more = json!({
        "faultDomain": "FAULT-DOMAIN-2",
        "freeformTags": {"cluster": "c1", "type": "compute"},
        "definedTags": {"Operations": {"CostCenter": "42"}},
        "metadata": {"user_data": "IyEvYmluL3No", "ssh_authorized_keys": "ssh-ed25519 AAAA me"},
        "extendedMetadata": {"site": {"rack": 7}},
        "agentConfig": {"isMonitoringDisabled": true},
        "availabilityConfig": {"recoveryAction": "STOP_INSTANCE"},
        "instanceOptions": {"areLegacyImdsEndpointsDisabled": true},
        "launchOptions": {"networkType": "VFIO"},
        "platformConfig": {"type": "AMD_VM"},
        "preemptibleInstanceConfig": {"preemptionAction": {"type": "TERMINATE", "preserveBootVolume": false}},
        "shapeConfig": {"ocpus": 2.0, "memoryInGBs": 16.0, "baselineOcpuUtilization": "BASELINE_1_2"},
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let launched = fixture.launch_with(None, &body).await.ok().json();
    let target = format!("/20160918/instances/{}", launched["id"].as_str().unwrap());
    let got = fixture.get(&target).await.ok().json();
    for (name, said) in body.as_object().unwrap() {
        if name == "createVnicDetails" {
            continue;
        }
        for shown in [&launched, &got] {
            assert!(is_shown(said, &shown[name]), "{name}: {said} became {}", shown[name]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_on_many_connections_makes_one_instance() {
    let fixture =
        Arc::new(Fixture::new(CloudSettings { threads: 2, ..CloudSettings::default() }).await);
    for round in 0..10 {
        let mut launches = JoinSet::new();
        for _ in 0..16 {
            let fixture = Arc::clone(&fixture);
            launches.spawn(async move {
                let token = format!("t{round}");
                let answer = fixture.launch_with(Some(&token), &launch_body("n1")).await.ok();
                answer.json()["id"].to_string()
            });
        }
        let ids: BTreeSet<String> = launches.join_all().await.into_iter().collect();
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
    assert_eq!(fixture.cloud.admin().instances().len(), 10);
}

#[tokio::test]
async fn filters_that_nothing_can_meet_are_refused() {
    let fixture = Fixture::frozen().await;
    fixture.launch("n1").await;
    for (list, filter) in [
        ("instances", "lifecycleState=RUNING"),
        ("instances", "availabilityDomain=PHX-AD-1"),
        ("instances", "sortBy=NAME"),
        ("images", "sortBy=NAME"),
        ("images", "lifecycleState=READY"),
    ] {
        let target = format!("/20160918/{list}?compartmentId={COMPARTMENT}&{filter}");
        fixture.get(&target).await.refused(400, "InvalidParameter");
    }
    let list = format!("/20160918/instances?compartmentId={COMPARTMENT}");
    for (filter, expected) in [
        ("lifecycleState=PROVISIONING", 1),
        ("lifecycleState=MOVING", 0),
        ("capacityReservationId=x", 0),
    ] {
        let rows = fixture.get(&format!("{list}&{filter}")).await.ok().json();
        assert_eq!(rows.as_array().unwrap().len(), expected, "{filter}");
    }
}

#[tokio::test]
async fn an_update_of_the_shape_is_refused() {
    let fixture = Fixture::frozen().await;
    let target = format!("/20160918/instances/{}", fixture.launch("n1").await);
    let before = fixture.get(&target).await.ok().json();
    for body in [
        json!({"shape": "VM.Standard2.1"}),
        json!({"shapeConfig": {"ocpus": 2}}),
        json!({"displayName": "n2", "faultDomain": "FAULT-DOMAIN-2"}),
        json!({"metadata": {"note": "y".repeat(32_001)}}),
    ] {
        let put = fixture.send("PUT", &target, &body.to_string()).await;
        put.refused(400, "InvalidParameter");
    }
    assert_eq!(fixture.get(&target).await.ok().json(), before);
    fixture.send("PUT", &target, r#"{"displayName": "n2", "shape": null}"#).await.ok();
}

#[tokio::test]
async fn a_boot_volume_is_not_replaced_by_one_of_another_system() {
    let mut settings = CloudSettings { speed: 0.0, ..CloudSettings::default() };
    for (id, system) in [("ubuntu", "Canonical Ubuntu"), ("win", "Windows"), ("win2", "Windows")] {
        let id = format!("ocid1.image.oc1.phx.{id}");
        let image = Image { id, operating_system: system.to_owned(), ..settings.images[0].clone() };
        settings.images.push(image);
    }
    let fixture = Fixture::new(settings).await;
    let replaced = async |from: &str, to: &str| {
        let mut body = launch_body("n1");
        body["sourceDetails"]["imageId"] = json!(format!("ocid1.image.oc1.phx.{from}"));
        let launched = fixture.launch_with(None, &body).await.ok().json();
        fixture.advance(10);
        let source = json!({"sourceType": "image", "imageId": format!("ocid1.image.oc1.phx.{to}")});
        let target = format!("/20160918/instances/{}", launched["id"].as_str().unwrap());
        fixture.send("PUT", &target, &json!({"sourceDetails": source}).to_string()).await
    };
    replaced("img000", "img001").await.ok();
    replaced("img000", "ubuntu").await.refused(400, "InvalidParameter");
    replaced("ubuntu", "img000").await.refused(400, "InvalidParameter");
    replaced("win", "win2").await.refused(400, "InvalidParameter");
}
