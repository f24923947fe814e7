//! What the captures do not show.

use crate::captures::bare_site;
use crate::captures::fixture::{COMPARTMENT, Fixture};
use crate::captures::listings::page;
use crate::captures::recorder::Response;
use cloud_core::{
    ErrorKind, Goal, ImageFilter, ImageId, Instance, InstanceFilter, InstanceId, InstanceName,
    InstanceSpec, InstanceState, LaunchToken, Poll, Provider as _, ShapeName, SubnetId,
    WaitOutcome, Zone, wait_until,
};
use cloud_oci::Power;
use serde_json::{Value, json};
use std::time::Duration;

/// The token of a session opens everything that the session may do.
#[tokio::test]
async fn a_token_that_the_cloud_repeats_is_not_shown() {
    let short = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
    // As long as they are: what is cut before it is looked at leaves a part of it.
    let long = format!("{short}{}", "c2lnbmVk".repeat(190));
    for token in [short, &long] {
        let fixture = Fixture::known_as(Some(&format!("ST${token}")), bare_site()).await;
        let said = format!(r#"{{"code": "NotAuthenticated", "message": "bad token {token}"}}"#);
        let mut response = Response::new(401, said);
        response.headers.push(("date".to_owned(), "Mon, 16 Nov 2026 12:00:00 GMT".to_owned()));
        fixture.recorder.queue(response);
        let error = fixture.oci.list(&InstanceFilter::default()).await.expect_err("not known");
        assert!(!format!("{error:?}").contains("eyJ"), "{error:?}");
        let shown =
            "bad token [redacted]; the cloud's clock says Mon, 16 Nov 2026 12:00:00 GMT, ours ";
        assert!(error.to_string().contains(shown), "{error}");
        let asked = fixture.recorder.take();
        assert!(asked[0].headers["authorization"].contains(&format!("keyId=\"ST${token}\"")));
    }
}

/// It was good when the program began.
#[tokio::test]
async fn an_expired_session_says_how_to_start_another() {
    let ended = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjF9.c2ln";
    let good = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
    let refused = "{\"code\": \"NotAuthenticated\", \"message\": \"not you\"}";
    for (token, said) in
        [(ended, "the session has expired: run `oci session authenticate`"), (good, "not you")]
    {
        let fixture = Fixture::known_as(Some(&format!("ST${token}")), bare_site()).await;
        let mut response = Response::new(401, refused);
        response.headers.push(("date".to_owned(), "Mon, 16 Nov 2026 12:00:00 GMT".to_owned()));
        fixture.recorder.queue(response);
        let error = fixture.oci.list(&InstanceFilter::default()).await.expect_err("not known");
        // It may be our clock alone that says so.
        let clocks = "; the cloud's clock says Mon, 16 Nov 2026 12:00:00 GMT, ours ";
        let told = error.message().unwrap_or_default();
        assert!(told.starts_with(&format!("{said}{clocks}")), "{told}");
    }
}

/// Nothing is asked for twice, and nobody asks for an instance each.
#[tokio::test]
async fn addresses_of_a_thousand_take_a_handful_of_requests() {
    let fixture = Fixture::new(bare_site()).await;
    let ids: Vec<InstanceId> = (0..1500).map(|n| InstanceId::new(format!("i{n}"))).collect();
    let attachment = |n: usize| {
        serde_json::json!({"instanceId": format!("i{n}"), "vnicId": format!("v{n}"), "subnetId": "s",
            "lifecycleState": "ATTACHED", "nicIndex": 0, "timeCreated": "2026-01-01T00:00:00Z"})
    };
    let address = |n: usize| {
        serde_json::json!({"vnicId": format!("v{n}"), "ipAddress": format!("10.0.{}.{}", n / 256, n % 256),
            "isPrimary": true, "subnetId": "s"})
    };
    // Somebody gave a card one more address, which is not where the machine is to be found.
    let second =
        json!({"vnicId": "v1499", "ipAddress": "10.9.9.9", "isPrimary": false, "subnetId": "s"});
    fixture.recorder.queue(page((0..1000).map(attachment).collect(), Some("two")));
    fixture.recorder.queue(page((1000..1500).map(attachment).collect(), None));
    fixture.recorder.queue(page((0..1000).map(address).collect(), Some("deux")));
    let last = (1000..1500).map(address).chain([second]);
    fixture.recorder.queue(page(last.collect(), None));
    let found = fixture.oci.addresses(&ids).await.expect("addresses");
    assert_eq!(found.len(), 1500);
    assert_eq!(found[&InstanceId::new("i1499")].to_string(), "10.0.5.219");
    let asked: Vec<String> =
        fixture.recorder.take().into_iter().map(|asked| asked.target).collect();
    assert_eq!(
        asked,
        [
            format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&limit=1000"),
            format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&limit=1000&page=two"),
            "/20160918/privateIps?subnetId=s&limit=1000".to_owned(),
            "/20160918/privateIps?subnetId=s&limit=1000&page=deux".to_owned(),
        ]
    );
}

/// What OCI says of something that is not there, and of something that we may not see.
fn hidden() -> Response {
    let said = json!({"code": "NotAuthorizedOrNotFound", "message": "not authorized or not found"});
    Response::new(404, said.to_string())
}

pub(crate) fn found(body: &Value) -> Response {
    Response::new(200, body.to_string())
}

pub(crate) fn instance(state: &str) -> Value {
    json!({"id": "i", "displayName": "vm-1", "lifecycleState": state})
}

fn card() -> Value {
    json!({"instanceId": "i", "vnicId": "v", "subnetId": "s", "lifecycleState": "ATTACHED",
        "nicIndex": 0, "timeCreated": "2026-01-01T00:00:00Z"})
}

/// Asks for something with these answers; all of them are used.
pub(crate) async fn with<T>(responses: Vec<Response>, ask: impl AsyncFnOnce(&Fixture) -> T) -> T {
    let fixture = Fixture::new(bare_site()).await;
    let count = responses.len();
    for response in responses {
        fixture.recorder.queue(response);
    }
    let told = ask(&fixture).await;
    assert_eq!(fixture.recorder.take().len(), count);
    told
}

#[tokio::test]
async fn addresses_that_we_may_not_see_are_forbidden() {
    let table = [
        (vec![hidden(), hidden()], Ok(0)),
        (vec![hidden(), found(&instance("RUNNING"))], Err(ErrorKind::Forbidden)),
        (
            vec![found(&json!([card()])), hidden(), found(&json!([card()]))],
            Err(ErrorKind::Forbidden),
        ),
        (vec![found(&json!([card()])), hidden(), found(&json!([]))], Ok(0)),
        (vec![found(&json!([card()])), found(&json!({"privateIp": "10.0.0.7"}))], Ok(1)),
        // A second card is none of the machine's address.
        (
            vec![
                found(&json!([card(), card()])),
                found(&json!({"privateIp": "10.0.0.9", "isPrimary": false})),
                found(&json!({"privateIp": "10.0.0.7", "isPrimary": true})),
            ],
            Ok(1),
        ),
        (
            vec![
                found(&json!([card()])),
                found(&json!({"privateIp": "10.0.0.9", "isPrimary": false})),
            ],
            Ok(0),
        ),
    ];
    for (row, (responses, expected)) in table.into_iter().enumerate() {
        let addresses = with(responses, async |fixture: &Fixture| {
            fixture.oci.addresses(&[InstanceId::new("i")]).await
        });
        let told = addresses.await.map(|found| found.len()).map_err(|error| error.kind());
        assert_eq!(told, expected, "row {row}");
    }
}

#[tokio::test]
async fn a_refused_stop_is_called_a_stop() {
    let table = [
        (Power::Start, "start i: "),
        (Power::Stop, "stop i: "),
        (Power::SoftStop, "stop i: "),
        (Power::Reset, "reboot i: "),
        (Power::SoftReset, "reboot i: "),
    ];
    for (power, said) in table {
        let told = with(vec![hidden()], async |fixture: &Fixture| {
            fixture.oci.power(&InstanceId::new("i"), power).await
        });
        let error = told.await.expect_err("hidden").to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[tokio::test]
async fn the_error_names_a_compartment_that_is_not_found() {
    let of = format!("check compartment_id ({COMPARTMENT}) and the policies of the caller");
    let fixture = Fixture::new(bare_site()).await;
    let ids: Vec<InstanceId> = (0..3).map(|n| InstanceId::new(format!("i{n}"))).collect();
    let told = |error: cloud_core::Error| {
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
        assert!(error.to_string().contains(&of), "{error}");
        error.subject().map(str::to_owned)
    };
    fixture.recorder.queue(hidden());
    let error = fixture.oci.list(&InstanceFilter::default()).await.expect_err("hidden");
    assert_eq!(told(error).as_deref(), Some("instances"));
    fixture.recorder.queue(hidden());
    let error = fixture.oci.images(&ImageFilter::default()).await.expect_err("hidden");
    assert_eq!(told(error).as_deref(), Some("images"));
    fixture.recorder.queue(hidden());
    let error = fixture.oci.zones().await.expect_err("hidden");
    assert_eq!(told(error).as_deref(), Some("availabilityDomains"));
    fixture.recorder.queue(hidden());
    let error = fixture.oci.addresses(&ids).await.expect_err("hidden");
    assert_eq!(told(error).as_deref(), Some("vnicAttachments"));
}

#[tokio::test]
async fn a_forbidden_terminate_is_not_taken_for_done() {
    let table = [
        (json!([]), Ok(())),
        (json!([instance("TERMINATED")]), Ok(())),
        (json!([instance("RUNNING")]), Err(ErrorKind::Forbidden)),
    ];
    for (listed, expected) in table {
        let responses = vec![hidden(), hidden(), found(&listed)];
        let ended = with(responses, async |fixture: &Fixture| {
            fixture.oci.terminate(&InstanceId::new("i")).await
        });
        assert_eq!(ended.await.map_err(|error| error.kind()), expected, "{listed}");
    }
}

/// OCI may say of one that goes already that it cannot be ended now.
#[tokio::test]
async fn an_end_that_conflicts_is_done_only_if_the_instance_is_going() {
    let conflict = || {
        let said = json!({"code": "IncorrectState", "message": "The instance is TERMINATING."});
        Response::new(409, said.to_string())
    };
    for (state, expected) in
        [("TERMINATING", Ok(())), ("TERMINATED", Ok(())), ("RUNNING", Err(ErrorKind::Conflict))]
    {
        let responses = vec![conflict(), found(&instance(state))];
        let ended = with(responses, async |fixture: &Fixture| {
            fixture.oci.terminate(&InstanceId::new("i")).await
        });
        assert_eq!(ended.await.map_err(|error| error.kind()), expected, "{state}");
    }
}

fn spec() -> InstanceSpec {
    let (name, shape) = (InstanceName::new("vm-1"), ShapeName::new("VM.Standard2.1"));
    let mut spec = InstanceSpec::new(name, shape, ImageId::new("img"));
    spec.zone = Some(Zone::new("AD-1"));
    spec.subnet = Some(SubnetId::new("s"));
    spec
}

/// OCI may answer as it did then, as long as it shows what the token has made.
#[tokio::test]
async fn an_instance_that_is_gone_is_not_taken_for_a_launch() {
    for state in ["TERMINATING", "TERMINATED"] {
        let told = with(vec![found(&instance(state))], async |fixture: &Fixture| {
            let mut spec = spec();
            spec.token = LaunchToken::new("c:vm-1:1").ok();
            fixture.oci.launch(&spec).await
        });
        let error = told.await.expect_err("gone");
        assert_eq!(error.kind(), ErrorKind::TokenUsedUp, "{error}");
    }
}

async fn launched_and_seen(responses: Vec<Response>) -> Vec<Instance> {
    let mut accepted = found(&instance("PROVISIONING"));
    accepted.headers.push(("opc-work-request-id".to_owned(), "w".to_owned()));
    let looks =
        responses.iter().filter(|response| response.body.contains("lifecycleState")).count();
    let responses = std::iter::once(accepted).chain(responses).collect();
    with(responses, async |fixture: &Fixture| {
        let id = fixture.oci.launch(&spec()).await.expect("accepted").id;
        let mut seen = Vec::new();
        for _ in 0..looks {
            seen.push(fixture.oci.get(&id).await.expect("shown"));
        }
        seen
    })
    .await
}

/// Why it ends is said a moment after it does.
#[tokio::test]
async fn a_launch_that_fails_is_not_taken_for_one_that_somebody_removed() {
    let full = json!([{"code": "InternalError", "message": "Out of host capacity.",
        "timestamp": "2026-01-01T00:00:00Z"}]);
    let seen = launched_and_seen(vec![
        found(&instance("TERMINATED")),
        found(&json!([])),
        found(&json!({"status": "IN_PROGRESS"})),
        found(&instance("TERMINATED")),
        found(&full),
    ])
    .await;
    assert_eq!((&seen[0].state, &seen[0].fault), (&InstanceState::Pending, &None));
    assert_eq!(seen[1].fault.as_ref().map(|fault| fault.kind), Some(ErrorKind::Capacity));
    assert!(seen[1].state.is_lost(), "{seen:?}");
}

#[tokio::test]
async fn a_work_request_that_cannot_be_read_for_a_moment_is_read_later() {
    let full = json!([{"code": "InternalError", "message": "Out of host capacity."}]);
    let seen = launched_and_seen(vec![
        found(&instance("TERMINATED")),
        Response::new(503, "busy"),
        found(&instance("TERMINATED")),
        found(&full),
    ])
    .await;
    assert_eq!((&seen[0].state, &seen[0].fault), (&InstanceState::Pending, &None));
    assert_eq!(seen[1].fault.as_ref().map(|fault| fault.kind), Some(ErrorKind::Capacity));
    // One that we may not read stays so.
    let seen = launched_and_seen(vec![found(&instance("TERMINATED")), hidden()]).await;
    let fault = seen[0].fault.as_ref().expect("lost");
    assert!(fault.message.starts_with("lost soon after its launch; the reason"), "{fault:?}");
}

#[tokio::test]
async fn an_accepted_rebuild_that_fails_has_a_fault() {
    let mut accepted = found(&instance("RUNNING"));
    accepted.headers.push(("opc-work-request-id".to_owned(), "w".to_owned()));
    let shown = |image: &str| {
        let mut body = instance("RUNNING");
        body["sourceDetails"] = json!({"sourceType": "image", "imageId": image});
        found(&body)
    };
    let nothing = found(&json!([]));
    let broken = json!([{"code": "InternalError", "message": "The volume is broken."}]);
    let responses = vec![
        accepted.clone(),
        shown("old"),
        nothing,
        found(&json!({"status": "IN_PROGRESS"})),
        shown("old"),
        found(&broken),
        // Another try, refused: what became of the first says nothing about it.
        Response::new(409, json!({"code": "Conflict", "message": "not now"}).to_string()),
        shown("old"),
        // One more, and this one is well: nobody asks about it.
        accepted,
        shown("new"),
    ];
    with(responses, async |fixture: &Fixture| {
        let (id, image) = (InstanceId::new("i"), ImageId::new("new"));
        let get = async || fixture.oci.get(&id).await.expect("shown");
        fixture.oci.rebuild(&id, &image).await.expect("accepted");
        assert_eq!(get().await.fault, None, "under way");
        let poll = Poll { first: Duration::from_millis(10), ..Poll::until(Duration::from_mins(1)) };
        let waited =
            wait_until(&fixture.oci, std::slice::from_ref(&id), Goal::RunningImage(&image), poll)
                .await;
        let WaitOutcome::Lost(seen) = &waited.outcomes[&id] else { panic!("{waited:?}") };
        let said = seen.fault.as_ref().map(|fault| fault.message.as_str());
        assert_eq!((&seen.state, said), (&InstanceState::Running, Some("The volume is broken.")));
        fixture.oci.rebuild(&id, &image).await.expect_err("refused");
        assert_eq!(get().await.fault, None, "of the first");
        fixture.oci.rebuild(&id, &image).await.expect("accepted");
        assert_eq!(get().await.fault, None);
    })
    .await;
}
