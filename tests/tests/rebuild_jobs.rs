//! Rebuild jobs on nodes that are always there: they go before all other jobs, and each node is rebuilt before its own runs.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use e2e::{Cluster, on_each_release};
use std::collections::BTreeMap;
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

/// A job says nothing of an image: the nodes' own files do, or the configuration.
fn set_new_image(cluster: &Cluster) {
    let config = cluster.dir().join("etc/startnode.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace(OLD, NEW)).unwrap();
}

/// A job of two nodes that runs until there is a file of its name.
fn pair(cluster: &Cluster, name: &str, partition: &str) -> u32 {
    let options = ["--nodes=2", "--exclusive", "--job-name", name, "--partition", partition];
    cluster.submit(&options, &until(cluster, name))
}

/// Waits for a file.
fn until(cluster: &Cluster, file: &str) -> String {
    format!("until [ -e {}/{file} ]; do sleep 0.1; done", cluster.dir().display())
}

/// Lets what waits for these files go on.
fn release(cluster: &Cluster, files: &[&str]) {
    for file in files {
        fs::write(cluster.dir().join(file), "").unwrap();
    }
}

fn on_new_image(cluster: &Cluster, group: &str) -> usize {
    let machines = cluster.machines();
    let of = machines.iter().filter(|machine| machine.display_name.starts_with(group));
    of.filter(|machine| machine.image_id.as_deref() == Some(NEW)).count()
}

/// Nodes are rebuilt as they become free, before the jobs that wait for them.
fn go_before_waiting_jobs(series: &str) {
    let cluster = cluster(series);
    let a = pair(&cluster, "JobA", "standard");
    cluster.wait_job(a, "RUNNING");
    release(&cluster, &["JobB", "JobC"]);
    let b = pair(&cluster, "JobB", "standard");
    set_new_image(&cluster);
    let _ = cluster.well("rebuild", &["submit", "--jobs", "--batch", "4"]);
    let c = pair(&cluster, "JobC", "standard,extra");
    cluster.wait_job(c, "COMPLETED");
    assert_eq!(on_new_image(&cluster, "c1-extra"), 2, "JobC ran behind the rebuild jobs of extra");
    assert_eq!(on_new_image(&cluster, "c1-standard"), 0, "JobA still has these");
    assert_eq!(cluster.job(a, "JobState"), "RUNNING");
    assert_eq!(cluster.job(b, "JobState"), "PENDING");
    release(&cluster, &["JobA"]);
    cluster.wait_job(a, "COMPLETED");
    cluster.wait_job(b, "COMPLETED");
    assert_eq!(on_new_image(&cluster, "c1-standard"), 2, "JobB ran behind those of standard");
    assert_eq!(cluster.job(a, "Restarts"), "0");
}

/// Waits until the queue has these jobs and no others: the three jobs, and the rebuild jobs of the two partitions.
fn queue_is(cluster: &Cluster, jobs: [&str; 3], [standard, extra]: [&str; 2]) {
    let rebuild = |group: &str, number: u32| format!("rebuild-c1-{group}-000{number}");
    let expected = ["JobA", "JobB", "JobC"].map(str::to_owned).into_iter().zip(jobs);
    let rebuilds = [("standard", standard), ("extra", extra)]
        .into_iter()
        .flat_map(|(group, state)| [1, 2].map(|number| (rebuild(group, number), state)));
    let expected: BTreeMap<String, String> = expected
        .chain(rebuilds)
        .filter(|(_, state)| !state.is_empty())
        .map(|(job, state)| (job, state.to_owned()))
        .collect();
    cluster.until(&format!("the queue is {expected:?}"), || {
        let shown = cluster.ask("squeue", &["--all", "--noheader", "--format=%j %T"]);
        let rows = shown.lines().filter_map(|line| line.split_once(' '));
        let queue: BTreeMap<_, _> =
            rows.map(|(job, state)| (job.to_owned(), state.to_owned())).collect();
        queue == expected
    });
}

/// What StackHPC's documentation shows step by step, with rebuild jobs that only wait.
fn come_and_go_in_their_order(series: &str) {
    let (runs, waits, over) = ("RUNNING", "PENDING", "");
    let cluster = cluster(series);
    let a = pair(&cluster, "JobA", "standard");
    cluster.wait_job(a, runs);
    let _ = pair(&cluster, "JobB", "standard");
    set_new_image(&cluster);
    let wait = until(&cluster, "$SLURMD_NODENAME");
    let _ = cluster.well("rebuild", &["submit", "--jobs", "--no-reboot", "--command", &wait]);
    let _ = pair(&cluster, "JobC", "standard,extra");
    queue_is(&cluster, [runs, waits, waits], [waits, runs]);
    release(&cluster, &["JobA"]);
    queue_is(&cluster, [over, waits, waits], [runs, runs]);
    release(&cluster, &["c1-extra-0001", "c1-extra-0002"]);
    queue_is(&cluster, [over, waits, runs], [runs, over]);
    release(&cluster, &["JobC"]);
    queue_is(&cluster, [over, waits, over], [runs, over]);
    release(&cluster, &["c1-standard-0001", "c1-standard-0002"]);
    queue_is(&cluster, [over, runs, over], [over, over]);
    release(&cluster, &["JobB"]);
    queue_is(&cluster, [over; 3], [over; 2]);
    assert_eq!(on_new_image(&cluster, "c1"), 0, "without a reboot, nothing is rebuilt");
}

on_each_release! {
    rebuild_jobs: go_before_waiting_jobs;
    the_queue: come_and_go_in_their_order;
}
