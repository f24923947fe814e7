//! Rebuild jobs on nodes that are always there: they go before all other jobs, and each node is rebuilt before its own runs.

use e2e::{Cluster, on_each_release};

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

fn on_new_image(cluster: &Cluster, group: &str) -> usize {
    let machines = cluster.machines();
    let of = machines.iter().filter(|machine| machine.display_name.starts_with(group));
    of.filter(|machine| machine.image_id.as_deref() == Some(NEW)).count()
}

/// Nodes are rebuilt as they become free, before the jobs that wait for them.
fn go_before_waiting_jobs(series: &str) {
    let cluster = cluster(series);
    let a = cluster.pair("JobA", "standard");
    cluster.wait_job(a, "RUNNING");
    cluster.let_go(&["JobB", "JobC"]);
    let b = cluster.pair("JobB", "standard");
    // A job says nothing of an image: the nodes' own files do, or the configuration.
    cluster.configure("image_id", NEW);
    let _ = cluster.well("rebuild", &["submit", "--jobs", "--batch", "4"]);
    let c = cluster.pair("JobC", "standard,extra");
    cluster.wait_job(c, "COMPLETED");
    assert_eq!(on_new_image(&cluster, "c1-extra"), 2, "JobC ran behind the rebuild jobs of extra");
    assert_eq!(on_new_image(&cluster, "c1-standard"), 0, "JobA still has these");
    assert_eq!(cluster.job(a, "JobState"), "RUNNING");
    assert_eq!(cluster.job(b, "JobState"), "PENDING");
    cluster.let_go(&["JobA"]);
    cluster.wait_job(a, "COMPLETED");
    cluster.wait_job(b, "COMPLETED");
    assert_eq!(on_new_image(&cluster, "c1-standard"), 2, "JobB ran behind those of standard");
    assert_eq!(cluster.job(a, "Restarts"), "0");
}

/// With rebuild jobs that only wait.
fn come_and_go_in_their_order(series: &str) {
    let cluster = cluster(series);
    cluster.configure("image_id", NEW);
    cluster.see_rebuild_jobs_in_order(&["--no-reboot"], |_| {
        assert_eq!(on_new_image(&cluster, "c1"), 0, "without a reboot, nothing is rebuilt");
    });
}

on_each_release! {
    rebuild_jobs: go_before_waiting_jobs;
    the_queue: come_and_go_in_their_order;
}
