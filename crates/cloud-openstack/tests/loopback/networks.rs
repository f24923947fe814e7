//! Which of a server's addresses counts, and a Neutron that cannot tell.

use crate::loopback::fake::{Fake, NETWORK, PORT, SILENCE, id, nothing, with_networks};
use cloud_core::{ErrorKind, InstanceFilter, Provider as _};
use cloud_openstack::{InstanceResource, Nic};
use std::time::Duration;
use tokio::time::{Instant, pause, timeout};

const NETWORK_ROW: &str = "networks/33333333-3333-4333-8333-333333333333";

#[tokio::test]
async fn a_network_that_is_gone_does_not_make_servers_gone() {
    let fake = with_networks(&[]).await;
    let provider = fake.provider(&[Nic::network(NETWORK), Nic::network("alpha")]).await;
    let seen = provider.get(&id()).await.expect("the server is there");
    assert_eq!(seen.address, None, "which of its two addresses counts is not known");
    let listed = provider.list(&InstanceFilter::default()).await.expect("a listing");
    assert_eq!(listed.len(), 1);
    assert_eq!(fake.asked("GET /network/").len(), 1, "Neutron is left alone for a while");
}

#[tokio::test]
async fn the_address_on_the_network_of_the_first_port_counts() {
    const NEUTRON: &[(&str, u16, &str)] = &[
        (
            "ports/44444444-4444-4444-8444-444444444444",
            200,
            r#"{"port": {"network_id": "33333333-3333-4333-8333-333333333333"}}"#,
        ),
        ("networks/33333333-3333-4333-8333-333333333333", 200, r#"{"network": {"name": "slurm"}}"#),
    ];
    let fake = with_networks(NEUTRON).await;
    for first in [Nic::Port(PORT.to_owned()), Nic::network(NETWORK), Nic::network("slurm")] {
        let provider = fake.provider(&[first, Nic::network("alpha")]).await;
        let seen = provider.get(&id()).await.expect("a server").address.map(|it| it.to_string());
        assert_eq!(seen.as_deref(), Some("10.1.0.7"));
    }
}

#[tokio::test]
async fn a_neutron_that_hangs_does_not_hide_servers() {
    let fake = with_networks(&[(NETWORK_ROW, SILENCE, "")]).await;
    let provider = fake.provider(&[Nic::network(NETWORK), Nic::network("alpha")]).await;
    pause();
    let begun = Instant::now();
    let listed = provider.list(&InstanceFilter::default()).await.expect("a listing");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(listed.iter().map(|it| it.address).collect::<Vec<_>>(), [None]);
    let error = provider.addresses(&[id()]).await.expect_err("nobody knows which");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no network name from Neutron"), "{error}");
    assert_eq!(fake.asked("GET /network/").len(), 1, "Neutron is left alone for a while");
}

#[tokio::test]
async fn an_abandoned_lookup_is_not_repeated_at_once() {
    let fake = with_networks(&[(NETWORK_ROW, SILENCE, "")]).await;
    let provider = fake.provider(&[Nic::network(NETWORK), Nic::network("alpha")]).await;
    pause();
    let filter = InstanceFilter::default();
    timeout(Duration::from_secs(1), provider.list(&filter)).await.expect_err("it hangs");
    let begun = Instant::now();
    provider.list(&filter).await.expect("a listing");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(fake.asked("GET /network/").len(), 1);
}

#[tokio::test]
async fn an_unknown_address_is_explained() {
    const REFUSED: &str = r#"{"NeutronError": {"type": "NetworkNotFound", "message": "gone"}}"#;
    let fake = with_networks(&[(NETWORK_ROW, 404, REFUSED)]).await;
    let provider = fake.provider(&[Nic::network(NETWORK), Nic::network("alpha")]).await;
    let error = provider.addresses(&[id()]).await.expect_err("nobody knows which");
    assert!(error.to_string().contains("gone (NetworkNotFound)"), "{error}");
}

#[tokio::test]
async fn a_neutron_that_does_not_answer_is_asked_once() {
    let fake = Fake::new("2.95", |asked| match asked.line.as_str() {
        line if line.starts_with("GET /network/") => (SILENCE, String::new()),
        _ => nothing(),
    })
    .await;
    let provider = fake.provider(&["alpha", "beta", "gamma"].map(Nic::network)).await;
    pause();
    let begun = Instant::now();
    let resources =
        provider.check_launch_resources(&[InstanceResource::Network("delta".to_owned())]).await;
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    assert_eq!(fake.asked("GET /network/").len(), 1);
    let told = resources.iter().map(|it| it.found.as_ref().expect_err("no answer").to_string());
    for (told, name) in told.zip(["alpha", "beta", "gamma", "delta"]) {
        assert!(told.contains(&format!("network {name}: ")), "{told}");
    }
}
