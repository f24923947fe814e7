//! How long a job waits that the cloud has refused a machine for, and how long once its machine is there.

use cloud_sim::Capacity;
use e2e::{Cluster, on_each_release};
use std::time::{Duration, Instant};

const HERE: &str = "vm-standard2-1-ad1-0001";
const ELSEWHERE: &str = "vm-standard2-1-ad2-0001";

/// What a job may wait that has its machine, or that is requeued at once; slurmctld's own check comes every 30 seconds, and
/// its usual pause is two minutes.
const AT_ONCE: Duration = Duration::from_secs(2);

/// How often Slurm is looked at.
fn moment(what: &str, cluster: &Cluster, seen: impl FnMut() -> bool) -> Instant {
    cluster.until(what, seen);
    Instant::now()
}

/// Submits a job that is requeued, at once where that can be had: by the variable that makes it the default of a site.
fn submit(cluster: &Cluster, expedites: bool) -> u32 {
    if !expedites {
        return cluster.submit(&["--nodes=1", "--requeue"], "sleep 1");
    }
    let sbatch = cluster.release().dir().join("bin/sbatch").display().to_string();
    let words = ["--parsable", "--nodes=1", "--output=/dev/null", "--wrap", "sleep 1"];
    let job = cluster
        .ask("/usr/bin/env", &[&["SBATCH_REQUEUE=expedite", sbatch.as_str()][..], &words].concat());
    job.trim().parse().unwrap()
}

fn goes_on_elsewhere(series: &str) {
    let cluster = Cluster::builder(series)
        .limits("VM.Standard2.1: {1: 1, 2: 1}\n")
        .suspend_time(60)
        .elastic("cooldown: 1h")
        .start();
    let expedites = cluster.release().version().has_expedited_requeue();
    let zone = Some("Uocm:PHX-AD-1".to_owned());
    cluster.cloud().set_capacity(&[Capacity {
        availability_domain: zone,
        shape: None,
        instances: 0,
        fails_later: false,
    }]);
    let job = submit(&cluster, expedites);
    let no = moment("the cloud says no", &cluster, || {
        let refused = |code: u16| code >= 400;
        let requests = cluster.cloud().requests();
        requests.iter().any(|it| it.operation == "LaunchInstance" && it.status.is_some_and(refused))
    });
    if !expedites {
        // It waits for its credential to end, and would get the first node again.
        cluster.until("the node is kept from jobs", || {
            let _ = cluster.well("reconcile", &["--apply"]);
            cluster.node(HERE).contains("+DRAIN")
        });
    }
    let configuring =
        moment("the job has another node", &cluster, || cluster.job(job, "NodeList") == ELSEWHERE);
    let registered = moment("its machine has registered", &cluster, || {
        let node = cluster.node(ELSEWHERE);
        !["POWERING_UP", "POWERED_DOWN"].iter().any(|state| node.contains(state))
    });
    let running = moment("the job runs", &cluster, || {
        let state = cluster.job(job, "JobState");
        state != "CONFIGURING" && state != "PENDING"
    });
    let (again, begins) = (configuring - no, running - registered);
    println!(
        "{series}: from the cloud's no to another node {again:.1?}, from its registration to the job {begins:.1?}"
    );
    assert!(!expedites || again <= AT_ONCE, "{again:?}\n{}", cluster.story());
    assert!(begins <= AT_ONCE, "{begins:?}\n{}", cluster.story());
    cluster.wait_job(job, "COMPLETED");
    cluster.scontrol(&format!("update nodename={ELSEWHERE} state=power_down_force"));
    cluster.wait_empty();
}

on_each_release! {
    another_node: goes_on_elsewhere;
}
