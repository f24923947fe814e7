//! Instances from launch to the end, on a clock that the test moves.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use serde_json::json;
use support::{COMPARTMENT, Scene, launch_body};

#[tokio::test]
async fn an_instance_lives() {
    let scene = Scene::frozen().await;
    let answer = scene.launch_with(None, &launch_body("n1")).await.ok();
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let work = answer.header("opc-work-request-id").unwrap();
    let work = format!("/20160918/workRequests/{work}");
    assert_eq!(scene.state(&id).await, "PROVISIONING");
    assert_eq!(scene.get(&work).await.ok().json()["status"], "IN_PROGRESS");
    scene.advance(10);
    assert_eq!(scene.state(&id).await, "RUNNING");
    assert_eq!(scene.get(&work).await.ok().json()["status"], "SUCCEEDED");
    let instance = format!("/20160918/instances/{id}");
    scene.send("DELETE", &instance, "").await.ok();
    assert_eq!(scene.state(&id).await, "TERMINATING");
    scene.send("DELETE", &instance, "").await.ok();
    scene.advance(5);
    assert_eq!(scene.state(&id).await, "TERMINATED");
    scene.send("DELETE", &instance, "").await.refused(404, "NotAuthorizedOrNotFound");
    let list = format!("/20160918/instances?compartmentId={COMPARTMENT}");
    assert_eq!(scene.get(&list).await.ok().json().as_array().unwrap().len(), 1);
    scene.advance(3600);
    scene.get(&instance).await.refused(404, "NotAuthorizedOrNotFound");
    assert_eq!(scene.get(&list).await.ok().json(), json!([]));
}

#[tokio::test]
async fn a_vnic_is_late() {
    let scene = Scene::frozen().await;
    let id = scene.launch("n1").await;
    let attachments =
        format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    assert_eq!(scene.get(&attachments).await.ok().json(), json!([]));
    scene.advance(1);
    let early = scene.get(&attachments).await.ok().json();
    assert_eq!(
        (&early[0]["lifecycleState"], &early[0]["vnicId"]),
        (&json!("ATTACHING"), &json!(null))
    );
    scene.advance(1);
    let there = scene.get(&attachments).await.ok().json();
    assert_eq!(there[0]["lifecycleState"], "ATTACHED");
    let vnic = there[0]["vnicId"].as_str().unwrap();
    let vnic = scene.get(&format!("/20160918/vnics/{vnic}")).await.ok().json();
    assert_eq!(vnic["privateIp"], "10.1.0.2");
    let ips = format!("/20160918/privateIps?subnetId={}", support::SUBNET);
    assert_eq!(scene.get(&ips).await.ok().json()[0]["vnicId"], there[0]["vnicId"]);
}

#[tokio::test]
async fn actions_go_through_their_states() {
    let scene = Scene::frozen().await;
    let id = scene.launch("n1").await;
    let act = |action: &str| format!("/20160918/instances/{id}?action={action}");
    scene.send("POST", &act("SOFTRESET"), "").await.refused(409, "IncorrectState");
    scene.advance(10);
    scene.send("POST", &act("SOFTRESET"), "").await.ok();
    assert_eq!(scene.state(&id).await, "STOPPING");
    scene.send("POST", &act("RESET"), "").await.refused(409, "IncorrectState");
    scene.advance(5);
    assert_eq!(scene.state(&id).await, "STARTING");
    scene.advance(5);
    assert_eq!(scene.state(&id).await, "RUNNING");
    assert_eq!(scene.cloud.admin().boots(&id), Some(2));
    scene.send("POST", &act("STOP"), "").await.ok();
    scene.advance(5);
    assert_eq!(scene.state(&id).await, "STOPPED");
    scene.send("POST", &act("START"), "").await.ok();
    assert_eq!(scene.state(&id).await, "STARTING");
    scene.advance(5);
    assert_eq!(scene.state(&id).await, "RUNNING");
    scene.send("POST", &act("EXPLODE"), "").await.refused(400, "InvalidParameter");
}
