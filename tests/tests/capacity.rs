//! What the cloud refuses, loses or answers late: every job completes, or waits with a reason that its owner can read.

use cloud_sim::{Capacity, Fault, Limit, Recorded, Rule, Throttle};
use e2e::{Cluster, on_each_release};
use std::time::{Duration, Instant};

const FIRST: &str = "Uocm:PHX-AD-1";

fn room(zone: &str, instances: u64) -> Capacity {
    let availability_domain = Some(zone.to_owned());
    Capacity { availability_domain, shape: None, instances, fails_later: false }
}

/// A small part of ResumeTimeout, which is when a job is back in the queue without us; how long it takes is printed.
const AT_ONCE: Duration = Duration::from_secs(30);

/// Submits a job that the cloud refuses, waits until Slurm has it back, and says how long that took.
fn refused(cluster: &Cluster, words: &str) -> u32 {
    cluster.cloud().clear_requests();
    let job = cluster.submit(&["--nodes=2"], "srun hostname");
    cluster.until("the cloud says no", || {
        answers(cluster, |request| {
            request.operation == "LaunchInstance" && request.status.is_some_and(|code| code >= 400)
        }) > 0
    });
    let no = Instant::now();
    cluster.until("the job is back in the queue", || cluster.job(job, "Restarts") != "0");
    let took = no.elapsed();
    println!(
        "{words}: from the cloud's no to the requeue {:.1} s (ResumeTimeout 600 s)",
        took.as_secs_f64()
    );
    assert!(took < AT_ONCE, "{}", cluster.story());
    waits(cluster, job, words);
    job
}

/// Waits until a job is in the queue and says why. One that is tried again meanwhile is soon back.
fn waits(cluster: &Cluster, job: u32, words: &str) {
    cluster.until("the job says why it waits", || {
        let shown = cluster.ask("scontrol", &["show", "job", &job.to_string()]);
        shown.contains("JobState=PENDING") && shown.contains(words)
    });
}

/// How many of the answers since the requests were cleared are such.
fn answers(cluster: &Cluster, is_such: impl Fn(&Recorded) -> bool) -> usize {
    cluster.cloud().requests().iter().filter(|request| is_such(request)).count()
}

fn waits_for_room(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).start();
    cluster.cloud().set_capacity(&[room(FIRST, 0)]);
    let job = refused(&cluster, "capacity");
    cluster.cloud().set_capacity(&[]);
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
    let limit =
        |value| Limit { name: "standard2-core-count".to_owned(), availability_domain: None, value };
    cluster.cloud().set_limit(&limit(0));
    let job = refused(&cluster, "quota");
    cluster.cloud().set_limit(&limit(100));
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
    no_room_later(&cluster);
}

/// The cloud takes the launches, and says later that it has no room.
fn no_room_later(cluster: &Cluster) {
    cluster.cloud().set_capacity(&[Capacity { fails_later: true, ..room(FIRST, 0) }]);
    cluster.cloud().clear_requests();
    let job = cluster.submit(&["--nodes=2"], "srun hostname");
    waits(cluster, job, "capacity");
    let accepted =
        |request: &Recorded| request.operation == "LaunchInstance" && request.status == Some(200);
    assert_ne!(answers(cluster, accepted), 0, "{}", cluster.story());
    assert_ne!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    cluster.cloud().set_capacity(&[]);
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
}

fn bears_faults(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).suspend_time(1).start();
    let completes = |what: &str, is_such: fn(&Recorded) -> bool| -> usize {
        cluster.cloud().clear_requests();
        let before = cluster.cloud().instances().len();
        let begun = Instant::now();
        let job = cluster.submit(&["--nodes=4"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).len(), 4, "{what}: {}", cluster.output(job));
        let wrong = answers(&cluster, is_such);
        assert_ne!(wrong, 0, "{what} was to be seen\n{}", cluster.story());
        cluster.cloud().clear_faults();
        cluster.cloud().set_throttle(&[]);
        cluster.wait_empty();
        println!("{what}: {:.1} s, {:?}", begun.elapsed().as_secs_f64(), cluster.cloud().counts());
        cluster.cloud().instances().len() - before
    };
    cluster.cloud().set_throttle(&[Throttle {
        operation: "*".to_owned(),
        per_second: 4.0,
        burst: 2.0,
    }]);
    let _ = completes("throttle storm", |request| request.status == Some(429));
    let unavailable = Fault::answer(503, "ServiceUnavailable", "try again");
    cluster.cloud().add_fault(&Rule { probability: 0.3, ..Rule::always("*", unavailable) });
    let _ = completes("5xx", |request| request.status == Some(503));
    for fault in [Fault::DropAfter, Fault::DropBefore] {
        cluster
            .cloud()
            .add_fault(&Rule { count: Some(2), ..Rule::always("LaunchInstance", fault) });
    }
    let lost = completes("lost answers", |request| request.status.is_none());
    assert_eq!(lost, 4, "a machine for each node, once");
    let late = Fault::Delay { millis: 2000 };
    cluster.cloud().add_fault(&Rule { count: Some(3), ..Rule::always("*", late) });
    let late = completes("late answers", |request| !request.faults.is_empty());
    assert_eq!(late, 4, "a machine for each node, once");
}

fn goes_elsewhere(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).config("fallback: [{zone: 2}]").start();
    cluster.cloud().set_capacity(&[room(FIRST, 0)]);
    let job = cluster.submit(&["--nodes=4"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    let all = cluster.cloud().instances();
    let zones = all.iter().map(|one| one.availability_domain.as_str());
    assert!(zones.clone().all(|zone| zone == "Uocm:PHX-AD-2"), "{:?}", zones.collect::<Vec<_>>());
    cluster.wait_empty();
}

/// Without a `fallback`: nodes of the zone without room are kept from the job until the cool-down is over.
fn makes_way(series: &str) {
    let cluster = Cluster::builder(series)
        .limits("VM.Standard2.1: {1: 2, 2: 2}\n")
        .elastic("cooldown: 1h")
        .start();
    cluster.cloud().set_capacity(&[room(FIRST, 0)]);
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.until("the job is back in the queue", || cluster.job(job, "Restarts") != "0");
    let full = ["vm-standard2-1-ad1-0001", "vm-standard2-1-ad1-0002"];
    let drained = |node| cluster.ask("scontrol", &["show", "node", node]).contains("+DRAIN");
    cluster.until("nodes in the full zone are kept from jobs", || {
        let _ = cluster.well("reconcile", &["--apply"]);
        full.iter().all(|node| drained(node))
    });
    cluster.wait_job(job, "COMPLETED");
    let hosts = cluster.hosts(job);
    assert!(hosts.iter().all(|host| host.contains("-ad2-")), "{hosts:?}\n{}", cluster.story());
    cluster.cloud().set_capacity(&[]);
    // What is remembered may be lost at any time; here it stands for the end of the hour.
    let remembered = cluster.dir().join("elastic/cooldowns.json");
    assert!(std::fs::remove_file(&remembered).is_ok(), "{} was there", remembered.display());
    let _ = cluster.well("reconcile", &["--apply"]);
    assert!(!full.iter().any(|node| drained(node)), "{}", cluster.story());
    let job = cluster.submit(&["--nodelist", full[0]], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
}

on_each_release! {
    no_room_and_no_quota: waits_for_room;
    faulty_answers: bears_faults;
    another_zone: goes_elsewhere;
    nodes_of_another_zone: makes_way;
}
