//! The end of a cluster: nothing of ours is left, Slurm up or not, and nothing of others is touched.

use e2e::{Cluster, USUAL, in_namespaces};
use std::fs;

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn all_machines_of_the_cluster_and_no_others_are_terminated() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .nodes(3)
            .suspend_time(600)
            .slurmctld_timeout(2)
            .config("image_id: ocid1.image.oc1.phx.img000")
            .cloud(|cloud| {
                // A name is taken only once in a subnet.
                let mut other = cloud.subnets[0].clone();
                other.id.push_str("other");
                other.cidr = "10.78.0.0/16".to_owned();
                cloud.subnets.push(other);
            })
            .start();
        let job = cluster.submit(&["--nodes=3"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        // Another cluster in the same compartment has a node of the same name.
        let config = cluster.dir().join("etc/startnode.yaml");
        let ours = fs::read_to_string(&config).unwrap();
        let subnet = ours.lines().find(|line| line.starts_with("subnet_id: ")).unwrap();
        let theirs = ours
            .replace(subnet, &format!("{subnet}other"))
            .replace("cluster_id: c1", "cluster_id: c2")
            .replace("/elastic,", "/other,");
        fs::write(&config, theirs).unwrap();
        cluster.fate(NODE, "never");
        let _ = cluster.well("startnode", &[NODE]);
        fs::write(&config, &ours).unwrap();
        let foreign = || {
            let tag = |machine: &cloud_sim::Instance| machine.freeform_tags.get("cluster").cloned();
            let mut machines = cluster.machines();
            machines.retain(|machine| tag(machine).is_some_and(|tag| tag == "c2"));
            machines
        };
        assert_eq!(foreign().len(), 1);
        assert_eq!(cluster.live().iter().filter(|name| *name == NODE).count(), 2);

        // It waits for programs that it has begun.
        cluster
            .until("startnode has ended", || cluster.log("elastic.log").contains("end: start: 3"));
        cluster.stop_slurmctld("TERM");
        let _ = cluster.well("stopnode", &["--all", "--dry-run"]);
        let refused = cluster.run("stopnode", &[NODE]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("--now"), "a job may run there: {said}");
        let asked = cluster.run("stopnode", &["--all"]);
        assert!(!asked.status.success(), "nobody can answer, and that is a no: {asked:?}");
        assert_eq!(cluster.live().len(), 4);
        let _ = cluster.well("stopnode", &["--all", "--force"]);
        cluster.until("ours are gone", || cluster.live().len() == 1);
        assert_eq!(cluster.live(), [NODE]);
        assert_eq!(foreign().len(), 1, "theirs is untouched");
    });
}
