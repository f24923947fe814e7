//! A machine that never boots: Slurm gives up on it, and we clean up behind it.

use e2e::{Cluster, on_each_release};

const NODE: &str = "vm-standard2-1-ad1-0001";

fn never_boots(series: &str) {
    let cluster = Cluster::builder(series).nodes(1).resume_timeout(6).start();
    cluster.fate(NODE, "never");
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.until("the machine is there", || cluster.live() == [NODE]);
    let first = cluster.machines().remove(0).id;
    cluster.until("ResumeTimeout", || cluster.log("slurmctld.log").contains("ResumeTimeout"));
    cluster.clear_fates();
    cluster.until("the machine that never booted is gone", || {
        cluster.machines().iter().all(|machine| machine.id != first)
    });
    let log = cluster.log("elastic.log");
    assert!(log.contains("begin: failed"), "ResumeFailProgram has run\n{}", cluster.story());
    // Only now: it would have found the machine, too.
    let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
    cluster.wait_job(job, "COMPLETED");
    assert_ne!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    cluster.wait_empty();
}

on_each_release! {
    a_machine_that_never_boots: never_boots;
}
