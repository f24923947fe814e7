//! The admin side over HTTP, and what it tells of the requests that came in.

use crate::support::{COMPARTMENT, Fixture, eventually, launch_body};
use cloud_sim::{Fault, Rule};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn the_admin_side_speaks_http() {
    let fixture = Fixture::frozen().await;
    let url = |path: &str| format!("{}/admin/{path}", fixture.cloud.endpoint());
    let put = async |path: &str, body: &str| {
        fixture.http.put(url(path)).body(body.to_owned()).send().await.unwrap().status().as_u16()
    };
    let get = async |path: &str| {
        let text = fixture.http.get(url(path)).send().await.unwrap().text().await.unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let rule = r#"{"operation": "GetInstance", "fault": {"kind": "drop_before"}}"#;
    let posted = fixture.http.post(url("faults")).body(rule).send().await.unwrap();
    assert_eq!(posted.text().await.unwrap(), r#"{"id":1}"#);
    assert_eq!(get("faults").await[0]["rule"]["operation"], "GetInstance");
    assert_eq!(fixture.http.delete(url("faults/1")).send().await.unwrap().status(), 204);
    assert_eq!(fixture.http.delete(url("faults/1")).send().await.unwrap().status(), 404);
    let id = fixture.launch("n1").await;
    assert_eq!(put("clock", r#"{"advance_seconds": 10}"#).await, 200);
    assert_eq!(get(&format!("instances/{id}")).await["boots"], 1);
    assert_eq!(put(&format!("instances/{id}"), "\"STOPPED\"").await, 204);
    assert_eq!(get("instances").await[0]["instance"]["lifecycleState"], "STOPPED");
    assert_eq!(get("instances").await[0], get(&format!("instances/{id}")).await);
    let launched = fixture.http.post(url("instances")).body(launch_body("n2").to_string());
    assert_eq!(launched.send().await.unwrap().status(), 200);
    assert_eq!(get("instances").await[1]["instance"]["displayName"], "n2");
    assert_eq!(get("instances").await[1]["address"], "10.1.0.3");
    assert_eq!(put("capacity", r#"[{"instances": 0}]"#).await, 204);
    assert_eq!(put("throttle", r#"[{"operation": "*", "per_second": 1, "burst": 1}]"#).await, 204);
    assert_eq!(put("latency", "1").await, 204);
    assert_eq!(get("latency").await, 1);
    assert_eq!(put("limits", r#"[{"name": "gpu4-count", "value": 1}]"#).await, 204);
    assert_eq!(put("sessions", "5").await, 204);
    assert_eq!(put("nonsense", "5").await, 404);
    let requests = get("requests").await;
    assert_eq!(requests[0]["operation"], "LaunchInstance");
    assert_eq!(requests[0]["status"], 200);
    assert_eq!(get("counts").await["operations"]["LaunchInstance"], 1);
    assert_eq!(get("counts").await["journal"], serde_json::Value::Null);
}

#[tokio::test]
async fn the_admin_side_refuses_what_cannot_be() {
    let fixture = Fixture::frozen().await;
    for (path, body) in [
        ("clock", r#"{"skew_seconds": 300000000000}"#),
        ("clock", r#"{"speed": 1e-30}"#),
        ("clock", r#"{"speed": -1}"#),
        ("clock", r#"{"advance_seconds": 1e30}"#),
        ("clock", r#"{"advance_seconds": 1e12}"#),
        ("sessions", "18446744073709551615"),
        ("capacity", "{"),
    ] {
        let url = format!("{}/admin/{path}", fixture.cloud.endpoint());
        let put = fixture.http.put(url).body(body).send().await.unwrap();
        assert_eq!(put.status(), 400, "{path}: {body}");
    }
}

async fn requests(fixture: &Fixture, query: &str) -> Vec<Value> {
    let url = format!("{}/admin/requests{query}", fixture.cloud.endpoint());
    let text = fixture.http.get(url).send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn new_requests_can_be_read_alone() {
    let fixture = Fixture::frozen().await;
    for name in ["n1", "n2", "n3"] {
        fixture.launch(name).await;
    }
    let numbers = async |query: &str| {
        let rows = requests(&fixture, query).await;
        rows.iter().map(|row| row["number"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers("").await, [1, 2, 3]);
    assert_eq!(numbers("?after=2").await, [3]);
    assert_eq!(numbers("?after=3").await, Vec::<u64>::new());
    let url = format!("{}/admin/requests?after=x", fixture.cloud.endpoint());
    assert_eq!(fixture.http.get(url).send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn a_record_names_the_rules_that_applied() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let later = Fault::FailLater { code: "x".into(), message: "y".into() };
    admin.add_fault(Rule::once("GetImage", Fault::DropBefore)).unwrap();
    admin.add_fault(Rule::once("LaunchInstance", Fault::Delay { millis: 1 })).unwrap();
    admin.add_fault(Rule::once("LaunchInstance", later)).unwrap();
    fixture.launch("n1").await;
    fixture.launch("n2").await;
    fixture.try_send("GET", "/20160918/images/x", &[], "").await.unwrap_err();
    let rules: Vec<_> =
        requests(&fixture, "").await.iter().map(|row| row["faults"].clone()).collect();
    assert_eq!(rules, [json!([2, 3]), json!([]), json!([1])]);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_and_recorded() {
    let fixture = Fixture::frozen().await;
    let mut body = launch_body("n1");
    body["metadata"] = json!({"x": "y".repeat(5 << 20)});
    fixture.launch_with(None, &body).await.refused(413, "RequestEntityTooLarge");
    let url = format!("{}/admin/faults", fixture.cloud.endpoint());
    let put = fixture.http.post(url).body(" ".repeat(5 << 20)).send().await.unwrap();
    assert_eq!(put.status(), 413);
    let [recorded] = &fixture.cloud.admin().requests()[..] else {
        panic!("one request was recorded");
    };
    assert_eq!((recorded.operation.as_str(), recorded.status), ("LaunchInstance", Some(413)));
    fixture.get(&format!("/20160918/instances?compartmentId={COMPARTMENT}")).await.ok();
}

#[tokio::test]
async fn a_body_that_is_cut_short_is_recorded() {
    let fixture = Fixture::frozen().await;
    let address = fixture.cloud.endpoint().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /20160918/instances HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let admin = fixture.cloud.admin();
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
