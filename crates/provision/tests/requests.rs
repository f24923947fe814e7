//! How much is asked of the cloud, and how fast it answers Slurm.

use crate::common::run;
use crate::common::{Bed, groups, names};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, RequestOutcome as Answer};
use cloud_core::{ApiOperation, ErrorKind, ShapeName, Zone};
use provision::{Cause, Fallback, Outcome};
use slurmctl::JobState;
use slurmctl::memory::Call;
use std::time::Duration;
use tokio::time::{Instant, advance};

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_take_few_requests() {
    let mut settings = MemoryCloudSettings::default();
    settings.page = 1000;
    let bed = Bed::with("n[0001-1000]", settings);
    let (_, request) = bed.job(1000).await;
    let nodes = request.all.node_names().unwrap();
    let report = bed.run(async |run| run::start(run, &nodes, &groups(&request)).await).await;
    assert!(report.is_success());
    assert_eq!(report.with(Outcome::Up).count(), 1000);
    assert_eq!(bed.live().len(), 1000);
    let launches = bed.requests(ApiOperation::Launch);
    let others = bed.cloud.history().len() - launches;
    println!("{launches} launches and {others} other requests for 1000 nodes");
    assert!(launches <= 1050, "{launches} launches");
    assert!(others <= 25, "{others} other requests");
    let told = bed.slurm.all_nodes();
    for instance in bed.live() {
        let name = instance.tags.get("node").unwrap();
        let known = told.iter().find(|known| known.name.as_str() == name).unwrap();
        assert_eq!(known.address, instance.address.unwrap().to_string(), "{name}");
    }
}

/// A refusal: the node is back, its job requeued, and both say why, within a second.
async fn fails_fast(kind: ErrorKind, cause: Cause, words: &str) {
    let bed = Bed::new("n[1-4]");
    bed.cloud.inject_randomly(Some(ApiOperation::Launch), InjectedFault::Refuse(kind), 1.0);
    let (job, request) = bed.job(2).await;
    let nodes = request.all.node_names().unwrap();
    let report = bed.run(async |run| run::start(run, &nodes, &groups(&request)).await).await;
    let ended = Instant::now().saturating_duration_since(bed.begun);
    let history = bed.cloud.history();
    let refused = history.iter().find(|event| event.outcome == Answer::Refused(kind)).unwrap();
    let took = ended.saturating_sub(refused.at);
    assert!(took <= Duration::from_secs(1), "{took:?}");
    for name in &nodes {
        assert_eq!(report.nodes[name].outcome, Outcome::ReturnedToSlurm, "{name}");
        let known = bed.slurm.node(name.as_str()).unwrap();
        assert!(!known.state.is_powering_up() && !known.state.is_down(), "{}", known.state);
        assert!(known.reason_text().contains(words), "{}", known.reason_text());
    }
    assert!(report.nodes.values().any(|node| node.cause == Some(cause)));
    assert!(report.nodes.values().any(|node| node.request_id.is_some()));
    assert_eq!(report.exit_code(), 1);
    let known = bed.slurm.job(job).unwrap();
    assert_eq!((known.state, known.restarts), (JobState::Pending, 1));
    let comment = known.admin_comment.unwrap_or_default();
    assert!(comment.starts_with(&format!("Job {job} waits: ")), "{comment}");
}

#[tokio::test(start_paused = true)]
async fn out_of_capacity_the_job_is_requeued_within_a_second() {
    fails_fast(ErrorKind::Capacity, Cause::Capacity, "out of capacity").await;
}

#[tokio::test(start_paused = true)]
async fn out_of_quota_the_job_is_requeued_within_a_second() {
    fails_fast(ErrorKind::Quota, Cause::Quota, "quota exceeded").await;
}

#[tokio::test(start_paused = true)]
async fn a_cloud_without_room_is_not_asked_again_and_again() {
    for kind in [ErrorKind::Capacity, ErrorKind::Quota] {
        let mut bed = Bed::new("n[1-2]");
        bed.site.policies.cooldown = Duration::from_mins(10);
        bed.cloud.inject_randomly(Some(ApiOperation::Launch), InjectedFault::Refuse(kind), 1.0);
        let (job, request) = bed.job(2).await;
        let mut calls = vec![Call::Resume { nodes: request.all.clone(), request }];
        let mut resumes = 0;
        // Six cool-downs, with a job that wants its nodes all the time.
        let end = Instant::now() + Duration::from_hours(1);
        while Instant::now() < end {
            for call in std::mem::take(&mut calls) {
                match call {
                    Call::Resume { nodes, request } => {
                        resumes += 1;
                        let nodes = nodes.node_names().unwrap();
                        bed.run(async |run| run::start(run, &nodes, &groups(&request)).await).await;
                    }
                    Call::Suspend { nodes } => {
                        let nodes = nodes.node_names().unwrap();
                        bed.run(async |run| run::stop(run, &nodes).await).await;
                    }
                    other => panic!("{other:?}"),
                }
            }
            advance(Duration::from_secs(1)).await;
            calls = bed.slurm.tick();
        }
        let launches = bed.requests(ApiOperation::Launch);
        println!("{kind}: {launches} launches in {resumes} resumes of 2 nodes and 6 cool-downs");
        assert!(resumes > 10, "slurmctld wanted the nodes only {resumes} times");
        // Two at the first time, side by side; then one probe for each cool-down.
        assert!(launches <= 2 + 6, "{launches} launches");
        assert!(bed.live().is_empty());
        assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Pending);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_zone_is_left_for_the_next_by_all_nodes_at_once() {
    let mut bed = Bed::new("n[01-40]");
    bed.site.policies.concurrency = 4;
    let other = Fallback { zone: Some(Zone::new("zone-2")), ..Fallback::default() };
    bed.site.fallback = vec![other];
    bed.cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), Some(0));
    let nodes = names("n[01-40]");
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert!(report.is_success(), "{report:?}");
    assert!(bed.live().iter().all(|one| one.zone == Some(Zone::new("zone-2"))));
    let launches = bed.requests(ApiOperation::Launch);
    assert!(launches <= 44, "{launches} launches for 40 nodes");
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_is_replaced_in_the_next_zone() {
    let mut bed = Bed::new("n[1-3]");
    let other = Fallback { zone: Some(Zone::new("zone-2")), ..Fallback::default() };
    bed.site.fallback = vec![other];
    bed.cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), Some(0));
    bed.cloud.set_late_capacity(true);
    let nodes = names("n[1-3]");
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(bed.live().len(), 3);
    assert!(bed.live().iter().all(|one| one.zone == Some(Zone::new("zone-2"))));
}

#[tokio::test(start_paused = true)]
async fn a_late_failure_without_another_place_is_given_back_at_once() {
    let bed = Bed::new("n1");
    bed.cloud.inject_randomly(
        Some(ApiOperation::Launch),
        InjectedFault::FailLater(ErrorKind::Capacity),
        1.0,
    );
    let (job, request) = bed.job(1).await;
    let nodes = request.all.node_names().unwrap();
    let report = bed.run(async |run| run::start(run, &nodes, &groups(&request)).await).await;
    let ended = Instant::now().saturating_duration_since(bed.begun);
    let history = bed.cloud.history();
    let seen = history.iter().rfind(|event| event.operation == ApiOperation::List).unwrap();
    assert!(ended.saturating_sub(seen.at) <= Duration::from_secs(1), "{report:?}");
    assert_eq!(report.nodes[&nodes[0]].outcome, Outcome::ReturnedToSlurm);
    assert_eq!(report.nodes[&nodes[0]].cause, Some(Cause::Capacity));
    assert!(bed.live().is_empty());
    assert_eq!(bed.slurm.job(job).unwrap().restarts, 1);
    let cooling = bed.state.load(provision::state::StateFile::Cooldowns).unwrap();
    assert!(cooling.is_some_and(|text| text.contains("small")), "the pool is not tried again");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_throttled_once_does_not_close_its_pool() {
    let bed = Bed::new("n[1-3]");
    let nodes = names("n[1-3]");
    bed.cloud.inject_randomly(
        Some(ApiOperation::Launch),
        InjectedFault::Refuse(ErrorKind::Capacity),
        1.0,
    );
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    bed.cloud.clear_faults();
    advance(bed.site.policies.cooldown + Duration::from_secs(1)).await;
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Throttled));
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 3, "{report:?}");
    assert_eq!(bed.live().len(), 3);
}
