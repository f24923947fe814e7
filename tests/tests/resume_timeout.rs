//! A machine that never boots: Slurm gives up on it, and we clean up behind it.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, on_each_release};
use std::time::{Duration, Instant};

const NODE: &str = "vm-standard2-1-ad1-0001";

fn never_boots(series: &str) {
    let cluster = Cluster::builder(series).nodes(1).resume_timeout(20).start();
    cluster.fate(NODE, "never");
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    let mut first = String::new();
    cluster.until("the machine is there", || {
        first = cluster.machines().pop().map(|machine| machine.id).unwrap_or_default();
        !first.is_empty()
    });
    cluster.until("ResumeTimeout", || cluster.log("slurmctld.log").contains("ResumeTimeout"));
    cluster.clear_fates();
    cluster.until("the machine that never booted is gone", || {
        cluster.machines().iter().all(|machine| machine.id != first)
    });
    let log = cluster.log("elastic.log");
    assert!(log.contains("begin: failed"), "ResumeFailProgram has run\n{}", cluster.story());
    // Those that do boot may take their time.
    cluster.set("ResumeTimeout", 600);
    // Only now: it would have found the machine, too.
    let _reconcile = cluster.begin("reconcile", &["--apply", "--watch", "1"]);
    cluster.wait_job(job, "COMPLETED");
    assert_ne!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    cluster.wait_empty();
}

/// slurmctld does not believe in a machine that booted before it asked for one: the job would wait for ResumeTimeout, which
/// is longer than we are patient.
fn left_over(series: &str) {
    let cluster = Cluster::builder(series).nodes(1).suspend_time(600).start();
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    let (old, seen) = (cluster.machines().remove(0).id, Instant::now());
    let refuse = Fault::answer(403, "NotAllowed", "not today");
    cluster.cloud().add_fault(&Rule::always("TerminateInstance", refuse));
    cluster.scontrol(&format!("update nodename={NODE} state=power_down_force reason=test"));
    cluster.until("the node is off to Slurm", || {
        let state = cluster.node(NODE);
        state.contains("POWERED_DOWN") || state.contains("POWERED_OFF")
    });
    assert_eq!(cluster.machines().remove(0).id, old, "its machine is not\n{}", cluster.story());
    cluster.cloud().clear_faults();
    cluster.until("the machine is a minute old", || seen.elapsed() > Duration::from_secs(62));
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_ne!(cluster.machines().remove(0).id, old, "{}", cluster.story());
}

on_each_release! {
    a_machine_that_never_boots: never_boots;
    a_machine_that_a_stop_left_running: left_over;
}
