//! Everything that a journal has to keep, looked at after a restart.

use crate::support::{COMPARTMENT, SUBNET, Scene, launch_body};
use cloud_sim::Capacity;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Makes things that stay as they are, and gives where each can be got.
async fn things(scene: &Scene) -> Vec<String> {
    let post = async |what: &str, body: Value| {
        let made = scene.send("POST", &format!("/20160918/{what}"), &body.to_string()).await.ok();
        format!("{what}/{}", made.json()["id"].as_str().unwrap())
    };
    let domain = "Uocm:PHX-AD-2";
    let details = json!({"instanceType": "compute", "launchDetails": launch_body("p1")});
    let body = json!({"compartmentId": COMPARTMENT, "source": "NONE", "instanceDetails": details});
    let configuration = post("instanceConfigurations", body).await;
    let body = json!({
        "compartmentId": COMPARTMENT,
        "instanceConfigurationId": configuration.rsplit('/').next(),
        "placementConfigurations": [{"availabilityDomain": domain, "primarySubnetId": SUBNET}],
        "size": 2,
    });
    let pool = post("instancePools", body).await;
    let body = json!({"compartmentId": COMPARTMENT, "availabilityDomain": domain});
    let cluster = post("computeClusters", body).await;
    vec![format!("{pool}/instances"), pool, configuration, cluster]
}

/// Launches one instance for each way that it and its VNIC can be in, and gives where to get them.
async fn lives(scene: &Scene) -> Vec<String> {
    let (up, ended, stopping) =
        (scene.launch("up").await, scene.launch("ended").await, scene.launch("stopping").await);
    let volume = format!(
        "bootVolumeAttachments?compartmentId={COMPARTMENT}\
         &availabilityDomain=Uocm%3APHX-AD-1&instanceId={ended}"
    );
    let volume = scene.rows(&volume).await[0]["bootVolumeId"].clone();
    scene.advance(10);
    let end = format!("/20160918/instances/{ended}?preserveBootVolume=true");
    scene.send("DELETE", &end, "").await.ok();
    scene.advance(10);
    let attaching = scene.launch("attaching").await;
    scene.advance(1);
    let stop = format!("/20160918/instances/{stopping}?action=STOP");
    let work = scene.send("POST", &stop, "").await.ok().header("opc-work-request-id");
    let all = [&up, &ended, &stopping, &attaching];
    let of = |id: &String| format!("vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    let cards = all.map(of);
    let mut states = Vec::new();
    for card in &cards {
        states.push(scene.rows(card).await[0]["lifecycleState"].clone());
    }
    assert_eq!(states, ["ATTACHED", "DETACHED", "ATTACHED", "ATTACHING"]);
    let vnic = scene.rows(&of(&up)).await[0]["vnicId"].clone();
    let mut targets = vec![format!("vnics/{}", vnic.as_str().unwrap())];
    targets.push(format!("bootVolumes/{}", volume.as_str().unwrap()));
    targets.push(format!("workRequests/{}", work.unwrap()));
    targets.extend(all.map(|id| format!("instances/{id}")));
    targets.into_iter().chain(cards).collect()
}

#[tokio::test]
async fn what_nobody_looked_at_after_a_restart_could_be_gone() {
    let state = TempDir::new().unwrap();
    let mut scene = Scene::on(state.path()).await;
    let mut targets = things(&scene).await;
    targets.extend(lives(&scene).await);
    let mut before = Vec::new();
    for target in &targets {
        let answer = scene.get(&format!("/20160918/{target}")).await.ok();
        before.push((answer.header("etag"), answer.json()));
    }
    // The first start reads the changes, the second what the first has written anew.
    for restart in 1..=2 {
        drop(scene);
        scene = Scene::on(state.path()).await;
        for (target, before) in targets.iter().zip(&before) {
            let answer = scene.get(&format!("/20160918/{target}")).await.ok();
            assert_eq!(&(answer.header("etag"), answer.json()), before, "{restart}: {target}");
        }
    }
}

#[tokio::test]
async fn a_launch_that_was_going_to_fail_still_does_after_a_restart() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let full = Capacity { availability_domain: None, shape: None, instances: 0, fails_later: true };
    scene.cloud.admin().set_capacity(vec![full]).unwrap();
    let doomed = scene.launch_with(Some("t1"), &launch_body("n1")).await.ok();
    let id = doomed.json()["id"].as_str().unwrap().to_owned();
    drop(scene);
    let scene = Scene::on(state.path()).await;
    assert_eq!(scene.state(&id).await, "PROVISIONING");
    scene.advance(10);
    assert_eq!(scene.state(&id).await, "TERMINATED");
    let target = format!("vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    assert!(scene.rows(&target).await.is_empty(), "it never had one");
    let work = format!("workRequests/{}", doomed.header("opc-work-request-id").unwrap());
    let errors = scene.rows(&format!("{work}/errors")).await;
    assert_eq!(errors[0]["message"], "Out of host capacity.");
    let status = scene.get(&format!("/20160918/{work}")).await.ok().json()["status"].clone();
    assert_eq!(status, "FAILED");
    let again = scene.launch_with(Some("t1"), &launch_body("n1")).await;
    again.refused(409, "InvalidatedRetryToken");
}

#[tokio::test]
async fn a_token_could_be_lost_when_the_journal_was_written_anew() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
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
    let scene = Scene::on(state.path()).await;
    assert_eq!(scene.launch_with(Some("t1"), &body).await.ok().json()["id"], first["id"]);
    assert_eq!(scene.cloud.admin().instances().len(), 1);
}
