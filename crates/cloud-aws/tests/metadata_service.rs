//! What EC2 announces to a machine, by version 2 of the metadata service.

use crate::fake::{Asked, Fake};
use cloud_aws::MetadataService;
use cloud_core::http::{ClientConfig, Retry};
use cloud_core::{ErrorKind, Interruption, InterruptionKind, MachineMetadata as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

const SPOT: &str = "/latest/meta-data/spot/instance-action";
const EVENTS: &str = "/latest/meta-data/events/maintenance/scheduled";

fn path(asked: &Asked) -> &str {
    asked.line.split(' ').nth(1).unwrap_or_default()
}

/// A metadata service with these documents, each request for which has to be of a session.
async fn service(
    documents: impl Fn(&str) -> (u16, &'static str) + Send + Sync + 'static,
) -> (Fake, MetadataService) {
    let fake = Fake::new(move |asked| {
        let session = asked.headers.get("x-aws-ec2-metadata-token");
        let (status, body) = match (path(asked), asked.line.starts_with("PUT ")) {
            ("/latest/api/token", true) => (200, "session-1"),
            (_, true) => (405, ""),
            (path, false) if session.is_some_and(|it| it == "session-1") => documents(path),
            (_, false) => (401, ""),
        };
        (status, body.to_owned())
    })
    .await;
    let service = connect(&fake);
    (fake, service)
}

fn connect(fake: &Fake) -> MetadataService {
    let mut http = ClientConfig::default();
    http.retry = Retry::never();
    let base = fake.endpoint().parse().expect("a URL");
    MetadataService::new(&http, Some(base)).expect("a client")
}

fn at(seconds: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[tokio::test]
async fn nothing_is_announced_to_most_machines_and_one_session_serves_all_questions() {
    for nothing in [(404, "<html>404 - Not Found</html>"), (200, "[]"), (200, "")] {
        let (fake, service) =
            service(move |path| if path == EVENTS { nothing } else { (404, "") }).await;
        for _ in 0..2 {
            assert_eq!(service.interruption().await.expect("an answer"), None);
        }
        let asked = fake.asked();
        let paths: Vec<&str> = asked.iter().map(path).collect();
        assert_eq!(paths, ["/latest/api/token", SPOT, EVENTS, SPOT, EVENTS]);
        assert_eq!(asked[0].headers["x-aws-ec2-metadata-token-ttl-seconds"], "21600");
        assert!(service.location().await.expect("an answer").is_empty());
    }
}

#[tokio::test]
async fn a_spot_machine_that_is_reclaimed_is_preempted_whatever_else_is_announced() {
    let (_fake, service) = service(|path| match path {
        SPOT => (200, r#"{"action": "terminate", "time": "1970-01-02T00:00:00Z"}"#),
        _ => (200, r#"[{"NotBefore": "3 Jan 1970 00:00:00 GMT", "State": "active"}]"#),
    })
    .await;
    let found = service.interruption().await.expect("an answer");
    let expected = Interruption { kind: InterruptionKind::Preemption, at: at(86_400) };
    assert_eq!(found, Some(expected));
}

/// As in EC2's user guide.
#[tokio::test]
async fn a_scheduled_event_is_a_maintenance_at_its_time() {
    let (_fake, service) = service(|path| match path {
        EVENTS => (
            200,
            r#"[ { "NotBefore" : "21 Jan 2019 09:00:43 GMT", "Code" : "system-reboot",
                "Description" : "scheduled reboot", "EventId" : "instance-event-0d59937288b749b32",
                "NotAfter" : "21 Jan 2019 09:17:23 GMT", "State" : "active" } ]"#,
        ),
        _ => (404, ""),
    })
    .await;
    let found = service.interruption().await.expect("an answer");
    let expected = Interruption { kind: InterruptionKind::Maintenance, at: at(1_548_061_243) };
    assert_eq!(found, Some(expected));
}

#[tokio::test]
async fn a_session_that_the_service_has_forgotten_is_opened_again() {
    let opened = AtomicU32::new(0);
    let fake = Fake::new(move |asked| {
        if asked.line.starts_with("PUT ") {
            let number = opened.fetch_add(1, Ordering::SeqCst) + 1;
            return (200, format!("session-{number}"));
        }
        match asked.headers.get("x-aws-ec2-metadata-token").map(String::as_str) {
            Some("session-2") => (404, String::new()),
            _ => (401, String::new()),
        }
    })
    .await;
    assert_eq!(connect(&fake).interruption().await.expect("an answer"), None);
    assert_eq!(fake.asked().len(), 5, "a session, a refusal, a session, and two answers");
}

#[tokio::test]
async fn a_service_that_fails_or_makes_no_sense_is_an_error_and_not_silence() {
    for (status, body, kind) in [
        (500, "", ErrorKind::Unavailable),
        (403, "", ErrorKind::Forbidden),
        (200, "<html>proxy</html>", ErrorKind::Protocol),
    ] {
        let (_fake, service) = service(move |_| (status, body)).await;
        let error = service.interruption().await.expect_err("no answer");
        assert_eq!(error.kind(), kind, "{error}");
    }
}
