//! The lines that `finish --print-power` prints for 26.05: our programs as they are installed, with their arguments.

use e2e::{Cluster, in_namespaces};

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn nodes_come_reboot_fail_and_go_by_power_actions() {
    in_namespaces(|| {
        let cluster =
            Cluster::builder("26.05").nodes(1).suspend_time(600).printed_programs().start();
        let conf = std::fs::read_to_string(cluster.dir().join("etc/slurm.conf")).unwrap();
        assert_eq!(conf.matches("PowerAction=").count(), 4, "{conf}");
        let runs = || {
            let job = cluster.submit(&["--nodes=1"], "srun hostname");
            cluster.wait_job(job, "COMPLETED");
            job
        };
        let _ = runs();
        let first = cluster.machines().remove(0).id;
        cluster.scontrol(&format!("reboot ASAP nextstate=RESUME {NODE}"));
        cluster.until("rebuild has rebooted it", || cluster.cloud().boots(&first) == 2);
        let idle = || cluster.nodes().values().all(|state| state == "IDLE+CLOUD");
        cluster.until("the node is back", idle);
        cluster.suspend_after(1);
        cluster.wait_empty();

        cluster.set("ResumeTimeout", 20);
        cluster.fate(NODE, "never");
        let job = cluster.submit(&["--nodes=1"], "srun hostname");
        cluster.until("startnode has started it", || cluster.live() == [NODE]);
        cluster.until("startnode --failed has removed it", || {
            cluster.log("slurmctld.log").contains("ResumeTimeout") && cluster.live().is_empty()
        });
        cluster.clear_fates();
        cluster.set("ResumeTimeout", 600);
        let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
        cluster.wait_job(job, "COMPLETED");
        cluster.wait_empty();
    });
}
