//! What the captures do not show.

use crate::bare_site;
use crate::recorder::Answer;
use crate::stage::{COMPARTMENT, Stage};
use cloud_core::{InstanceFilter, InstanceId, Provider as _};
use serde_json::Value;

/// The token of a session opens everything that the session may do.
#[tokio::test]
async fn a_token_that_the_cloud_repeats_is_not_shown() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjQxMDI0NDQ4MDB9.c2ln";
    let stage = Stage::known_as(Some(&format!("ST${token}")), bare_site()).await;
    let said = format!(r#"{{"code": "NotAuthenticated", "message": "bad token {token}"}}"#);
    stage.recorder.queue(Answer::new(401, said));
    let error = stage.oci.list(&InstanceFilter::default()).await.expect_err("not known");
    assert!(!format!("{error:?}").contains(token), "{error:?}");
    assert!(error.to_string().contains("bad token [redacted]"), "{error}");
    let asked = stage.recorder.take();
    assert!(asked[0].headers["authorization"].contains(&format!("keyId=\"ST${token}\"")));
}

/// Nothing is asked for twice, and nobody asks for an instance each.
#[tokio::test]
async fn addresses_of_a_thousand_take_a_handful_of_requests() {
    let stage = Stage::new(bare_site()).await;
    let ids: Vec<InstanceId> = (0..1500).map(|n| InstanceId::new(format!("i{n}"))).collect();
    let attachment = |n: usize| {
        serde_json::json!({"instanceId": format!("i{n}"), "vnicId": format!("v{n}"), "subnetId": "s",
            "lifecycleState": "ATTACHED", "nicIndex": 0, "timeCreated": "2026-01-01T00:00:00Z"})
    };
    let address = |n: usize| {
        serde_json::json!({"vnicId": format!("v{n}"), "ipAddress": format!("10.0.{}.{}", n / 256, n % 256),
            "isPrimary": true, "subnetId": "s"})
    };
    let page = |items: Vec<Value>, next: Option<&str>| {
        let mut answer = Answer::new(200, Value::from(items).to_string());
        answer.headers.extend(next.map(|page| ("opc-next-page".to_owned(), page.to_owned())));
        answer
    };
    stage.recorder.queue(page((0..1000).map(attachment).collect(), Some("two")));
    stage.recorder.queue(page((1000..1500).map(attachment).collect(), None));
    stage.recorder.queue(page((0..1000).map(address).collect(), Some("deux")));
    stage.recorder.queue(page((1000..1500).map(address).collect(), None));
    let found = stage.oci.addresses(&ids).await.expect("addresses");
    assert_eq!(found.len(), 1500);
    assert_eq!(found[&InstanceId::new("i1499")].to_string(), "10.0.5.219");
    let asked: Vec<String> = stage.recorder.take().into_iter().map(|asked| asked.target).collect();
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
