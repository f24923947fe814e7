//! What the cloud refuses, loses or answers late: every job completes, or waits with a reason that its owner can read.

#![expect(clippy::print_stdout, reason = "helpers of tests")]

use cloud_sim::{Capacity, Fault, Limit, Rule, Throttle};
use e2e::{Cluster, alone};
use std::time::Instant;

const FIRST: &str = "Uocm:PHX-AD-1";

fn room(zone: &str, instances: u64) -> Capacity {
    let availability_domain = Some(zone.to_owned());
    Capacity { availability_domain, shape: None, instances, fails_later: false }
}

/// Submits a job that the cloud refuses, waits until Slurm has it back, and says how long that took.
fn refused(cluster: &Cluster, words: &str) -> u32 {
    cluster.cloud().clear_requests();
    let job = cluster.submit(&["--nodes=2"], "srun hostname");
    let mut no = None;
    cluster.until("the job is back in the queue", || {
        let asked = cluster.cloud().requests();
        let refusals = |request: &cloud_sim::Recorded| {
            request.operation == "LaunchInstance" && request.status.is_some_and(|code| code >= 400)
        };
        if no.is_none() && asked.iter().any(refusals) {
            no = Some(Instant::now());
        }
        no.is_some() && cluster.job(job, "Restarts") != "0"
    });
    let took = no.map(|no| no.elapsed()).unwrap_or_default();
    println!(
        "{words}: from the cloud's no to the requeue {:.1} s (ResumeTimeout 90 s)",
        took.as_secs_f64()
    );
    let comment = || cluster.ask("scontrol", &["show", "job", &job.to_string()]);
    cluster.until("the job says why it waits", || comment().contains(words));
    assert_eq!(cluster.job(job, "JobState"), "PENDING", "{}", cluster.story());
    job
}

fn waits_for_room(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).start();
    cluster.cloud().set_capacity(vec![room(FIRST, 0)]);
    let job = refused(&cluster, "capacity");
    cluster.cloud().set_capacity(Vec::new());
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
    let limit =
        |value| Limit { name: "standard2-core-count".to_owned(), availability_domain: None, value };
    cluster.cloud().set_limit(limit(0));
    let job = refused(&cluster, "quota");
    cluster.cloud().set_limit(limit(100));
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
}

fn bears_faults(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).suspend_time(1).start();
    let completes = |what: &str| {
        let begun = Instant::now();
        let job = cluster.submit(&["--nodes=4"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).len(), 4, "{what}: {}", cluster.output(job));
        cluster.cloud().clear_faults();
        cluster.cloud().set_throttle(Vec::new());
        cluster.wait_empty();
        println!("{what}: {:.1} s, {:?}", begun.elapsed().as_secs_f64(), cluster.cloud().counts());
    };
    cluster.cloud().set_throttle(vec![Throttle {
        operation: "*".to_owned(),
        per_second: 4.0,
        burst: 2.0,
    }]);
    completes("throttle storm");
    let unavailable = Fault::answer(503, "ServiceUnavailable", "try again");
    cluster.cloud().add_fault(Rule { probability: 0.3, ..Rule::always("*", unavailable) });
    completes("5xx");
    for fault in [Fault::DropAfter, Fault::DropBefore] {
        cluster.cloud().add_fault(Rule { count: Some(2), ..Rule::always("LaunchInstance", fault) });
    }
    completes("lost answers");
    let late = Fault::Delay { millis: 2000 };
    cluster.cloud().add_fault(Rule { count: Some(3), ..Rule::always("*", late) });
    completes("late answers");
}

fn goes_elsewhere(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).config("fallback: [{zone: 2}]").start();
    cluster.cloud().set_capacity(vec![room(FIRST, 0)]);
    let job = cluster.submit(&["--nodes=4"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
    let all = cluster.cloud().instances();
    let zones = all.iter().map(|one| one.availability_domain.as_str());
    assert!(zones.clone().all(|zone| zone == "Uocm:PHX-AD-2"), "{:?}", zones.collect::<Vec<_>>());
    cluster.wait_empty();
}

macro_rules! on_all {
    ($($name:ident: $what:ident $series:literal;)*) => {$(
        #[test]
        fn $name() {
            alone(|| $what($series));
        }
    )*};
}

on_all! {
    no_room_and_no_quota_on_22_05: waits_for_room "22.05";
    no_room_and_no_quota_on_24_11: waits_for_room "24.11";
    no_room_and_no_quota_on_26_05: waits_for_room "26.05";
    faulty_answers_on_22_05: bears_faults "22.05";
    faulty_answers_on_24_11: bears_faults "24.11";
    faulty_answers_on_26_05: bears_faults "26.05";
    another_zone_on_22_05: goes_elsewhere "22.05";
    another_zone_on_24_11: goes_elsewhere "24.11";
    another_zone_on_26_05: goes_elsewhere "26.05";
}
