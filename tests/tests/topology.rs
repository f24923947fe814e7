//! Slurm's topology says where machines are, right after each of their starts.

use e2e::{Cluster, in_namespaces};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Ten power cycles of five nodes: fifty power cycles of a node.
const NODES: usize = 5;
const CYCLES: usize = 10;

/// The switch right above each node.
fn switches(cluster: &Cluster) -> BTreeMap<String, String> {
    let shown = cluster.ask("scontrol", &["show", "topology"]);
    let mut found = BTreeMap::new();
    for line in shown.lines().filter(|line| line.contains("Level=0")) {
        let field = |key: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)).unwrap_or_default().to_owned()
        };
        let (switch, nodes) = (field("SwitchName="), field("Nodes="));
        if nodes.is_empty() {
            continue;
        }
        for node in cluster.ask("scontrol", &["show", "hostnames", &nodes]).lines() {
            assert!(
                found.insert(node.to_owned(), switch.clone()).is_none(),
                "{node} twice:\n{shown}"
            );
        }
    }
    found
}

/// Where the cloud has the machines.
fn machines(cluster: &Cluster) -> BTreeMap<String, String> {
    let place = |domain: &str| format!("uocm_phx-ad-1.{}", domain.to_lowercase());
    let machines = cluster.machines().into_iter();
    machines.map(|machine| (machine.display_name, place(&machine.fault_domain))).collect()
}

fn survives_power_cycles(series: &str) {
    let cluster = Cluster::builder(series)
        .nodes(NODES)
        .suspend_time(600)
        .elastic("cooldown: 3s, grace: 0s")
        .cloud(|settings| settings.spread_fault_domains = true)
        .start();
    let (conf, file) =
        (cluster.dir().join("etc/slurm.conf"), cluster.dir().join("etc/topology.conf"));
    let yaml = cluster.dir().join("etc/startnode.yaml");
    let text = fs::read_to_string(&yaml).unwrap();
    fs::write(&yaml, format!("topology_file: {}\n{text}", file.display())).unwrap();
    let text = fs::read_to_string(&conf).unwrap();
    let _ = cluster.well("reconcile", &["--apply"]);
    assert!(file.exists(), "{}", cluster.story());
    fs::write(&conf, format!("TopologyPlugin=topology/tree\n{text}")).unwrap();
    cluster.stop_slurmctld("TERM");
    cluster.start_slurmctld();
    let pid = || fs::read_to_string(cluster.dir().join("run/slurmctld.pid")).unwrap();
    let first = pid();
    let moves = cluster.release().version().moves_nodes_in_topologies();
    let mut seen = BTreeSet::new();
    for cycle in 1..=CYCLES {
        let job = cluster.submit(&[&format!("--nodes={NODES}")], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        // Before 25.05, Slurm has topology from a file, which reconcile writes.
        if !moves {
            let _ = cluster.well("reconcile", &["--apply"]);
        }
        let (known, there) = (switches(&cluster), machines(&cluster));
        assert_eq!(known, there, "right after start {cycle}\n{}", cluster.story());
        seen.extend(there.into_values());
        cluster.scontrol(&format!(
            "update nodename=vm-standard2-1-ad1-[0001-{NODES:04}] state=power_down_force"
        ));
        cluster.wait_empty();
    }
    let job = cluster.submit(&[&format!("--nodes={NODES}")], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let said = cluster.well("reconcile", &["--apply"]);
    assert_eq!(switches(&cluster), machines(&cluster), "{said}\n{}", cluster.story());
    assert_eq!(seen.len(), 3, "machines were in all fault domains: {seen:?}");
    assert_eq!(pid(), first, "slurmctld was not restarted");
    // What is true already is not said again.
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    let _ = cluster.well("reconcile", &["--apply"]);
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    let job = cluster.submit(&[&format!("--nodes={NODES}"), "--switches=3"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
}

#[test]
fn in_fifty_power_cycles_every_node_is_where_its_machine_is_after_each_start_on_24_11() {
    in_namespaces(|| survives_power_cycles("24.11"));
}

#[test]
fn in_fifty_power_cycles_every_node_is_where_its_machine_is_after_each_start_on_26_05() {
    in_namespaces(|| survives_power_cycles("26.05"));
}
