//! Rebuild jobs on nodes that are always there: they go before all other jobs, and each node is rebuilt before its own runs.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, on_each_release, wait_for};
use std::time::Duration;

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

/// The cloud refuses a rebuild: the job ends at once, and the machine stays, with all that is on it, beyond ResumeTimeout.
fn that_are_refused_cost_a_persistent_node_its_machine(series: &str) {
    let node = "c1-extra-0001";
    let cluster = cluster(series);
    let id = || cluster.machines().into_iter().find(|it| it.display_name == node).map(|it| it.id);
    let before = id();
    let refuse = Fault::answer(403, "NotAllowed", "not today");
    cluster.cloud().add_fault(&Rule::always("UpdateInstance", refuse));
    cluster.set("ResumeTimeout", 20);
    cluster.configure("image_id", NEW);
    let _ = cluster.well("rebuild", &["submit", "--jobs", "rebuild", node]);
    cluster.until("the job ends", || cluster.node(node).contains("DRAIN"));
    let reason = cluster.node_fields("Reason").remove(node).unwrap_or_default();
    assert!(reason.starts_with("elastic:"), "{reason}");
    cluster.until("ResumeTimeout", || cluster.node(node).contains("POWERED_DOWN"));
    let stays = "its machine stays";
    cluster.until("ResumeFailProgram", || cluster.log("elastic.log").contains(stays));
    assert_eq!(id(), before, "{}", cluster.story());
    let is_idle = || cluster.nodes().get(node).is_some_and(|state| state == "IDLE");
    cluster.until("Slurm has it back", || {
        // slurmctld asks every slurmd when it reads its file, but only once: a busy one may miss it.
        cluster.set("ResumeTimeout", 600);
        wait_for(Duration::from_secs(5), || is_idle().then_some(())).is_some()
    });
    let wanted = format!("--nodelist={node}");
    let job = cluster.submit(&["--partition=extra", &wanted], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(id(), before, "{}", cluster.story());
}

on_each_release! {
    rebuild_jobs: go_before_waiting_jobs;
    rebuild_jobs_refused: that_are_refused_cost_a_persistent_node_its_machine;
    the_queue: come_and_go_in_their_order;
}
