//! A job of four nodes of which one cannot be had.

use cloud_sim::Capacity;
use e2e::{Cluster, USUAL, in_namespaces};
use std::time::{Duration, Instant};

/// A small part of ResumeTimeout, until which they would be there without us; how long it takes is printed.
const AT_ONCE: Duration = Duration::from_secs(30);

/// The first zone has room for so many.
fn cluster(config: &str, instances: u64) -> Cluster {
    let cluster = Cluster::builder(USUAL).nodes(4).suspend_time(1).config(config).start();
    let availability_domain = Some("Uocm:PHX-AD-1".to_owned());
    let room = Capacity { availability_domain, shape: None, instances, fails_later: false };
    cluster.cloud().set_capacity(&[room]);
    cluster
}

#[test]
fn a_job_that_gets_three_of_four_nodes_releases_them() {
    in_namespaces(|| {
        let cluster = cluster("", 3);
        let job = cluster.submit(&["--nodes=4"], "srun hostname");
        let refused = || {
            let requests = cluster.cloud().requests();
            requests
                .iter()
                .any(|request| request.operation == "LaunchInstance" && request.status == Some(500))
        };
        cluster.until("the cloud says no", refused);
        let no = Instant::now();
        cluster.until("the three others are released", || cluster.live().is_empty());
        let took = no.elapsed();
        println!("three machines released {:.1} s after the cloud's no", took.as_secs_f64());
        assert!(took < AT_ONCE, "{}", cluster.story());
        assert_ne!(cluster.job(job, "JobState"), "RUNNING", "{}", cluster.story());
        cluster.cloud().set_capacity(&[]);
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).len(), 4);
        cluster.wait_empty();
    });
}

#[test]
fn the_fourth_comes_from_another_zone() {
    in_namespaces(|| come_from(3));
}

#[test]
fn all_four_come_from_another_zone_if_theirs_is_full() {
    in_namespaces(|| come_from(0));
}

/// Runs a job of four with room for so many in the first zone.
fn come_from(room: usize) {
    let cluster = cluster("fallback: [{zone: 2}]", u64::try_from(room).unwrap());
    let job = cluster.submit(&["--nodes=4"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.hosts(job).len(), 4);
    assert_eq!(cluster.job(job, "Restarts"), "0");
    let instances = cluster.cloud().instances();
    let of = |zone: &str| instances.iter().filter(|one| one.availability_domain == zone).count();
    let found = (of("Uocm:PHX-AD-1"), of("Uocm:PHX-AD-2"));
    assert_eq!(found, (room, 4 - room), "{}", cluster.story());
    cluster.wait_empty();
}
