//! The main job: sbatch, nodes come, the job runs on all of them, nodes go.

use cloud_sim::{Fault, Rule};
use e2e::{Addresses, Cluster, Model, USUAL, in_namespaces_as_user, on_each_release};
use std::collections::BTreeSet;

fn names(nodes: usize) -> BTreeSet<String> {
    (1..=nodes).map(|number| format!("vm-standard2-1-ad1-{number:04}")).collect()
}

fn comes_and_goes(series: &str, nodes: usize, addresses: Addresses) {
    // On all of them a step has to begin before its credential ends, and two cores may be all there is.
    let cluster = Cluster::builder(series).nodes(nodes).addresses(addresses).credential(60).start();
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job), names(nodes), "{}", cluster.output(job));
    cluster.wait_empty();
    assert_eq!(cluster.cloud().instances().len(), nodes, "each node has one machine, once");
}

#[test]
fn four_nodes_as_an_ordinary_user() {
    in_namespaces_as_user(|| comes_and_goes(USUAL, 4, Addresses::Registered));
}

/// Nodes say where they are when they register, and nobody else can: the cloud keeps their addresses to itself.
fn addresses_of_their_own(series: &str) {
    // startnode asks for them until shortly before ResumeTimeout, and 24.11 reads its file anew only when it has ended.
    let cluster = Cluster::builder(series).nodes(2).suspend_time(600).resume_timeout(90).start();
    let secret = Fault::answer(503, "ServiceUnavailable", "try again");
    for operation in ["ListVnicAttachments", "ListPrivateIps", "GetVnic"] {
        cluster.cloud().add_fault(&Rule::always(operation, secret.clone()));
    }
    let job = cluster.submit(&["--nodes=2"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job).len(), 2, "{}", cluster.story());
    let told = cluster.log("elastic.log").contains("Started, Private IP");
    assert!(!told, "startnode knew no address\n{}", cluster.story());
    cluster.suspend_after(1);
    cluster.wait_empty();
}

on_each_release! {
    one_node: |series| comes_and_goes(series, 1, Addresses::Registered);
    one_node_with_its_address_from_startnode: |series| comes_and_goes(series, 1, Addresses::FromStartnode);
    four_nodes: |series| comes_and_goes(series, 4, Addresses::Registered);
    four_nodes_with_addresses_from_startnode: |series| comes_and_goes(series, 4, Addresses::FromStartnode);
    many_nodes: |series| comes_and_goes(series, 32, Addresses::Registered);
    many_nodes_with_addresses_from_startnode: |series| comes_and_goes(series, 32, Addresses::FromStartnode);
    two_nodes_that_say_where_they_are: addresses_of_their_own;
}

/// Without any namespaces: all slurmd are on this machine, beside those of other tests.
fn comes_and_goes_locally(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).model(Model::Local).start();
    let job = cluster.submit(&["--nodes=4"], "srun sh -c 'echo $SLURMD_NODENAME'");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job), names(4), "{}", cluster.output(job));
    cluster.wait_empty();
}

#[test]
fn four_local_nodes_on_22_05() {
    comes_and_goes_locally("22.05");
}

#[test]
fn four_local_nodes_on_24_11() {
    comes_and_goes_locally("24.11");
}

#[test]
fn four_local_nodes_on_26_05() {
    comes_and_goes_locally("26.05");
}
