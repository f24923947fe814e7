//! VNICs, looked up by what a caller knows of them.

use crate::support::{COMPARTMENT, Fixture, SUBNET};
use serde_json::Value;

async fn attachments(fixture: &Fixture, query: &str) -> Vec<Value> {
    let target = format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&{query}");
    fixture.get(&target).await.ok().json().as_array().cloned().unwrap_or_default()
}

fn text(row: &Value, name: &str) -> String {
    row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_query_that_names_two_machines_is_refused() {
    let fixture = Fixture::frozen().await;
    let (first, second) = (fixture.launch("n1").await, fixture.launch("n2").await);
    assert!(attachments(&fixture, &format!("instanceId={first}")).await.is_empty(), "not yet");
    fixture.advance(10);
    let of_first = attachments(&fixture, &format!("instanceId={first}")).await;
    let [row] = &of_first[..] else { unreachable!("one each: {of_first:?}") };
    let vnic = text(row, "vnicId");
    assert_eq!(attachments(&fixture, &format!("vnicId={vnic}")).await, of_first);
    let both = |id: &str| format!("instanceId={id}&vnicId={vnic}");
    assert_eq!(attachments(&fixture, &both(&first)).await, of_first);
    assert_eq!(attachments(&fixture, &both(&second)).await, Vec::<Value>::new());
    assert_eq!(attachments(&fixture, "limit=10").await.len(), 2);
    let other = format!("availabilityDomain=Uocm%3APHX-AD-2&instanceId={first}");
    assert_eq!(attachments(&fixture, &other).await, Vec::<Value>::new());
    let addresses = format!("/20160918/privateIps?subnetId={SUBNET}&vnicId={vnic}");
    let addresses = fixture.get(&addresses).await.ok().json();
    assert_eq!(addresses.as_array().map(Vec::len), Some(1), "{addresses}");
}

#[tokio::test]
async fn a_vnic_is_forgotten_with_its_machine() {
    let fixture = Fixture::frozen().await;
    let id = fixture.launch("n1").await;
    fixture.advance(10);
    let rows = attachments(&fixture, &format!("instanceId={id}")).await;
    let [row] = &rows[..] else { unreachable!("one: {rows:?}") };
    let vnic = format!("/20160918/vnics/{}", text(row, "vnicId"));
    let attachment = format!("/20160918/vnicAttachments/{}", text(row, "id"));
    fixture.get(&vnic).await.ok();
    assert_eq!(&fixture.get(&attachment).await.ok().json(), row);
    fixture.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    fixture.advance(10);
    fixture.get(&vnic).await.refused(404, "NotAuthorizedOrNotFound");
    let left = fixture.get(&attachment).await.ok().json();
    assert_eq!(text(&left, "lifecycleState"), "DETACHED");
    fixture.advance(3600);
    fixture.get(&attachment).await.refused(404, "NotAuthorizedOrNotFound");
    let gone = attachments(&fixture, &format!("vnicId={}", text(row, "vnicId"))).await;
    assert!(gone.is_empty(), "{gone:?}");
}
