//! Servers of a cell that is down.

use crate::loopback::fake::{Fake, IMAGE, SERVER, id, nothing, server};
use cloud_core::{ErrorKind, ImageId, InstanceFilter, InstanceId, Provider as _};
use serde_json::{Value, json};

const SHOWN: &str = "55555555-5555-4555-8555-555555555555";

/// What Nova shows of a server whose cell does not answer.
fn hidden() -> Value {
    json!({"id": SERVER, "status": "UNKNOWN", "tenant_id": "p", "created": "2026-11-16T00:19:33Z",
        "links": [], "image": {"id": IMAGE}, "flavor": {"original_name": "tiny"}, "user_id": "u",
        "OS-EXT-AZ:availability_zone": "UNKNOWN", "OS-EXT-STS:power_state": 0, "server_groups": []})
}

async fn half_down() -> Fake {
    Fake::new("2.90", |asked| {
        let mut other = server();
        other["id"] = json!(SHOWN);
        other["addresses"] = json!({"slurm": [{"addr": "10.1.0.7"}]});
        match asked.line.as_str() {
            line if line.contains("/servers/detail") => {
                (200, json!({"servers": [hidden(), other]}).to_string())
            }
            line if line.ends_with(SHOWN) => (200, json!({"server": other}).to_string()),
            line if line.ends_with(SERVER) => (200, json!({"server": hidden()}).to_string()),
            _ => nothing(),
        }
    })
    .await
}

#[tokio::test]
async fn a_server_in_a_cell_that_is_down_is_unavailable() {
    let fake = half_down().await;
    let provider = fake.provider(&[]).await;
    let error = provider.get(&id()).await.expect_err("nobody knows whose it is");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("its cell does not answer"), "{error}");
    let error = provider.rebuild(&id(), &ImageId::new(IMAGE)).await.expect_err("a volume or not");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let listed = provider.list(&InstanceFilter::default()).await.expect("a listing");
    assert_eq!(listed.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), [SHOWN]);
}

#[tokio::test]
async fn a_server_in_a_cell_that_is_down_keeps_no_address_of_others() {
    let fake = half_down().await;
    let ids = [id(), InstanceId::new(SHOWN)];
    let found = fake.provider(&[]).await.addresses(&ids).await.expect("addresses");
    assert_eq!(found.keys().map(InstanceId::as_str).collect::<Vec<_>>(), [SHOWN]);
}
