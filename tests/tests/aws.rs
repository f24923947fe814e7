//! The whole system in AWS: moto's server behind a proxy, read back with boto3.
//!
//! Many scenarios on each cluster, since moto takes its time to start.
#![expect(clippy::indexing_slicing, reason = "a missing field of JSON is null")]

use cloud_sim::{Fault, Rule, Throttle};
use e2e::{Aws, Cluster, Machine, USUAL, in_namespaces};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

const NODES: usize = 4;

/// The name of a node.
fn name(number: usize) -> String {
    format!("c1-t3-small-{number:04}")
}

/// Runs a part of a scenario, and says how long it took and what it asked.
fn part(cluster: &Cluster<Aws>, what: &str, scenario: impl FnOnce(&Cluster<Aws>)) {
    let begun = Instant::now();
    cluster.site().proxy().clear_requests();
    scenario(cluster);
    let asked = cluster.site().proxy().counts();
    println!("{what}: {:.1} s, {asked:?}", begun.elapsed().as_secs_f32());
    cluster.site().proxy().clear_faults();
}

/// Runs a job of all nodes, which is to end well at the first go; gives how many instances it took.
fn runs(cluster: &Cluster<Aws>) -> usize {
    let before = cluster.site().instances().len();
    let job = cluster.submit(&[&format!("--nodes={NODES}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    let names: BTreeSet<_> = (1..=NODES).map(name).collect();
    assert_eq!(cluster.hosts(job), names, "{}", cluster.story());
    cluster.site().instances().len() - before
}

/// Has idle nodes go, and waits until all have.
fn all_go(cluster: &Cluster<Aws>) {
    cluster.suspend_after(1);
    cluster.wait_empty();
    cluster.suspend_after(600);
}

/// What is not signed with the key of a user is refused, so that what passes is signed as AWS demands.
fn refuses(cluster: &Cluster<Aws>) {
    let credentials = cluster.site().file("credentials");
    let right = std::fs::read_to_string(&credentials).unwrap();
    let wrong = right.replace("secret_access_key = ", "secret_access_key = X");
    std::fs::write(&credentials, wrong).unwrap();
    let refused = cluster.run("listnodes", &[]);
    std::fs::write(&credentials, right).unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("AuthFailure"), "{refused:?}");
    let listed = cluster.run("listnodes", &[]);
    assert!(listed.status.success(), "{listed:?}");
}

fn comes_and_goes(cluster: &Cluster<Aws>) {
    assert_eq!(runs(cluster), NODES, "each node has one instance, once");
    let present = cluster.present();
    let addresses: BTreeMap<_, _> =
        present.iter().map(|one| (one.name.clone(), one.address.clone())).collect();
    assert_eq!(cluster.node_fields("NodeAddr"), addresses, "{}", cluster.story());
    for instance in cluster.site().instances() {
        let tags = ["cluster", "type"].map(|key| Aws::tag(&instance, key));
        assert_eq!(tags, [Some("c1"), Some("compute")], "{instance}");
        assert_eq!(instance["MetadataOptions"]["HttpTokens"], "required", "{instance}");
        assert_eq!(instance["KeyName"], "key-1", "{instance}");
        assert_eq!(instance["ImageId"], cluster.site().image("image-1"), "{instance}");
        assert_eq!(instance["SubnetId"], cluster.site().fact("/subnets/eu-west-1a"), "{instance}");
    }
    let asked = cluster.site().proxy().counts();
    assert_eq!(asked.get("RunInstances"), Some(&1), "one request for all: {asked:?}");
    // AWS's own command line finds them by the tags, too.
    let filter = "Name=tag:cluster,Values=c1";
    let listed = cluster.site().cli(&["ec2", "describe-instances", "--filters", filter]);
    let reservations = listed["Reservations"].as_array().expect("reservations");
    let by_cli: BTreeSet<_> = reservations
        .iter()
        .flat_map(|reservation| reservation["Instances"].as_array().expect("instances"))
        .filter_map(|instance| instance["PrivateIpAddress"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(by_cli, addresses.values().cloned().collect(), "{listed}");
    all_go(cluster);
}

/// Two fit into the first zone, and the other two go to the second.
fn goes_elsewhere(cluster: &Cluster<Aws>) {
    cluster.site().set_room(Some("eu-west-1a"), Some(2));
    assert_eq!(runs(cluster), NODES, "each node has one instance, once");
    let in_zone = |zone: &str| {
        let present = cluster.present();
        present.iter().filter(|one| one.zone == zone).count()
    };
    assert_eq!([in_zone("eu-west-1a"), in_zone("eu-west-1b")], [2, 2], "{}", cluster.story());
    cluster.site().set_room(None, None);
    all_go(cluster);
}

fn bears_faults(cluster: &Cluster<Aws>) {
    let proxy = cluster.site().proxy();
    for fault in [Fault::DropAfter, Fault::DropBefore] {
        proxy.add_fault(&Rule::once("RunInstances", fault));
    }
    let unavailable = Fault::answer(503, "Unavailable", "The service is unavailable.");
    proxy.add_fault(&Rule::once("DescribeInstances", unavailable));
    assert_eq!(runs(cluster), NODES, "a lost answer is not launched again");
    let lost = |one: &&cloud_sim::Recorded| one.status.is_none();
    assert_eq!(proxy.requests().iter().filter(lost).count(), 2, "{}", cluster.story());
    all_go(cluster);
}

/// New instances are not in listings for some seconds, and requests are refused that are too many.
fn bears_lag(cluster: &Cluster<Aws>) {
    let proxy = cluster.site().proxy();
    proxy.set_lag(3000);
    proxy.set_throttle(&[Throttle { operation: "*".to_owned(), per_second: 4.0, burst: 2.0 }]);
    assert_eq!(runs(cluster), NODES, "what is not listed yet is not launched again");
    proxy.set_lag(0);
    proxy.set_throttle(&[]);
    all_go(cluster);
}

fn rolls(cluster: &Cluster<Aws>) {
    let cloud = cluster.site();
    let _ = runs(cluster);
    let addresses = |machines: Vec<Machine>| -> BTreeMap<String, String> {
        machines.into_iter().map(|one| (one.id, one.address)).collect()
    };
    let before = addresses(cluster.present());
    let image = format!("citc-slurm-compute-{}", "image-2");
    let _ = cluster.well("rebuild", &["submit", "--image", &image, "--batch", "2"]);
    for machine in cluster.present() {
        assert_eq!(machine.image, cloud.image("image-2"), "{machine:?}\n{}", cluster.story());
        assert_eq!(cloud.boots(&machine.id), ["start", "replace"], "{}", cluster.story());
    }
    assert_eq!(addresses(cluster.present()), before, "in place");
    assert_eq!(runs(cluster), 0, "all of them are back");
}

/// The lines of nodes that Cluster in the Cloud writes for `t3a.small: 3` and `t3a.medium: 3`.
const CITC_LINES: &str = include_str!("../../crates/slurmconf/tests/golden/nodelines.json");

/// CitC's startnode.yaml for a cluster, and behind it where a test has the API, Slurm and the image.
fn citcs_file(cluster: &Cluster<Aws>, id: &str, ours: &str) -> String {
    let keys = ["endpoint:", "image_id:", "slurm_", "restart_command:", "elastic:"];
    let ours = ours.lines().filter(|line| keys.iter().any(|key| line.starts_with(key)));
    let ours = ours.collect::<Vec<_>>().join("\n");
    let fact = |path| cluster.site().fact(path);
    format!(
        "csp: aws
region: {}
subnet: {}
compute_security_group: {}
dns_zone: {id}.citc.local.
dns_zone_id: Z00000000000000000000
ansible_repo: https://github.com/clusterinthecloud/ansible.git
ansible_branch: 6
cluster_id: {id}
{ours}
",
        fact("/region"),
        fact("/subnets/eu-west-1b"),
        fact("/security_group"),
    )
}

fn takes_citcs_files(cluster: &Cluster<Aws>) {
    let (path, limits) =
        (cluster.dir().join("etc/startnode.yaml"), cluster.dir().join("citc-limits.yaml"));
    let ours = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, citcs_file(cluster, "useful-gnu", &ours)).unwrap();
    std::fs::write(&limits, "t3a.small: 3\nt3a.medium: 3\n").unwrap();
    let arguments = ["--style", "citc", "--print", "--limits", limits.to_str().unwrap()];
    let printed = cluster.well("finish", &arguments);
    let golden: Value = serde_json::from_str(CITC_LINES).unwrap();
    let lines = golden["aws-docs"]["lines"].as_array().unwrap().iter().filter_map(Value::as_str);
    assert_eq!(printed.lines().collect::<Vec<_>>(), lines.collect::<Vec<_>>());
    std::fs::write(&path, citcs_file(cluster, "c1", &ours)).unwrap();
    assert_eq!(runs(cluster), NODES, "each node has one instance, once");
    let instances = cluster.site().instances();
    let live = instances.iter().filter(|it| it["State"]["Name"] == "running");
    let names: BTreeSet<_> = live
        .map(|instance| {
            assert_eq!(instance["KeyName"], "ec2-user-c1", "{instance}");
            let profile = instance["IamInstanceProfile"]["Arn"].as_str().unwrap_or_default();
            assert!(profile.ends_with("/describe_tags-c1"), "{instance}");
            assert_eq!(instance["SubnetId"], cluster.site().fact("/subnets/eu-west-1b"));
            assert!(instance["PublicIpAddress"].is_string(), "{instance}");
            assert_eq!(instance["MetadataOptions"]["HttpTokens"], "optional", "{instance}");
            Aws::tag(instance, "Name").unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(names, (1..=NODES).map(name).collect());
    all_go(cluster);
    std::fs::write(&path, ours).unwrap();
}

/// Instances of others: of another cluster with the name of a node, and without tags.
fn launch_foreign(cluster: &Cluster<Aws>) -> BTreeSet<String> {
    let cloud = cluster.site();
    // Nobody boots them as a machine of ours.
    cluster.fate("foreign", "never");
    let launch = |tags: &[(&str, &str)]| {
        let tags: Vec<Value> =
            tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
        let spec = json!([{"ResourceType": "instance", "Tags": tags}]);
        let launched = cloud.boto3(
            "run_instances",
            &json!({
                "ImageId": cloud.image("image-1"),
                "InstanceType": "t3.small",
                "SubnetId": cloud.fact("/subnets/eu-west-1c"),
                "MinCount": 1,
                "MaxCount": 1,
                "TagSpecifications": spec,
            }),
        );
        launched["Instances"][0]["InstanceId"].as_str().unwrap_or_default().to_owned()
    };
    [
        launch(&[("Name", "foreign"), ("cluster", "c2"), ("type", "compute"), ("node", &name(1))]),
        launch(&[("Name", "foreign"), ("type", "compute"), ("node", &name(1))]),
        launch(&[("Name", "foreign"), ("cluster", "c1")]),
    ]
    .into()
}

fn stops_all(cluster: &Cluster<Aws>) {
    let foreign = launch_foreign(cluster);
    assert_eq!(cluster.live().len(), NODES + foreign.len());
    let _ = cluster.well("reconcile", &["--apply"]);
    cluster.stop_slurmctld("TERM");
    let _ = cluster.well("stopnode", &["--all", "--dry-run"]);
    assert_eq!(cluster.live().len(), NODES + foreign.len());
    let _ = cluster.well("stopnode", &["--all", "--force"]);
    let left = || -> BTreeSet<String> { cluster.present().into_iter().map(|one| one.id).collect() };
    cluster.until("ours are gone", || left().len() <= foreign.len());
    assert_eq!(left(), foreign, "what is not ours is untouched\n{}", cluster.story());
}

#[test]
fn nodes_come_go_elsewhere_and_are_rebuilt_and_others_are_untouched() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .limits(&format!("t3.small: {NODES}\n"))
            .suspend_time(600)
            .slurmctld_timeout(2)
            .start_on_aws();
        let preflight = cluster.run("finish", &["--check"]);
        println!("{}", String::from_utf8_lossy(&preflight.stdout));
        assert!(preflight.status.success(), "{preflight:?}");
        let printed = String::from_utf8_lossy(&preflight.stdout);
        assert!(!printed.contains("cannot be read"), "the quotas, too");
        part(&cluster, "a wrong key is refused", refuses);
        part(&cluster, "nodes come and go", comes_and_goes);
        part(&cluster, "a zone is full", goes_elsewhere);
        part(&cluster, "answers are lost", bears_faults);
        part(&cluster, "listings lag, and requests are throttled", bears_lag);
        part(&cluster, "Cluster in the Cloud's files are taken as they are", takes_citcs_files);
        part(&cluster, "a new image is rolled out", rolls);
        part(&cluster, "all of the cluster is stopped", stops_all);
    });
}

/// Has the next answer to an operation come so late that startnode can be killed while it waits.
fn hold(cluster: &Cluster<Aws>, operation: &str) {
    cluster.site().proxy().clear_requests();
    let late = Fault::Delay { millis: 20_000 };
    cluster.site().proxy().add_fault(&Rule::once(operation, late));
}

#[test]
fn a_startnode_killed_at_any_of_two_points_leaves_one_machine_each() {
    in_namespaces(|| {
        let cluster =
            Cluster::builder(USUAL).limits(WITH_A_WARM_NODE).resume_timeout(60).start_on_aws();
        let mut jobs = Vec::new();
        for operation in ["DescribeInstances", "RunInstances"] {
            hold(&cluster, operation);
            jobs.push(cluster.submit(&["--nodes=2", "--exclusive"], "srun hostname"));
            cluster.until(operation, || cluster.site().proxy().counts().contains_key(operation));
            assert_ne!(cluster.kill("startnode"), 0, "it waits for {operation}");
            cluster.site().proxy().clear_faults();
        }
        let no_twins = || {
            let mut names = cluster.live();
            names.sort();
            let all = names.clone();
            names.dedup();
            assert_eq!(names, all, "{}", cluster.story());
        };
        let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
        for job in jobs {
            cluster.until(&format!("job {job} is COMPLETED"), || {
                no_twins();
                cluster.job(job, "JobState") == "COMPLETED"
            });
        }
        keeps_one(&cluster);
    });
}

const WITH_A_WARM_NODE: &str = "t3-small: {shape: t3.small, max: 4, warm: 1}\n";

/// The machine of a warm node is stopped, and started again instead of a launch.
fn keeps_one(cluster: &Cluster<Aws>) {
    let states = || cluster.present().into_iter().map(|it| it.state).collect::<Vec<_>>();
    cluster.until("one machine is kept", || states() == ["stopped"]);
    let kept = cluster.present();
    // While its node is powered down, the job would get another one.
    cluster.until("the nodes sleep", || {
        cluster.nodes().values().all(|state| state.contains("POWERED_DOWN"))
    });
    cluster.site().proxy().clear_requests();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster.until("it is kept again", || cluster.present() == kept);
    let asked = cluster.site().proxy().counts();
    assert!(!asked.contains_key("RunInstances"), "{asked:?}");
    let stops = [asked.get("StartInstances"), asked.get("StopInstances")];
    assert_eq!(stops, [Some(&1), Some(&1)], "{asked:?}");
    assert_eq!(cluster.site().boots(&kept[0].id), ["start", "start"], "{}", cluster.story());
    let _ = cluster.well("stopnode", &["--all", "--force"]);
    cluster.until("nothing is left", || cluster.present().is_empty());
}
