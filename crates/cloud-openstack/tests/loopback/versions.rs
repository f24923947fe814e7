//! Catalogs that name no version of Nova, or the one from before microversions.

use crate::loopback::fake::{Asked, Fake, by_token, id, nothing, server, token_with};
use cloud_core::Provider as _;
use cloud_openstack::LaunchOptions;
use serde_json::{Value, json};

const KEYSTONE: &str = "POST /identity/v3/auth/tokens";

/// A cloud whose catalog has Nova at this path, and what it answers there.
async fn cloud(path: &'static str, asked_at: &'static str, body: Value) -> Fake {
    Fake::new("2.95", move |asked: &Asked| match asked.line.as_str() {
        KEYSTONE => token_with(asked, path),
        line if line == asked_at => (200, body.to_string()),
        line if line.contains("/servers/") => (200, json!({"server": server()}).to_string()),
        _ => nothing(),
    })
    .await
}

#[tokio::test]
async fn a_nova_without_a_version_in_the_catalog_is_found() {
    let link = |href: &str| json!([{"rel": "self", "href": href}]);
    let versions = json!({"versions": [
        {"id": "v2.0", "version": "", "links": link("http://inside:8774/compute/v2/")},
        {"id": "v2.1", "version": "2.95", "links": link("http://inside:8774/compute/v2.1/")},
    ]});
    for path in ["compute", "compute/"] {
        let fake = cloud(path, "GET /compute/", versions.clone()).await;
        fake.provider(&[]).await.get(&id()).await.expect("a server");
        assert_eq!(fake.asked("GET /compute/v2.1/servers/").len(), 1);
    }
    let nowhere = json!({"versions": [
        {"id": "v2.1", "version": "2.95", "links": link("http://inside:8774/v2.1/")},
    ]});
    let fake = cloud("compute", "GET /compute/", nowhere).await;
    let error = fake.connect(&by_token(), LaunchOptions::default()).await;
    let error = error.expect_err("it is not there").to_string();
    assert!(error.contains("/v2.1/ does not answer as Nova does"), "{error}");
}

#[tokio::test]
async fn a_nova_with_its_old_version_in_the_catalog_is_found() {
    let old = json!({"version": {"id": "v2.0", "version": "", "links": []}});
    let fake = cloud("compute/v2/p1", "GET /compute/v2/", old.clone()).await;
    fake.provider(&[]).await.get(&id()).await.expect("a server");
    assert_eq!(fake.asked("GET /compute/v2.1/p1/servers/").len(), 1);
    let fake = cloud("old/v2/p1", "GET /old/v2/", old).await;
    let error = fake.connect(&by_token(), LaunchOptions::default()).await;
    let error = error.expect_err("it has no other").to_string();
    assert!(error.contains("its Nova offers microversion 2.0 at most"), "{error}");
    assert_eq!(fake.asked("GET /old/v2.1/").len(), 1, "it was looked for");
}
