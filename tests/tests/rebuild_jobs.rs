//! Rebuild jobs on nodes that are always there: they go before all other jobs, and each node is rebuilt before its own runs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use e2e::{Cluster, alone};
use std::fs;

const OLD: &str = "ocid1.image.oc1.phx.img000";
const NEW: &str = "ocid1.image.oc1.phx.new";

const LIMITS: &str =
    "standard: {shape: VM.Standard2.1, zone: 1, min: 2, max: 2, partition: standard}
extra: {shape: VM.Standard2.4, zone: 1, min: 2, max: 2, partition: extra}
";

const PARTITIONS: &str = "PriorityType=priority/multifactor
PriorityWeightPartition=1000
PartitionName=rebuild Nodes=ALL Hidden=YES RootOnly=YES DisableRootJobs=NO PreemptMode=OFF OverSubscribe=EXCLUSIVE PriorityJobFactor=65533 MaxTime=INFINITE
";

/// Two nodes in each of two partitions, all up.
fn cluster(series: &str) -> Cluster {
    let cluster = Cluster::builder(series)
        .limits(LIMITS)
        .persistent(&["c1-standard", "c1-extra"])
        .partitions(PARTITIONS)
        .suspend_time(86_400)
        .config(&format!("image_id: {OLD}"))
        .start();
    let _ = cluster.well("startnode", &["c1-standard-[0001-0002],c1-extra-[0001-0002]"]);
    cluster.until("all nodes answer", || cluster.nodes().values().all(|state| state == "IDLE"));
    cluster
}

fn go_before_waiting_jobs(series: &str) {
    let cluster = cluster(series);
    let until = |name: &str| {
        format!("until [ -e {} ]; do sleep 0.1; done", cluster.dir().join(name).display())
    };
    let pair = |name: &str, partition: &str, script: &str| {
        cluster.submit(
            &["--nodes=2", "--exclusive", "--job-name", name, "--partition", partition],
            script,
        )
    };
    let a = pair("JobA", "standard", &until("a"));
    cluster.wait_job(a, "RUNNING");
    let b = pair("JobB", "standard", "true");
    // A job says nothing of an image: the nodes' own files do, or the configuration.
    let config = cluster.dir().join("etc/startnode.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace(OLD, NEW)).unwrap();
    let _ = cluster.well("rebuild", &["submit", "--jobs", "--batch", "4"]);
    let c = pair("JobC", "standard,extra", "true");

    let on_new = |group: &str| {
        let machines = cluster.machines();
        let of = machines.iter().filter(|machine| machine.display_name.starts_with(group));
        of.filter(|machine| machine.image_id.as_deref() == Some(NEW)).count()
    };
    cluster.wait_job(c, "COMPLETED");
    assert_eq!(on_new("c1-extra"), 2, "JobC ran behind the rebuild jobs of extra");
    assert_eq!(on_new("c1-standard"), 0, "JobA still has these");
    assert_eq!(cluster.job(a, "JobState"), "RUNNING");
    assert_eq!(cluster.job(b, "JobState"), "PENDING");
    fs::write(cluster.dir().join("a"), "").unwrap();
    cluster.wait_job(a, "COMPLETED");
    cluster.wait_job(b, "COMPLETED");
    assert_eq!(on_new("c1-standard"), 2, "JobB ran behind the rebuild jobs of standard");
    assert_eq!(cluster.job(a, "Restarts"), "0");
    let end = |job: u32| cluster.job(job, "EndTime");
    assert!(end(c) <= end(b), "JobC before JobB");
}

#[test]
fn rebuild_jobs_on_22_05() {
    alone(|| go_before_waiting_jobs("22.05"));
}

#[test]
fn rebuild_jobs_on_24_11() {
    alone(|| go_before_waiting_jobs("24.11"));
}

#[test]
fn rebuild_jobs_on_26_05() {
    alone(|| go_before_waiting_jobs("26.05"));
}
