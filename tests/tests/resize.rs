//! `resize`: more and fewer persistent nodes, beside elastic ones, in two partitions.

use e2e::{Cluster, USUAL, in_namespaces};
use std::fs;

const LIMITS: &str = "general: {shape: VM.Standard2.1, zone: 1, min: 2, max: 4, partition: compute}
big: {shape: VM.Standard2.4, zone: 1, max: 2, partition: large}
";

#[test]
fn persistent_nodes_grow_and_shrink_beside_elastic_ones() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .limits(LIMITS)
            .persistent(&["c1-general"])
            .partitions("")
            .suspend_time(600)
            .start();
        let persistent = |state: &&String| !state.contains("CLOUD");
        assert_eq!(cluster.nodes().values().filter(persistent).count(), 2);
        let _ = cluster.well("startnode", &["c1-general-[0001-0002]"]);
        // Until they do, Slurm would rather start elastic ones.
        cluster.until("the persistent nodes answer", || {
            cluster.nodes().values().filter(persistent).all(|state| state == "IDLE")
        });
        let runs = |partition: &str, nodes: u32| {
            let nodes = format!("--nodes={nodes}");
            let job = cluster.submit(&["--partition", partition, &nodes], "srun hostname");
            cluster.wait_job(job, "COMPLETED");
            cluster.hosts(job).len()
        };
        assert_eq!(runs("compute", 2), 2);
        assert_eq!(runs("large", 1), 1);
        assert_eq!(cluster.live().len(), 3);

        let _ = cluster.well("resize", &["--to", "4", "--partition", "compute"]);
        cluster.until("slurmctld has four persistent nodes", || {
            cluster.nodes().values().filter(persistent).count() == 4
        });
        assert_eq!(cluster.live().len(), 5);
        cluster.until("all of them answer", || {
            cluster.nodes().values().filter(persistent).all(|state| state == "IDLE")
        });
        assert_eq!(runs("compute", 6), 6, "persistent and elastic ones together");

        let _ = cluster.well("resize", &["--to", "1", "--partition", "compute"]);
        cluster.until("slurmctld has one persistent node", || {
            cluster.nodes().values().filter(persistent).count() == 1
        });
        assert_eq!(runs("compute", 3), 3, "one persistent and two elastic ones");
        assert_eq!(cluster.live().len(), 4);
        assert_eq!(runs("large", 2), 2);

        // The same by edited limits, in both partitions at once: persistent nodes come in one and elastic ones go in the other.
        let limits = LIMITS.replace("min: 2, max: 4", "min: 3, max: 4").replace("max: 2", "max: 1");
        fs::write(cluster.dir().join("limits.yaml"), limits).unwrap();
        let _ = cluster.well("resize", &[]);
        cluster.until("slurmctld has the nodes of the limits", || {
            let nodes = cluster.nodes();
            nodes.len() == 5 && nodes.values().filter(persistent).count() == 3
        });
        cluster.until("all persistent nodes answer", || {
            cluster.nodes().values().filter(persistent).all(|state| state == "IDLE")
        });
        let big = || cluster.live().iter().filter(|name| name.starts_with("c1-big-")).count();
        cluster.until("the machine of the large node that went is gone", || big() <= 1);
        assert_eq!(runs("compute", 4), 4, "three persistent and one elastic one");
        assert_eq!(runs("large", 1), 1);
    });
}
