//! `finish` on a cluster that works.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, on_each_release};
use std::fs;

const SHAPE: &str = "VM.Standard2.1";

fn limits(cluster: &Cluster, text: &str) {
    fs::write(cluster.dir().join("limits.yaml"), text).unwrap();
}

fn changes_limits(series: &str) {
    let cluster = Cluster::builder(series).nodes(2).suspend_time(600).start();
    let end = cluster.dir().join("end");
    let script = format!("until [ -e {} ]; do sleep 0.1; done", end.display());
    let kept = cluster.submit(&["--nodes=1", "--exclusive"], &script);
    cluster.wait_job(kept, "RUNNING");

    limits(&cluster, &format!("{SHAPE}: {{1: 4}}\n"));
    let _ = cluster.well("finish", &[]);
    let job = cluster.submit(&["--nodes=3"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job).len(), 3);
    assert_eq!(cluster.job(kept, "JobState"), "RUNNING");
    assert_eq!(cluster.live().len(), 4);

    limits(&cluster, &format!("{SHAPE}: {{1: 1}}\n"));
    drains_first(&cluster);
    cluster.until("the machines of nodes that went are gone", || cluster.live().len() == 1);
    cluster.until("slurmctld has one node", || cluster.nodes().len() == 1);
    assert_eq!(cluster.job(kept, "JobState"), "RUNNING");
    assert_eq!(cluster.job(kept, "Restarts"), "0");

    refused_while_used(&cluster, kept);
    fs::write(&end, "").unwrap();
    cluster.wait_job(kept, "COMPLETED");
    cluster.until("Slurm has the node back", || {
        cluster.nodes().values().all(|state| state.starts_with("IDLE+"))
    });
    let _ = cluster.well("finish", &[]);
    cluster.until("the last machine is gone", || cluster.live().is_empty());
    cluster.until("slurmctld has the other node", || {
        cluster.nodes().keys().all(|name| name == "vm-standard2-4-ad1-0001")
    });
}

/// Runs finish, and sees nodes that go drained while their machines are still there.
fn drains_first(cluster: &Cluster) {
    let later = Fault::answer(503, "ServiceUnavailable", "try again");
    cluster.cloud().add_fault(&Rule::always("TerminateInstance", later));
    let finish = cluster.begin("finish", &[]);
    cluster.until("nodes that go are drained", || {
        let drained = cluster.nodes().values().filter(|state| state.contains("DRAIN")).count();
        drained == 3 && cluster.live().len() == 4
    });
    cluster.cloud().clear_faults();
    let mut end = None;
    cluster.until("finish has ended", || {
        end = finish.ended();
        end.is_some()
    });
    assert!(end.is_some_and(|status| status.success()), "{end:?}\n{}", cluster.story());
}

/// The only node goes while it runs a job: nothing happens.
fn refused_while_used(cluster: &Cluster, job: u32) {
    let conf = || fs::read_to_string(cluster.dir().join("etc/slurm.conf")).unwrap();
    let before = conf();
    limits(cluster, "VM.Standard2.4: {1: 1}\n");
    let refused = cluster.run("finish", &[]);
    assert!(!refused.status.success(), "{refused:?}");
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(words.contains("vm-standard2-1-ad1-0001"), "it names the node: {words}");
    assert_eq!(conf(), before);
    assert_eq!(cluster.job(job, "JobState"), "RUNNING");
    assert_eq!(cluster.live().len(), 1);
}

on_each_release! {
    limits_change: changes_limits;
}
