//! The end of a cluster: nothing of ours is left, Slurm up or not, and nothing of others is touched.

use e2e::{Cluster, USUAL, alone};
use std::fs;

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn all_of_ours_and_nothing_else_with_slurmctld_down() {
    alone(|| {
        let cluster = Cluster::builder(USUAL).nodes(3).suspend_time(600).start();
        let job = cluster.submit(&["--nodes=3"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        cluster.stop_slurmctld("TERM");

        // Another cluster in the same compartment has a node of the same name.
        let config = fs::read_to_string(cluster.dir().join("etc/startnode.yaml")).unwrap();
        let other =
            config.replace("cluster_id: c1", "cluster_id: c2").replace("/elastic,", "/other,");
        let path = cluster.dir().join("etc/other.yaml");
        fs::write(&path, other).unwrap();
        let mut theirs = cluster.begin("startnode", &["--config", path.to_str().unwrap(), NODE]);
        let tagged = |machine: &cloud_sim::Instance, cluster: &str| {
            machine.freeform_tags.get("cluster").is_some_and(|tag| tag == cluster)
        };
        let foreign = || {
            let mut machines = cluster.machines();
            machines.retain(|machine| tagged(machine, "c2"));
            machines
        };
        cluster.until("their machine runs", || {
            foreign().iter().any(|machine| machine.lifecycle_state == cloud_sim::State::Running)
        });
        cluster.kill("startnode");
        cluster.until("their startnode has ended", || theirs.ended().is_some());
        assert_eq!(cluster.live().iter().filter(|name| *name == NODE).count(), 2);

        let asked = cluster.run("stopnode", &["--all"]);
        assert!(!asked.status.success(), "nobody can answer, and that is a no: {asked:?}");
        assert_eq!(cluster.live().len(), 4);
        let _ = cluster.well("stopnode", &["--all", "--force"]);
        cluster.until("ours are gone", || cluster.live().len() == 1);
        assert_eq!(cluster.live(), [NODE]);
        assert_eq!(foreign().len(), 1, "theirs is untouched");
    });
}
