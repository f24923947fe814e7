//! Everything that a journal has to keep, looked at after a restart.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use cloud_sim::{Capacity, Settings};
use serde_json::{Value, json};
use std::path::Path;
use support::{COMPARTMENT, SUBNET, Scene, launch_body};
use tempfile::TempDir;

async fn start(state: &Path) -> Scene {
    let state = Some(state.to_owned());
    Scene::new(Settings { state, speed: 0.0, ..Settings::default() }).await
}

async fn rows(scene: &Scene, target: &str) -> Vec<Value> {
    let target = format!("/20160918/{target}");
    scene.get(&target).await.ok().json().as_array().unwrap().clone()
}

/// Makes one of each thing that a journal has to keep, and gives where each can be got.
async fn one_of_each(scene: &Scene) -> Vec<String> {
    let post = async |what: &str, body: Value| {
        let made = scene.send("POST", &format!("/20160918/{what}"), &body.to_string()).await.ok();
        made.json()["id"].as_str().unwrap().to_owned()
    };
    let (compartment, domain) = (COMPARTMENT, "Uocm:PHX-AD-2");
    let details = json!({"instanceType": "compute", "launchDetails": launch_body("p1")});
    let body = json!({"compartmentId": compartment, "source": "NONE", "instanceDetails": details});
    let configuration = post("instanceConfigurations", body).await;
    let body = json!({
        "compartmentId": compartment,
        "instanceConfigurationId": configuration,
        "placementConfigurations": [{"availabilityDomain": domain, "primarySubnetId": SUBNET}],
        "size": 2,
    });
    let pool = post("instancePools", body).await;
    let body = json!({"compartmentId": compartment, "availabilityDomain": domain});
    let cluster = post("computeClusters", body).await;
    let (up, ended, half) =
        (scene.launch("up").await, scene.launch("ended").await, scene.launch("half").await);
    let ended_volume = format!(
        "bootVolumeAttachments?compartmentId={compartment}\
         &availabilityDomain=Uocm%3APHX-AD-1&instanceId={ended}"
    );
    let volume = rows(scene, &ended_volume).await[0]["bootVolumeId"].clone();
    scene.advance(10);
    let end = format!("/20160918/instances/{ended}?preserveBootVolume=true");
    scene.send("DELETE", &end, "").await.ok();
    scene.advance(10);
    let stop = format!("/20160918/instances/{half}?action=STOP");
    let work = scene.send("POST", &stop, "").await.ok().header("opc-work-request-id");
    let of = |id: &str| format!("vnicAttachments?compartmentId={compartment}&instanceId={id}");
    let vnic = rows(scene, &of(&up)).await[0]["vnicId"].clone();
    let mut all = vec![of(&up), of(&ended), of(&half)];
    all.push(format!("instanceConfigurations/{configuration}"));
    all.push(format!("instancePools/{pool}"));
    all.push(format!("instancePools/{pool}/instances"));
    all.push(format!("computeClusters/{cluster}"));
    all.push(format!("bootVolumes/{}", volume.as_str().unwrap()));
    all.push(format!("vnics/{}", vnic.as_str().unwrap()));
    all.extend(work.map(|work| format!("workRequests/{work}")));
    all.extend([&up, &ended, &half].map(|id| format!("instances/{id}")));
    all
}

#[tokio::test]
async fn what_nobody_looked_at_after_a_restart_could_be_gone() {
    let state = TempDir::new().unwrap();
    let mut scene = start(state.path()).await;
    let targets = one_of_each(&scene).await;
    let mut before = Vec::new();
    for target in &targets {
        let answer = scene.get(&format!("/20160918/{target}")).await.ok();
        before.push((answer.header("etag"), answer.json()));
    }
    // The first start reads the changes, the second what the first has written anew.
    for restart in 1..=2 {
        drop(scene);
        scene = start(state.path()).await;
        for (target, before) in targets.iter().zip(&before) {
            let answer = scene.get(&format!("/20160918/{target}")).await.ok();
            assert_eq!(&(answer.header("etag"), answer.json()), before, "{restart}: {target}");
        }
    }
}

#[tokio::test]
async fn a_launch_that_was_going_to_fail_still_does_after_a_restart() {
    let state = TempDir::new().unwrap();
    let scene = start(state.path()).await;
    let full = Capacity { availability_domain: None, shape: None, instances: 0, fails_later: true };
    scene.cloud.admin().set_capacity(vec![full]).unwrap();
    let doomed = scene.launch_with(Some("t1"), &launch_body("n1")).await.ok();
    let id = doomed.json()["id"].as_str().unwrap().to_owned();
    drop(scene);
    let scene = start(state.path()).await;
    assert_eq!(scene.state(&id).await, "PROVISIONING");
    scene.advance(10);
    assert_eq!(scene.state(&id).await, "TERMINATED");
    let target = format!("vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    assert!(rows(&scene, &target).await.is_empty(), "it never had one");
    let work = format!("workRequests/{}", doomed.header("opc-work-request-id").unwrap());
    let errors = rows(&scene, &format!("{work}/errors")).await;
    assert_eq!(errors[0]["message"], "Out of host capacity.");
    let status = scene.get(&format!("/20160918/{work}")).await.ok().json()["status"].clone();
    assert_eq!(status, "FAILED");
    let again = scene.launch_with(Some("t1"), &launch_body("n1")).await;
    again.refused(409, "InvalidatedRetryToken");
}

#[tokio::test]
async fn a_token_could_be_lost_when_the_journal_was_written_anew() {
    let state = TempDir::new().unwrap();
    let scene = start(state.path()).await;
    let body = launch_body("n1");
    let first = scene.launch_with(Some("t1"), &body).await.ok().json();
    let target = format!("/20160918/instances/{}", first["id"].as_str().unwrap());
    let journal = state.path().join("journal.jsonl");
    let length = || std::fs::metadata(&journal).unwrap().len();
    let (mut longest, note) = (0, "x".repeat(30_000));
    while length() >= longest {
        longest = length();
        let update = json!({"metadata": {"note": note}}).to_string();
        scene.send("PUT", &target, &update).await.ok();
    }
    drop(scene);
    let scene = start(state.path()).await;
    assert_eq!(scene.launch_with(Some("t1"), &body).await.ok().json()["id"], first["id"]);
    assert_eq!(scene.cloud.admin().instances().len(), 1);
}
