//! The main job: sbatch, nodes come, the job runs on all of them, nodes go.

use e2e::{Addresses, Cluster, USUAL, alone, alone_as_user};
use std::collections::BTreeSet;

fn comes_and_goes(series: &str, nodes: u32, addresses: Addresses) {
    let cluster = Cluster::builder(series).nodes(nodes).addresses(addresses).start();
    let job = cluster.submit(&[&format!("--nodes={nodes}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let names = (1..=nodes).map(|number| format!("vm-standard2-1-ad1-{number:04}"));
    assert_eq!(cluster.hosts(job), names.collect::<BTreeSet<_>>(), "{}", cluster.output(job));
    cluster.wait_empty();
    let launches = cluster.cloud().counts().get("LaunchInstance").copied();
    assert_eq!(launches, Some(nodes.into()), "each node has one machine, once");
}

#[test]
fn four_nodes_as_an_ordinary_user() {
    alone_as_user(|| comes_and_goes(USUAL, 4, Addresses::Registered));
}

macro_rules! loops {
    ($($name:ident: $series:literal, $nodes:literal, $addresses:ident;)*) => {$(
        #[test]
        fn $name() {
            alone(|| comes_and_goes($series, $nodes, Addresses::$addresses));
        }
    )*};
}

loops! {
    one_node_on_22_05: "22.05", 1, Told;
    one_node_on_24_11: "24.11", 1, Registered;
    one_node_on_26_05: "26.05", 1, Registered;
    four_nodes_on_22_05: "22.05", 4, Registered;
    four_nodes_told_on_22_05: "22.05", 4, Told;
    four_nodes_on_24_11: "24.11", 4, Registered;
    four_nodes_on_26_05: "26.05", 4, Registered;
    many_nodes_on_22_05: "22.05", 32, Told;
    many_nodes_on_24_11: "24.11", 32, Registered;
    many_nodes_on_26_05: "26.05", 32, Registered;
}
