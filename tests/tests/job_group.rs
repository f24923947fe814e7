//! A job of four nodes of which one cannot be had.

use cloud_sim::Capacity;
use e2e::{Cluster, USUAL, alone};
use std::time::Instant;

/// The first zone has room for three.
fn cluster(config: &str) -> Cluster {
    let cluster = Cluster::builder(USUAL).nodes(4).suspend_time(1).config(config).start();
    let availability_domain = Some("Uocm:PHX-AD-1".to_owned());
    let room = Capacity { availability_domain, shape: None, instances: 3, fails_later: false };
    cluster.cloud().set_capacity(vec![room]);
    cluster
}

#[test]
fn three_of_four_are_released() {
    alone(|| {
        let cluster = cluster("");
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
        println!(
            "three machines released {:.1} s after the cloud's no",
            no.elapsed().as_secs_f64()
        );
        assert_ne!(cluster.job(job, "JobState"), "RUNNING", "{}", cluster.story());
        cluster.cloud().set_capacity(Vec::new());
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).len(), 4);
        cluster.wait_empty();
    });
}

#[test]
fn the_fourth_comes_from_another_zone() {
    alone(|| {
        let cluster = cluster("fallback: [{zone: 2}]");
        let job = cluster.submit(&["--nodes=4"], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        assert_eq!(cluster.hosts(job).len(), 4);
        assert_eq!(cluster.job(job, "Restarts"), "0");
        let instances = cluster.cloud().instances();
        let of =
            |zone: &str| instances.iter().filter(|one| one.availability_domain == zone).count();
        assert_eq!((of("Uocm:PHX-AD-1"), of("Uocm:PHX-AD-2")), (3, 1), "{}", cluster.story());
        cluster.wait_empty();
    });
}
