//! Addresses of servers on two networks, of which an id says which counts.

use crate::real::cloud::{connect, settings, through};
use crate::real::fixture::poll;
use crate::real::scenarios::{Harness, of_cluster};
use cloud_core::{Goal, InstanceId, Provider as _, WaitOutcome, wait_until};
use cloud_openstack::Nic;
use serde_json::Value;

/// More than are asked for one by one.
const MANY: usize = 4;

/// A project may have many more servers than ours, and Nova shows addresses by names of networks alone.
pub(crate) async fn addresses_of_many_are_looked_for_among_ours(harness: &Harness<'_>) {
    let mut settings = settings();
    settings.launch.nics = ["net-2", "net-1"].map(Nic::network).to_vec();
    settings.address_network = Some(harness.cloud.fact("/networks/net-1"));
    let entry = through(harness.proxy, harness.cloud.entry("app"));
    let provider = connect(&entry, settings).await.expect("a connection");
    let mut ids: Vec<InstanceId> = Vec::new();
    for n in 0..MANY {
        let spec = harness.spec("many", &format!("vm-{n}"));
        ids.push(provider.launch(&spec).await.expect("a launch").id);
    }
    let waited = wait_until(&provider, &ids, Goal::Addressed, poll()).await;
    let reached = |outcome: &WaitOutcome| matches!(outcome, WaitOutcome::Reached(_));
    assert!(waited.outcomes.values().all(reached), "{waited:?}");
    provider.list(&of_cluster("many")).await.expect("a listing");
    harness.proxy.take();
    let found = provider.addresses(&ids).await.expect("addresses");
    let asked = harness.proxy.take();
    let ours = |path: &str| path.starts_with("/v2.1/servers/detail?tags=cluster%3Dmany&");
    assert!(asked.len() == 1 && asked.iter().all(|it| ours(&it.path)), "{asked:?}");
    for id in &ids {
        let path = format!("/v2.1/servers/{id}");
        let shown = harness.admin.call("GET", "nova", &path, &Value::Null).await;
        let address = &shown["server"]["addresses"]["net-1"][0]["addr"];
        assert_eq!(Some(found[id].to_string().as_str()), address.as_str(), "{shown}");
    }
    harness.clean(&provider, "many").await;
}
