//! The admin side over HTTP, and what it tells of the requests that came in.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use cloud_sim::{Fault, Rule};
use serde_json::{Value, json};
use support::{COMPARTMENT, Scene, eventually, launch_body};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn requests(scene: &Scene, query: &str) -> Vec<Value> {
    let url = format!("{}/admin/requests{query}", scene.cloud.endpoint());
    let text = scene.http.get(url).send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_record_did_not_say_which_rules_had_happened() {
    let scene = Scene::frozen().await;
    let admin = scene.cloud.admin();
    let later = Fault::FailLater { code: "x".into(), message: "y".into() };
    admin.add_fault(Rule::once("GetImage", Fault::DropBefore)).unwrap();
    admin.add_fault(Rule::once("LaunchInstance", Fault::Delay { millis: 1 })).unwrap();
    admin.add_fault(Rule::once("LaunchInstance", later)).unwrap();
    scene.launch("n1").await;
    scene.launch("n2").await;
    scene.try_send("GET", "/20160918/images/x", &[], "").await.unwrap_err();
    let rules: Vec<_> =
        requests(&scene, "").await.iter().map(|row| row["faults"].clone()).collect();
    assert_eq!(rules, [json!([2, 3]), json!([]), json!([1])]);
}

#[tokio::test]
async fn a_body_that_was_too_long_was_dropped_and_not_recorded() {
    let scene = Scene::frozen().await;
    let mut body = launch_body("n1");
    body["metadata"] = json!({"x": "y".repeat(5 << 20)});
    scene.launch_with(None, &body).await.refused(413, "RequestEntityTooLarge");
    let url = format!("{}/admin/faults", scene.cloud.endpoint());
    let put = scene.http.post(url).body(" ".repeat(5 << 20)).send().await.unwrap();
    assert_eq!(put.status(), 413);
    let [recorded] = &scene.cloud.admin().requests()[..] else {
        panic!("one request was recorded");
    };
    assert_eq!((recorded.operation.as_str(), recorded.status), ("LaunchInstance", Some(413)));
    scene.get(&format!("/20160918/instances?compartmentId={COMPARTMENT}")).await.ok();
}

#[tokio::test]
async fn a_body_that_was_cut_short_was_not_recorded() {
    let scene = Scene::frozen().await;
    let address = scene.cloud.endpoint().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /20160918/instances HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let admin = scene.cloud.admin();
    eventually("it is recorded", || admin.requests().len() == 1).await;
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert_eq!(answer, b"");
    let gone = || {
        admin.clear_requests();
        admin.most_in_flight() == 0
    };
    eventually("it is no longer under way", gone).await;
}
