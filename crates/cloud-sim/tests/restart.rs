//! What a cloud remembers when it is started again on the same state.

use crate::support::{COMPARTMENT, IMAGE, SUBNET, Scene, escaped, launch_body};
use cloud_sim::{Settings, Timing};
use serde_json::{Value, json};
use std::io::Write as _;
use tempfile::TempDir;

async fn images(scene: &Scene) -> Vec<String> {
    let rows = scene.rows(&format!("images?compartmentId={COMPARTMENT}")).await;
    rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_image_that_was_being_made_is_finished_after_a_restart() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let id = scene.launch("n1").await;
    scene.advance(10);
    let body = json!({"compartmentId": COMPARTMENT, "instanceId": id}).to_string();
    let made = scene.send("POST", "/20160918/images", &body).await.ok();
    let work = made.header("opc-work-request-id").unwrap();
    drop(scene);
    let scene = Scene::on(state.path()).await;
    assert_eq!(scene.state(&id).await, "CREATING_IMAGE");
    scene.advance(10);
    assert_eq!(scene.state(&id).await, "RUNNING");
    let image = format!("/20160918/images/{}", made.json()["id"].as_str().unwrap());
    assert_eq!(scene.get(&image).await.ok().json()["lifecycleState"], "AVAILABLE");
    let work = scene.get(&format!("/20160918/workRequests/{work}")).await.ok().json();
    assert_eq!(work["status"], "SUCCEEDED");
    assert_eq!(images(&scene).await[0], made.json()["id"].as_str().unwrap(), "newest first");
}

#[tokio::test]
async fn what_was_deleted_does_not_come_back_at_the_second_restart() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    scene.send("DELETE", &format!("/20160918/images/{IMAGE}"), "").await.ok();
    drop(scene);
    for restart in 1..=3 {
        let scene = Scene::on(state.path()).await;
        assert!(!images(&scene).await.contains(&IMAGE.to_owned()), "restart {restart}");
    }
}

#[tokio::test]
async fn changed_settings_hold_on_an_old_state() {
    let state = TempDir::new().unwrap();
    drop(Scene::on(state.path()).await);
    let mut settings = Settings { state: Some(state.path().to_owned()), ..Settings::default() };
    settings.images.truncate(2);
    settings.images[0].name = "renamed".to_owned();
    let scene = Scene::new(settings).await;
    let rows = scene.rows(&format!("images?compartmentId={COMPARTMENT}&sortOrder=ASC")).await;
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["displayName"], "renamed");
}

#[tokio::test]
async fn numbers_are_not_given_twice_over_restarts() {
    let state = TempDir::new().unwrap();
    for _ in 0..3 {
        let scene = Scene::on(state.path()).await;
        let id = scene.launch("n1").await;
        scene.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
        scene.advance(5);
        scene.advance(3600);
        assert_eq!(scene.cloud.admin().instances().len(), 0);
    }
    let scene = Scene::on(state.path()).await;
    let mut seen = Vec::new();
    let mut target = format!("workRequests?compartmentId={COMPARTMENT}&limit=1");
    loop {
        let answer = scene.get(&format!("/20160918/{target}")).await.ok();
        seen.extend(answer.json().as_array().unwrap().clone());
        let Some(next) = answer.header("opc-next-page") else {
            break;
        };
        let next = escaped(&next);
        target = format!("workRequests?compartmentId={COMPARTMENT}&limit=1&page={next}");
    }
    assert_eq!(seen.len(), 6, "a launch and a termination of each run");
}

#[tokio::test]
async fn a_last_line_that_was_cut_is_left_out() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let first = scene.launch("n1").await;
    drop(scene);
    let journal = state.path().join("journal.jsonl");
    // Cut inside the name, and inside a character of it.
    for cut in [&b"{\"table\":\"instances\",\"id\":\"x"[..], &b"{\"id\":\"\xc3"[..]] {
        let mut file = std::fs::OpenOptions::new().append(true).open(&journal).unwrap();
        file.write_all(cut).unwrap();
        let scene = Scene::on(state.path()).await;
        let ids: Vec<_> = scene.cloud.admin().instances().into_iter().map(|one| one.id).collect();
        assert_eq!(ids, [first.as_str()]);
    }
    let mut text = b"{\n".to_vec();
    text.extend(std::fs::read(&journal).unwrap());
    std::fs::write(&journal, text).unwrap();
    let settings = Settings { state: Some(state.path().to_owned()), ..Settings::default() };
    let refused = cloud_sim::Cloud::start(settings).await.unwrap_err();
    assert!(refused.to_string().contains("line 1 is not a record"), "{refused}");
}

#[tokio::test]
async fn a_launch_and_its_token_are_written_together() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let body = launch_body("n1");
    let first = scene.launch_with(Some("t1"), &body).await.ok().json();
    let text = std::fs::read_to_string(state.path().join("journal.jsonl")).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    let mut tables: Vec<&Value> =
        line.as_array().unwrap().iter().map(|row| &row["table"]).collect();
    tables.sort_by_key(ToString::to_string);
    assert_eq!(tables, ["boot_volumes", "instances", "tokens", "work_requests"]);
    drop(scene);
    let scene = Scene::on(state.path()).await;
    assert_eq!(scene.launch_with(Some("t1"), &body).await.ok().json()["id"], first["id"]);
}

/// Where to cut a journal: around each of its rows, and here and there inside them.
fn cuts(text: &[u8]) -> Vec<usize> {
    let row = b"{\"table\"";
    let begins = |at: &usize| text[*at..].starts_with(row);
    let around = (1..text.len()).filter(begins).flat_map(|at| [at - 1, at, at + 1]);
    let mut cuts: Vec<usize> = around.chain((0..=text.len()).step_by(331)).collect();
    cuts.extend([text.len() - 2, text.len() - 1, text.len()]);
    cuts
}

#[tokio::test]
async fn a_write_that_was_cut_short_left_a_machine_without_its_token() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let body = launch_body("n1");
    scene.launch_with(Some("t1"), &body).await.ok();
    drop(scene);
    let journal = state.path().join("journal.jsonl");
    let text = std::fs::read(&journal).unwrap();
    let (mut with, mut without) = (0, 0);
    for cut in cuts(&text) {
        std::fs::write(&journal, &text[..cut]).unwrap();
        let scene = Scene::on(state.path()).await;
        let admin = scene.cloud.admin();
        let left: Vec<String> = admin.instances().into_iter().map(|one| one.id).collect();
        let again = scene.launch_with(Some("t1"), &body).await.ok().json();
        assert_eq!(admin.instances().len(), 1, "cut at {cut} of {}: launched twice", text.len());
        if let Some(left) = left.first() {
            assert_eq!(again["id"], left.as_str(), "cut at {cut}");
            with += 1;
        } else {
            without += 1;
        }
    }
    assert!(with > 0 && without > 0, "{with} with, {without} without");
}

#[tokio::test]
async fn a_journal_with_a_row_per_line_is_still_read() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let body = launch_body("n1");
    let first = scene.launch_with(Some("t1"), &body).await.ok().json();
    drop(scene);
    let journal = state.path().join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let lines: Vec<String> = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(&journal, lines.concat()).unwrap();
    let scene = Scene::on(state.path()).await;
    assert_eq!(scene.launch_with(Some("t1"), &body).await.ok().json()["id"], first["id"]);
}

#[tokio::test]
async fn plans_labels_and_addresses_outlive_a_restart() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let mut body = launch_body("n1");
    body["createVnicDetails"] =
        json!({"subnetId": SUBNET, "hostnameLabel": "n1", "privateIp": "10.1.0.17"});
    let first = scene.launch_with(None, &body).await.ok();
    drop(scene);
    let scene = Scene::on(state.path()).await;
    let mut other = launch_body("n2");
    other["createVnicDetails"] = json!({"subnetId": SUBNET, "hostnameLabel": "n1"});
    assert_eq!(scene.fate(&other).await, "FAILED");
    body["createVnicDetails"]["hostnameLabel"] = json!("n2");
    scene.launch_with(None, &body).await.refused(400, "InvalidParameter");
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(scene.state(&id).await, "RUNNING");
    let target = format!("vnicAttachments?compartmentId={COMPARTMENT}&instanceId={id}");
    let attached = scene.rows(&target).await;
    assert_eq!(attached[0]["lifecycleState"], "ATTACHED");
}

#[tokio::test]
async fn what_never_happens_does_not_happen_at_once() {
    let state = TempDir::new().unwrap();
    for provision in [f64::INFINITY, 1e300] {
        let timing = Timing { provision, ..Timing::default() };
        let settings =
            Settings { timing, state: Some(state.path().to_owned()), ..Settings::quick() };
        let scene = Scene::new(settings.clone()).await;
        let id = scene.launch("n1").await;
        scene.advance(365 * 24 * 3600);
        assert_eq!(scene.state(&id).await, "PROVISIONING");
        drop(scene);
        let scene = Scene::new(settings).await;
        scene.advance(365 * 24 * 3600);
        assert_eq!(scene.state(&id).await, "PROVISIONING");
    }
    for provision in [-1.0, f64::NAN] {
        let timing = Timing { provision, ..Timing::default() };
        let settings = Settings { timing, ..Settings::default() };
        let refused = cloud_sim::Cloud::start(settings).await.unwrap_err();
        assert!(refused.to_string().starts_with("timing provision"), "{refused}");
    }
}

#[tokio::test]
async fn what_is_used_of_a_limit_outlives_a_restart() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    scene.launch("n1").await;
    drop(scene);
    let scene = Scene::on(state.path()).await;
    let target = format!(
        "/20190729/services/compute/limits/standard-e5-core-count/resourceAvailability\
         ?compartmentId={COMPARTMENT}&availabilityDomain=Uocm%3APHX-AD-1"
    );
    assert_eq!(scene.get(&target).await.ok().json()["used"], 1);
}

#[tokio::test]
async fn the_journal_grew_without_end_while_the_cloud_ran() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    let id = scene.launch("n1").await;
    scene.send("DELETE", &format!("/20160918/images/{IMAGE}"), "").await.ok();
    let journal = state.path().join("journal.jsonl");
    let length = || std::fs::metadata(&journal).unwrap().len();
    let target = format!("/20160918/instances/{id}");
    let note = "x".repeat(30_000);
    let mut longest = 0;
    for n in 0..100 {
        let body = json!({"metadata": {"note": note}, "displayName": format!("n{n}")});
        scene.send("PUT", &target, &body.to_string()).await.ok();
        longest = longest.max(length());
    }
    assert!(longest < 2 << 20, "{longest} bytes for one instance and three megabytes of changes");
    drop(scene);
    let scene = Scene::on(state.path()).await;
    let all = scene.cloud.admin().instances();
    assert_eq!(all.iter().map(|one| one.display_name.as_str()).collect::<Vec<_>>(), ["n99"]);
    assert!(!images(&scene).await.contains(&IMAGE.to_owned()), "what is gone stays gone");
}

#[tokio::test]
async fn a_record_that_could_not_be_read_was_deleted_at_the_start() {
    let state = TempDir::new().unwrap();
    let scene = Scene::on(state.path()).await;
    scene.launch("n1").await;
    drop(scene);
    let journal = state.path().join("journal.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(&journal).unwrap();
    let line = "{\"table\":\"instances\",\"id\":\"x\",\"now\":{\"of\":\"another version\"}}\n";
    file.write_all(line.as_bytes()).unwrap();
    let before = std::fs::read_to_string(&journal).unwrap();
    let settings = Settings { state: Some(state.path().to_owned()), ..Settings::default() };
    let refused = cloud_sim::Cloud::start(settings).await.unwrap_err();
    let line = format!("line {} is not a record", before.lines().count());
    assert!(refused.to_string().contains(&line), "{refused}");
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), before);
}
