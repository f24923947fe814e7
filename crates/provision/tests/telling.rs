//! What Slurm is told when a start ends, and does not answer just then.

use crate::common::run;
use crate::common::{Bed, groups, names, node};
use cloud_core::memory::InjectedFault;
use cloud_core::{ApiOperation, ErrorKind};
use provision::Outcome;
use slurmctl::JobState;
use slurmctl::memory::{Call, JobSpec, Registration};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Waits until Slurm has taken a node back.
async fn given_back(bed: &Bed, name: &str) {
    while bed.slurm.node(name).unwrap().state.is_powering_up() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// The second node fails when the first is up, and nothing but the release of that one is left to do.
#[tokio::test(start_paused = true)]
async fn a_call_that_slurmctld_does_not_answer_loses_no_release_and_no_comment() {
    let mut bed = Bed::new("n[1-2]");
    bed.site.policies.concurrency = 1;
    let (job, request) = bed.job(2).await;
    let (nodes, jobs) = (names("n[1-2]"), groups(&request));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::ZERO));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_mins(2)));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let away = async {
        sleep(Duration::from_mins(1)).await;
        bed.cloud.set_quota(Some(1));
        given_back(&bed, "n2").await;
        bed.slurm.set_unreachable(true);
        sleep(Duration::from_secs(5)).await;
        bed.slurm.set_unreachable(false);
    };
    let (report, ()) = tokio::join!(start, away);
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Released, "{report:?}");
    assert!(!bed.slurm.node("n1").unwrap().state.is_powering_up(), "its job does not run");
    let comment = bed.slurm.job(job).unwrap().admin_comment;
    assert!(comment.is_some_and(|text| text.contains("quota")), "its owner knows why");
}

/// The first node is up by then, and Slurm gives it to another job as soon as it is free.
#[tokio::test(start_paused = true)]
async fn a_job_that_has_just_got_a_released_node_is_not_killed() {
    let mut bed = Bed::new("n[1-2]");
    bed.site.policies.concurrency = 1;
    let (_, request) = bed.job(2).await;
    let (nodes, jobs) = (names("n[1-2]"), groups(&request));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::ZERO));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_mins(2)));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let other = async {
        sleep(Duration::from_mins(1)).await;
        bed.cloud.set_quota(Some(1));
        let up = bed.slurm.register(&node("n1"), "10.0.0.9", Instant::now());
        assert_eq!(up, Registration::Accepted);
        given_back(&bed, "n2").await;
        // Slurm is asked how the node stands ten milliseconds before, and told to let it go ten after.
        sleep(Duration::from_millis(30)).await;
        let wanted = names("n1");
        let other = JobSpec { wanted, ..JobSpec::new(1, Duration::from_mins(10)) };
        let other = bed.slurm.submit_job(other);
        let _ = bed.slurm.tick();
        assert_eq!(bed.slurm.job(other).unwrap().state, JobState::Running);
        other
    };
    let (report, other) = tokio::join!(start, other);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Released, "{report:?}");
    let other = bed.slurm.job(other).unwrap();
    assert_eq!((other.state, other.restarts), (JobState::Running, 0), "{report:?}");
    assert_eq!(bed.live().len(), 1, "it runs there");
    assert!(
        bed.slurm.node("n1").unwrap().state.is_power_down_requested(),
        "and goes when it has run"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slurmctld_that_died_is_not_waited_for_once_for_each_job() {
    let bed = Bed::new("n[01-20]");
    for _ in 0..20 {
        let _ = bed.slurm.submit_job(JobSpec::new(1, Duration::from_mins(1)));
    }
    let calls = bed.slurm.tick();
    let [Call::Resume { request, .. }] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!(request.jobs.len(), 20);
    bed.cloud.inject_randomly(
        Some(ApiOperation::Launch),
        InjectedFault::Refuse(ErrorKind::Forbidden),
        1.0,
    );
    let (nodes, jobs, begun) = (names("n[01-20]"), groups(request), Instant::now());
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let dies = async {
        for name in &nodes {
            given_back(&bed, name.as_str()).await;
        }
        bed.slurm.set_unreachable(true);
    };
    let (report, ()) = tokio::join!(start, dies);
    assert_eq!(report.with(Outcome::ReturnedToSlurm).count(), 20, "{report:?}");
    assert!(begun.elapsed() < Duration::from_secs(90), "{:?}", begun.elapsed());
}
