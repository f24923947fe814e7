//! What a real OpenStack does that no suite for all clouds can ask about.

pub(crate) use crate::real::addresses::addresses_of_many_are_looked_for_among_ours;
use crate::real::cloud::{Caller, Cloud, PATIENCE, connect, settings, through, until};
use crate::real::fixture::poll;
pub(crate) use crate::real::launch_resources::resources_of_launches_are_looked_up;
pub(crate) use crate::real::legacy_tag::servers_with_the_legacy_tag_alone_are_listed;
use crate::real::proxy::{Proxy, Seen};
use cloud_core::{
    ErrorKind, Fault, Goal, ImageFilter, ImageId, ImageName, Instance, InstanceFilter, InstanceId,
    InstanceName, InstanceSpec, InstanceState, Provider, Secret, ShapeName, Tags, WaitOutcome,
    wait_until,
};
use cloud_openstack::{LaunchOptions, Nic, OpenStack};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) struct Harness<'a> {
    pub(crate) cloud: &'a Cloud,
    pub(crate) proxy: &'a Proxy,
    pub(crate) admin: &'a Caller,
    /// As demo, with the application credential.
    pub(crate) provider: &'a OpenStack,
}

/// The tags of a cluster.
pub(crate) fn tags(cluster: &str, node: &str) -> Tags {
    Tags::from([("cluster", cluster), ("type", "compute"), ("node", node)])
}

pub(crate) fn of_cluster(cluster: &str) -> InstanceFilter {
    InstanceFilter::tagged(Tags::from([("cluster", cluster)]))
}

/// Nova may still show it for a moment, as DELETED.
fn is_gone(outcome: &WaitOutcome) -> bool {
    matches!(outcome, WaitOutcome::Gone | WaitOutcome::Reached(_))
}

impl Harness<'_> {
    pub(crate) fn spec(&self, cluster: &str, node: &str) -> InstanceSpec {
        let image = ImageId::new(self.cloud.fact("/images/image-1"));
        let name = InstanceName::new(node);
        let mut spec = InstanceSpec::new(name, ShapeName::new("m1.tiny"), image);
        spec.tags = tags(cluster, node);
        spec
    }

    async fn ended(&self, id: &InstanceId) -> WaitOutcome {
        let ids = std::slice::from_ref(id);
        let mut waited = wait_until(self.provider, ids, Goal::Running, poll()).await;
        waited.outcomes.remove(id).expect("an outcome")
    }

    async fn running(&self, id: &InstanceId) -> Instance {
        match self.ended(id).await {
            WaitOutcome::Reached(instance) => instance,
            other => panic!("{id} does not run: {other:?}"),
        }
    }

    pub(crate) async fn clean(&self, provider: &OpenStack, cluster: &str) {
        let filter = of_cluster(cluster);
        let ids: Vec<InstanceId> =
            provider.list(&filter).await.expect("a listing").into_iter().map(|it| it.id).collect();
        for id in &ids {
            provider.terminate(id).await.expect("a terminate");
        }
        let waited = wait_until(provider, &ids, Goal::Gone, poll()).await;
        assert!(waited.outcomes.values().all(is_gone), "{waited:?}");
    }

    async fn ports(&self) -> usize {
        let path = format!("/v2.0/ports?project_id={}", self.cloud.fact("/projects/demo"));
        let ports = self.admin.call("GET", "neutron", &path, &Value::Null).await;
        ports["ports"].as_array().map_or(usize::MAX, Vec::len)
    }
}

/// A launch with every option, which the real client sees; then rebuilt, and deleted twice.
pub(crate) async fn one_server_with_everything(harness: &Harness<'_>) {
    let mut spec = harness.spec("whole", "vm-1");
    spec.image = ImageId::new("image-1");
    spec.zone = Some(cloud_core::Zone::new("nova"));
    spec.user_data = Some(Secret::new("#cloud-config\n".to_owned()));
    let mut options = LaunchOptions::default();
    let address = "10.30.1.77".parse().expect("an address");
    let fixed = Nic::Network { network: "net-2".to_owned(), address: Some(address) };
    options.nics = vec![fixed, Nic::network("net-1")];
    options.security_groups = vec!["slurm".to_owned()];
    options.keypair = Some("key-1".to_owned());
    options.config_drive = true;
    options.server_group = Some("together".to_owned());
    options.extra_tags = vec!["compute".to_owned()];
    let launched = harness.provider.launch_with(&spec, &options).await.expect("a launch");
    harness.running(&launched.id).await;
    let mut first = settings();
    first.launch = options;
    let same = connect(&harness.cloud.entry("app"), first).await.expect("a connection");
    let seen = same.get(&launched.id).await.expect("a server");
    assert_eq!(seen.address, Some(address), "that of the first interface counts");
    the_client_sees_it(harness.cloud, &launched.id).await;
    it_is_in_its_groups(harness, &launched.id).await;
    rebuilt_while_it_is_rebuilt(harness, &launched.id).await;
    deleted_twice(harness, &launched.id).await;
}

async fn the_client_sees_it(cloud: &Cloud, id: &InstanceId) {
    let shown = cloud.client(&["server", "show", id.as_str()]).await;
    let tags = shown["tags"].as_array().expect("tags");
    let mut tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["cluster=whole", "compute", "node=vm-1", "type=compute"]);
    let metadata = json!({"cluster": "whole", "node": "vm-1", "type": "compute"});
    assert_eq!(shown["properties"], metadata);
    assert_eq!(shown["addresses"]["net-2"], json!(["10.30.1.77"]));
    assert_eq!((&shown["key_name"], &shown["config_drive"]), (&json!("key-1"), &json!("True")));
    assert!(shown["image"].to_string().contains("image-1"), "{}", shown["image"]);
    println!("  the client sees tags {tags:?}, metadata {}", shown["properties"]);
}

async fn it_is_in_its_groups(harness: &Harness<'_>, id: &InstanceId) {
    let path = format!("/v2.0/ports?device_id={id}&fields=security_groups");
    let ports = harness.admin.call("GET", "neutron", &path, &Value::Null).await;
    let slurm = json!({"security_groups": [harness.cloud.fact("/security_group")]});
    assert_eq!(ports["ports"], json!([slurm, slurm]));
    let group = harness.cloud.fact("/server_group");
    let path = format!("/v2.1/os-server-groups/{group}");
    let group = harness.admin.call("GET", "nova", &path, &Value::Null).await;
    assert_eq!(group["server_group"]["members"], json!([id.as_str()]));
}

async fn rebuilt_while_it_is_rebuilt(harness: &Harness<'_>, id: &InstanceId) {
    let (cloud, provider) = (harness.cloud, harness.provider);
    cloud.order("rebuild", "delay 170");
    let image = ImageId::new(cloud.fact("/images/image-2"));
    provider.rebuild(id, &image).await.expect("a rebuild");
    let error = provider.rebuild(id, &image).await.expect_err("it is being rebuilt");
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let during = provider.get(id).await.expect("a server");
    let early = (InstanceState::Pending, Some(image.clone()));
    assert_eq!((during.state, during.image), early, "its image changes early");
    cloud.order("rebuild", "");
    let waited =
        wait_until(provider, std::slice::from_ref(id), Goal::RunningImage(&image), poll()).await;
    assert!(matches!(waited.outcomes[id], WaitOutcome::Reached(_)), "{waited:?}");
    let shown = cloud.client(&["server", "show", id.as_str()]).await;
    assert!(shown["image"].to_string().contains(image.as_str()), "{}", shown["image"]);
    println!("  the client sees image {} after the rebuild", shown["image"]);
}

async fn deleted_twice(harness: &Harness<'_>, id: &InstanceId) {
    let (cloud, provider) = (harness.cloud, harness.provider);
    cloud.order("destroy", "delay 170");
    provider.terminate(id).await.expect("a terminate");
    provider.terminate(id).await.expect("another while it goes");
    let state = provider.get(id).await.expect("a server").state;
    assert_eq!(state, InstanceState::Terminating);
    cloud.order("destroy", "");
    harness.clean(provider, "whole").await;
    provider.terminate(id).await.expect("another when it is gone");
}

/// A hypervisor that fails is seen, and its server can be removed and replaced.
pub(crate) async fn a_spawn_error_is_a_fault(harness: &Harness<'_>) {
    harness.cloud.order("spawn-bad", "error hypervisor on fire");
    let launched = harness.provider.launch(&harness.spec("fire", "bad")).await.expect("a launch");
    let WaitOutcome::Lost(Instance { fault: Some(Fault { kind, message }), .. }) =
        harness.ended(&launched.id).await
    else {
        panic!("it is not seen to have failed");
    };
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(message.contains("hypervisor on fire"), "{message}");
    harness.cloud.order("spawn-bad", "");
    harness.clean(harness.provider, "fire").await;
    let again = harness.provider.launch(&harness.spec("fire", "bad")).await.expect("a launch");
    harness.running(&again.id).await;
    harness.clean(harness.provider, "fire").await;
}

/// Names that are patterns, and names that are the beginning of others, mean themselves.
pub(crate) async fn a_name_is_not_a_pattern(harness: &Harness<'_>) {
    for name in ["vm.1", "vmx1", "vm.10"] {
        harness.provider.launch(&harness.spec("pattern", name)).await.expect("a launch");
    }
    for (name, expected) in
        [("vm.1", vec!["vm.1"]), ("vm.*", vec![]), ("vm", vec![]), ("vmx1", vec!["vmx1"])]
    {
        let filter = of_cluster("pattern").named(InstanceName::new(name));
        let listed = harness.provider.list(&filter).await.expect("a listing");
        let listed: Vec<&str> = listed.iter().map(|instance| instance.name.as_str()).collect();
        assert_eq!(listed, expected, "{name}");
    }
    harness.clean(harness.provider, "pattern").await;
}

/// Another project's server with the same name and tags is neither seen nor touched.
pub(crate) async fn another_projects_server_is_left_alone(harness: &Harness<'_>) {
    let other = connect(&through(harness.proxy, harness.cloud.entry("other")), settings())
        .await
        .expect("a connection");
    let spec = harness.spec("twins", "vm-1");
    let theirs = other.launch(&spec).await.expect("a launch");
    let ours = harness.provider.launch(&spec).await.expect("a launch");
    harness.running(&ours.id).await;
    let listed = harness.provider.list(&of_cluster("twins")).await.expect("a listing");
    assert_eq!(listed.iter().map(|it| &it.id).collect::<Vec<_>>(), [&ours.id]);
    harness.provider.terminate(&theirs.id).await.expect("to us it is not there");
    harness.clean(harness.provider, "twins").await;
    let waited = wait_until(&other, std::slice::from_ref(&theirs.id), Goal::Running, poll()).await;
    assert!(matches!(waited.outcomes[&theirs.id], WaitOutcome::Reached(_)), "{waited:?}");
    harness.clean(&other, "twins").await;
}

/// Neutron's quota comes through Nova, and is told from what policy forbids.
pub(crate) async fn a_port_quota_is_a_quota(harness: &Harness<'_>) {
    let path = format!("/v2.0/quotas/{}", harness.cloud.fact("/projects/demo"));
    harness.admin.call("PUT", "neutron", &path, &json!({"quota": {"port": 0}})).await;
    let refused = harness.provider.launch(&harness.spec("ports", "vm-1")).await;
    harness.admin.call("PUT", "neutron", &path, &json!({"quota": {"port": 500}})).await;
    let error = refused.expect_err("no ports");
    assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
    println!("  {error}");
    assert!(harness.provider.list(&of_cluster("ports")).await.expect("a listing").is_empty());
    let limits = harness.provider.limits().await.expect("limits");
    let names: Vec<&str> = limits.iter().map(|limit| limit.name.as_str()).collect();
    assert!(names.contains(&"instances") && names.contains(&"ports"), "{names:?}");
}

/// Two things of one name are refused, with their ids; so is what is not there.
pub(crate) async fn an_ambiguous_name_is_refused(harness: &Harness<'_>) {
    let mut options = LaunchOptions::default();
    options.nics = vec![Nic::network("twin")];
    let spec = harness.spec("names", "vm-1");
    let mut twin = spec.clone();
    twin.image = ImageId::new("twin");
    let mut nothing = spec.clone();
    nothing.shape = ShapeName::new("m1.tin");
    let results = [
        (harness.provider.launch_with(&spec, &options).await, "2 networks are called 'twin'"),
        (harness.provider.launch(&twin).await, "2 images are called 'twin'"),
        (harness.provider.launch(&nothing).await, "no flavor 'm1.tin' is visible"),
    ];
    for (result, words) in results {
        let error = result.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(words), "{error}");
        println!("  {error}");
    }
    let filter = ImageFilter {
        tags: Tags::from([("compute", ""), ("cluster", "blue")]),
        name: Some(ImageName::new("twin")),
    };
    let images = harness.provider.images(&filter).await.expect("images");
    assert_eq!(images.len(), 2);
    assert!(images.is_sorted_by(|a, b| a.created >= b.created), "newest first");
    let shapes = harness.provider.shapes().await.expect("shapes");
    let small = shapes.iter().find(|shape| shape.name.as_str() == "m1.small").expect("a shape");
    assert_eq!((small.vcpus, small.memory_mib, small.gpus), (2, 2048, 2));
}

fn tokens(seen: &[Seen]) -> usize {
    seen.iter().filter(|it| it.service == "keystone" && it.path.ends_with("/auth/tokens")).count()
}

/// Tokens that end in the middle of it all, and one that is revoked, are renewed without a word.
pub(crate) async fn tokens_are_renewed(harness: &Harness<'_>) {
    let life = harness.cloud.directory.join("token-life");
    std::fs::write(&life, "12").expect("an order");
    let mut short = settings();
    // Used until somebody says that it has expired.
    short.renew_before = Duration::ZERO;
    let entry = through(harness.proxy, harness.cloud.entry("app"));
    let provider = connect(&entry, short).await.expect("a connection");
    harness.proxy.take();
    until("an expired token is met and renewed", || async {
        provider.images(&ImageFilter::default()).await.expect("images");
        let seen = harness.proxy.take();
        let met = seen.iter().any(|it| it.service == "glance" && it.status == 401);
        assert_eq!(tokens(&seen), usize::from(met), "{seen:?}");
        met
    })
    .await;
    std::fs::remove_file(&life).expect("no order");

    let provider = connect(&entry, settings()).await.expect("a connection");
    provider.images(&ImageFilter::default()).await.expect("images");
    harness.admin.revoke(&harness.proxy.token()).await;
    harness.proxy.take();
    provider.images(&ImageFilter::default()).await.expect("images with a new token");
    let seen = harness.proxy.take();
    let statuses: Vec<u16> = seen.iter().map(|it| it.status).collect();
    assert_eq!(statuses, [401, 201, 200], "{seen:?}");
}

/// Credentials that Keystone does not take are told in one sentence.
pub(crate) async fn bad_credentials_are_told_in_one_sentence(harness: &Harness<'_>) {
    let mut wrong = harness.cloud.entry("app");
    wrong["auth"]["application_credential_secret"] = json!("wrong");
    let mut expired = harness.cloud.entry("app");
    expired["auth"]["application_credential_id"] =
        json!(harness.cloud.fact("/credentials/expired/id"));
    expired["auth"]["application_credential_secret"] =
        json!(harness.cloud.fact("/credentials/expired/secret"));
    let mut elsewhere = harness.cloud.entry("app");
    elsewhere["region_name"] = json!("Nowhere");
    let auth_url =
        harness.cloud.entry("app")["auth"]["auth_url"].as_str().expect("a text").to_owned();
    let origin = "cloud 'test' in /etc/openstack/clouds.yaml";
    let refused = format!(
        "{origin}: {auth_url} refuses the application credential: check that it is right, has not expired and has not been deleted"
    );
    let no_service =
        format!("{origin}: no compute service (public) in region Nowhere in the catalog");
    for (entry, expected) in [(wrong, &refused), (expired, &refused), (elsewhere, &no_service)] {
        let error = connect(&entry, settings()).await.expect_err("a refusal").to_string();
        assert!(error.starts_with(expected.as_str()), "{error}");
        println!("  {error}");
    }
    let mut named = harness.cloud.entry("app");
    named["auth"] = json!({"auth_url": auth_url, "username": "demo", "user_domain_name": "Default",
        "application_credential_name": harness.cloud.fact("/credentials/good/name"),
        "application_credential_secret": harness.cloud.fact("/credentials/good/secret")});
    connect(&named, settings()).await.expect("by name");
    connect(&harness.cloud.entry("demo"), settings()).await.expect("by password");
}

/// So many at once: one request for each, one for each look, a few besides; and nothing is left.
pub(crate) async fn a_batch_costs_what_it_must(harness: &Harness<'_>, count: usize) {
    let cluster = format!("batch-{count}");
    let ports = harness.ports().await;
    let entry = through(harness.proxy, harness.cloud.entry("app"));
    harness.proxy.take();
    let provider = connect(&entry, settings()).await.expect("a connection");
    let specs: Vec<InstanceSpec> =
        (0..count).map(|n| harness.spec(&cluster, &format!("vm-{n:04}"))).collect();
    let mut ids = Vec::new();
    for result in join_all(specs.iter().map(|spec| provider.launch(spec)).collect()).await {
        ids.push(result.expect("a launch").id);
    }
    let asked = harness.proxy.take();
    let creates =
        asked.iter().filter(|it| it.method == "POST" && it.path == "/v2.1/servers").count();
    let constant = asked.len() - creates;
    let polls = looks_until_all_run(&provider, &of_cluster(&cluster), count).await;
    let looked = harness.proxy.take();
    // One that failed was repeated, which is no look of ours.
    let looks = looked.iter().filter(|it| it.status == 200).count();
    let failed = looked.len() - looks;
    println!(
        "  {count} servers: {creates} creates, {looks} requests for {polls} looks ({failed} failed), {constant} others"
    );
    assert!(creates <= count && looks == polls && constant <= 5, "{asked:?}");
    for result in join_all(ids.iter().map(|id| provider.terminate(id)).collect()).await {
        result.expect("a terminate");
    }
    let waited = wait_until(&provider, &ids, Goal::Gone, poll()).await;
    assert!(waited.last_error.is_none() && waited.outcomes.values().all(is_gone), "{waited:?}");
    until("no port is left", || async { harness.ports().await == ports }).await;
}

/// How many looks it takes until so many run.
async fn looks_until_all_run(provider: &OpenStack, filter: &InstanceFilter, count: usize) -> usize {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut looks = 0;
    loop {
        let listed = provider.list(filter).await.expect("a listing");
        looks += 1;
        assert!(listed.iter().all(|it| it.state != InstanceState::Failed), "{listed:?}");
        if listed.iter().filter(|it| it.state == InstanceState::Running).count() == count {
            return looks;
        }
        assert!(tokio::time::Instant::now() < deadline, "they do not run");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// All of them at a time; the results are in the order of the futures.
async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut pinned: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = pinned.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, result) in pinned.iter_mut().zip(&mut results) {
            if result.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    results.into_iter().flatten().collect()
}
