//! VNICs, looked up by what a caller knows of them.

use crate::support::{COMPARTMENT, SUBNET, Scene};
use serde_json::Value;

async fn attachments(scene: &Scene, query: &str) -> Vec<Value> {
    let target = format!("/20160918/vnicAttachments?compartmentId={COMPARTMENT}&{query}");
    scene.get(&target).await.ok().json().as_array().cloned().unwrap_or_default()
}

fn text(row: &Value, name: &str) -> String {
    row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_query_that_names_two_machines_is_refused() {
    let scene = Scene::frozen().await;
    let (first, second) = (scene.launch("n1").await, scene.launch("n2").await);
    assert!(attachments(&scene, &format!("instanceId={first}")).await.is_empty(), "not yet");
    scene.advance(10);
    let of_first = attachments(&scene, &format!("instanceId={first}")).await;
    let [row] = &of_first[..] else { unreachable!("one each: {of_first:?}") };
    let vnic = text(row, "vnicId");
    assert_eq!(attachments(&scene, &format!("vnicId={vnic}")).await, of_first);
    let both = |id: &str| format!("instanceId={id}&vnicId={vnic}");
    assert_eq!(attachments(&scene, &both(&first)).await, of_first);
    assert_eq!(attachments(&scene, &both(&second)).await, Vec::<Value>::new());
    assert_eq!(attachments(&scene, "limit=10").await.len(), 2);
    let other = format!("availabilityDomain=Uocm%3APHX-AD-2&instanceId={first}");
    assert_eq!(attachments(&scene, &other).await, Vec::<Value>::new());
    let addresses = format!("/20160918/privateIps?subnetId={SUBNET}&vnicId={vnic}");
    let addresses = scene.get(&addresses).await.ok().json();
    assert_eq!(addresses.as_array().map(Vec::len), Some(1), "{addresses}");
}

#[tokio::test]
async fn a_vnic_is_forgotten_with_its_machine() {
    let scene = Scene::frozen().await;
    let id = scene.launch("n1").await;
    scene.advance(10);
    let rows = attachments(&scene, &format!("instanceId={id}")).await;
    let [row] = &rows[..] else { unreachable!("one: {rows:?}") };
    let vnic = format!("/20160918/vnics/{}", text(row, "vnicId"));
    let attachment = format!("/20160918/vnicAttachments/{}", text(row, "id"));
    scene.get(&vnic).await.ok();
    assert_eq!(&scene.get(&attachment).await.ok().json(), row);
    scene.send("DELETE", &format!("/20160918/instances/{id}"), "").await.ok();
    scene.advance(10);
    scene.get(&vnic).await.refused(404, "NotAuthorizedOrNotFound");
    let left = scene.get(&attachment).await.ok().json();
    assert_eq!(text(&left, "lifecycleState"), "DETACHED");
    scene.advance(3600);
    scene.get(&attachment).await.refused(404, "NotAuthorizedOrNotFound");
    let gone = attachments(&scene, &format!("vnicId={}", text(row, "vnicId"))).await;
    assert!(gone.is_empty(), "{gone:?}");
}
