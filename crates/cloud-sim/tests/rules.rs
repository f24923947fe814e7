//! Rules and bounds that are misspelt, by which a test would pass for nothing.

use crate::support::Fixture;
use cloud_sim::{Cloud, CloudSettings, Limit, Mismatch, ShapeSize};
use serde_json::{Value, json};
use std::time::Duration;

/// What the admin side is told, as method, path and body, and the word that the refusal names.
const MISSPELT: [(&str, &str, &str, &str); 18] = [
    (
        "POST",
        "faults",
        r#"{"operation": "GetInstance", "fault": {"kind": "fail_later", "code": "x", "message": "y"}}"#,
        "GetInstance does not fail later",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "LaunchInstnace", "fault": {"kind": "drop_before"}}"#,
        "LaunchInstnace",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "probability": 5, "fault": {"kind": "drop_before"}}"#,
        "probability 5",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "answer", "status": 5, "code": "x", "message": "y"}}"#,
        "5 is no status",
    ),
    (
        "PUT",
        "capacity",
        r#"[{"availability_domain": "PHX-AD-1", "instances": 0}]"#,
        "domain PHX-AD-1",
    ),
    (
        "PUT",
        "capacity",
        r#"[{"shape": "VM.Standard.E5", "instances": 0}]"#,
        "shape VM.Standard.E5,",
    ),
    (
        "PUT",
        "throttle",
        r#"[{"operation": "launch", "per_second": 1, "burst": 1}]"#,
        "operation launch",
    ),
    ("PUT", "throttle", r#"[{"operation": "*", "per_second": -1, "burst": 1}]"#, "per_second -1"),
    (
        "PUT",
        "limits",
        r#"[{"name": "gpu4-count", "availability_domain": "AD-1", "value": 0}]"#,
        "domain AD-1",
    ),
    ("PUT", "limits", r#"[{"name": "gpu4-count", "value": -1}]"#, "-1"),
    ("PUT", "limits", r#"[{"name": "gpu4-cuont", "value": 0}]"#, "against gpu4-cuont"),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "count": 0, "fault": {"kind": "drop_before"}}"#,
        "count 0",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "probability": 0, "fault": {"kind": "drop_before"}}"#,
        "probability 0",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "delay", "millis": 0}}"#,
        "a delay of 0",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "answer", "status": 100, "code": "x", "message": "y"}}"#,
        "100 is no status",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "answer", "status": 500, "code": "x", "message": "y",
            "headers": {"retry after": "1"}}}"#,
        "`retry after: 1` is no header",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "answer", "status": 500, "code": "x", "message": "y",
            "headers": {"Content-Length": "7"}}}"#,
        "Content-Length is not a rule's to say",
    ),
    (
        "POST",
        "faults",
        r#"{"operation": "*", "fault": {"kind": "answer", "status": 500, "code": "x", "message": "y",
            "headers": {"content-type": "text/html"}}}"#,
        "content-type is not a rule's to say",
    ),
];

#[tokio::test]
async fn a_misspelt_rule_is_refused() {
    let fixture = Fixture::frozen().await;
    let url = |path: &str| format!("{}/admin/{path}", fixture.cloud.endpoint());
    let shown =
        async |path: &str| fixture.http.get(url(path)).send().await.unwrap().text().await.unwrap();
    for (method, path, body, named) in MISSPELT {
        let before = shown(path).await;
        let method = method.parse().unwrap();
        let answer = fixture.http.request(method, url(path)).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{body}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(named), "{body}: {text}");
        assert_eq!(shown(path).await, before, "{body}");
    }
    for operation in ["*", "LaunchInstance", "X509", "Metadata"] {
        let body = format!(r#"{{"operation": "{operation}", "fault": {{"kind": "drop_before"}}}}"#);
        let answer = fixture.http.post(url("faults")).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{operation}");
    }
}

#[tokio::test]
async fn a_misspelt_rule_of_a_script_is_refused() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("script.yaml");
    for (_, part, body, named) in MISSPELT {
        let list = if body.starts_with('[') { body.to_owned() } else { format!("[{body}]") };
        std::fs::write(&path, format!("{part}: {list}\n")).unwrap();
        let refused = match CloudSettings::from_script(&path) {
            Ok(settings) => Cloud::start(settings).await.map(drop).unwrap_err().to_string(),
            Err(error) => format!("{error:?}"),
        };
        assert!(refused.contains(named), "{body}: {refused}");
    }
}

#[tokio::test]
async fn limits_that_are_put_replace_those_before() {
    let fixture = Fixture::frozen().await;
    let url = format!("{}/admin/limits", fixture.cloud.endpoint());
    for limits in
        [json!([{"name": "gpu4-count", "availability_domain": null, "value": 1}]), json!([])]
    {
        let put = fixture.http.put(&url).body(limits.to_string()).send().await.unwrap();
        assert_eq!(put.status(), 204);
        let shown = fixture.http.get(&url).send().await.unwrap().text().await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), limits);
    }
}

#[tokio::test]
async fn an_impossible_speed_is_refused() {
    for speed in [-1.0, 1e-9, 1e9, f64::NAN] {
        let settings = CloudSettings { speed, ..CloudSettings::default() };
        let refused = Cloud::start(settings).await.map(drop).unwrap_err();
        assert!(refused.to_string().starts_with("speed "), "{refused}");
    }
}

#[tokio::test]
async fn an_impossible_status_is_refused() {
    let token_mismatch = Mismatch { status: 5, code: "x".to_owned() };
    let settings = CloudSettings { token_mismatch, ..CloudSettings::default() };
    let refused = Cloud::start(settings).await.map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "token_mismatch: 5 is no status of an answer");
}

#[tokio::test]
async fn shapes_of_ones_own_can_have_limits_of_their_own() {
    let limits = vec!["tiny-count".to_owned()];
    let tiny = ShapeSize { name: "VM.Tiny".to_owned(), ocpus: 1.0, limits, ..ShapeSize::default() };
    let mut settings = CloudSettings { shapes: vec![tiny], ..CloudSettings::default() };
    let name = "tiny-count".to_owned();
    settings.limits.push(Limit { name, availability_domain: None, value: 1 });
    Cloud::start(settings).await.unwrap();
}

#[tokio::test]
async fn impossible_settings_are_refused_in_process() {
    let fixture = Fixture::frozen().await;
    let admin = fixture.cloud.admin();
    let century = Duration::from_hours(24 * 36_500);
    assert!(admin.set_speed(-1.0).unwrap_err().to_string().starts_with("speed -1"));
    admin.advance(century).unwrap();
    let refused = admin.advance(Duration::from_secs(1)).unwrap_err().to_string();
    assert_eq!(refused, "advance_seconds: has to be within 100 years in all");
    let refused = admin.set_skew(i64::MAX).unwrap_err().to_string();
    assert_eq!(refused, "skew_seconds: has to be within 10 years");
    let refused = admin.set_session_lifetime(century).unwrap_err().to_string();
    assert_eq!(refused, "session: has to be within 10 years");
    let settings = CloudSettings { session_seconds: u64::MAX, ..CloudSettings::default() };
    assert!(Cloud::start(settings).await.is_err());
}
