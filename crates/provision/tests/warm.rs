//! Machines that are kept warm: stopped when Slurm powers their nodes down, and started when it needs them.

use crate::common::run;
use crate::common::{Bed, conf, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings};
use cloud_core::{
    ApiOperation, Capability, ErrorKind, ImageId, Instance, InstanceId, InstanceState,
};
use history::Lives;
use provision::plan::{RebuildOptions, Target};
use provision::state::EventKind::{self, Launched, Started, Stopped, Terminated};
use provision::{Files, Outcome, Report};
use slurmctl::memory::{Call, JobSpec};
use std::time::Duration;
use tokio::time::{Instant, advance, sleep};

const WARM: &str = "shape=small,ad=1,warm";

fn bed_of(settings: MemoryCloudSettings) -> Bed {
    let mut bed = Bed::with("n[1-2]", settings);
    bed.config = conf(&format!("NodeName=n[1-2] State=CLOUD CPUs=2 Features={WARM}"));
    bed
}

fn bed() -> Bed {
    bed_of(MemoryCloudSettings::default())
}

async fn start(bed: &Bed) -> Report {
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await
}

async fn stop(bed: &Bed) -> Report {
    bed.run(async |run| run::stop(run, &names("n1")).await).await
}

/// Has a job run on n1, and waits until slurmctld calls for its end.
async fn work(bed: &Bed) {
    let wanted = names("n1");
    let _ = bed.slurm.submit_job(JobSpec { wanted, ..JobSpec::new(1, Duration::from_secs(20)) });
    let until = Instant::now() + Duration::from_mins(30);
    while Instant::now() < until {
        for call in bed.slurm.tick() {
            match call {
                Call::Resume { .. } => {
                    let report = start(bed).await;
                    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
                    let _ = bed.slurm.register(&node("n1"), "10.0.0.1", Instant::now());
                }
                Call::Suspend { .. } => {
                    stop(bed).await;
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
        advance(Duration::from_secs(1)).await;
    }
    panic!("n1 is never powered down");
}

/// The only machine, once it has stopped.
async fn kept(bed: &Bed) -> Instance {
    sleep(Duration::from_mins(2)).await;
    let [one] = &bed.live()[..] else { panic!("{:?}", bed.live()) };
    assert_eq!(one.state, InstanceState::Stopped);
    one.clone()
}

fn kinds(bed: &Bed) -> Vec<EventKind> {
    let of_machines = [
        EventKind::Launched,
        EventKind::LaunchFailed,
        EventKind::Stopped,
        EventKind::Started,
        EventKind::Terminated,
    ];
    let events = bed.state.history().unwrap().events.into_iter().map(|event| event.event);
    events.filter(|kind| of_machines.contains(kind)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_stopped_and_started_again() {
    let bed = bed();
    work(&bed).await;
    let first = kept(&bed).await;
    work(&bed).await;
    assert_eq!(kept(&bed).await.id, first.id);
    assert_eq!(kinds(&bed), [Launched, Stopped, Started, Stopped]);
    // While it was off, it was no machine that anybody pays for.
    let log = bed.state.history().unwrap();
    let lives = Lives::of(&log.events);
    let periods: Vec<(u64, u64)> = lives.lives.iter().filter_map(|it| it.machine(0)).collect();
    let [(_, off), (on, _)] = periods[..] else { panic!("{periods:?}") };
    assert!(on - off >= 120_000, "{periods:?}");
    assert!(lives.lives.iter().all(|life| life.place.shape.as_deref() == Some("small")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_with_another_image_is_replaced_by_a_launch() {
    let mut bed = bed();
    work(&bed).await;
    let first = kept(&bed).await;
    bed.site.image = Some(ImageId::new("image-2"));
    work(&bed).await;
    let second = kept(&bed).await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.image, Some(ImageId::new("image-2")));
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_does_not_start_is_replaced_by_a_launch() {
    let bed = bed();
    work(&bed).await;
    let first = kept(&bed).await;
    let refusal = InjectedFault::Refuse(ErrorKind::Capacity);
    bed.cloud.inject(ApiOperation::Start, refusal);
    work(&bed).await;
    assert_ne!(kept(&bed).await.id, first.id);
    assert_eq!(kinds(&bed), [Launched, Stopped, Terminated, Launched, Stopped]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_cannot_be_stopped_is_terminated() {
    let mut settings = MemoryCloudSettings::default();
    settings.capabilities = settings.capabilities.without(Capability::Stop);
    let bed = bed_of(settings);
    work(&bed).await;
    assert_eq!(bed.live(), []);
}

#[tokio::test(start_paused = true)]
async fn reconcile_leaves_what_is_kept_and_terminates_what_is_outdated() {
    let mut bed = bed();
    work(&bed).await;
    let first = kept(&bed).await;
    let reconcile = async |bed: &Bed| {
        for _ in 0..3 {
            let _ = bed.slurm.tick();
            bed.run(async |run| run::reconcile(run).await).await;
            sleep(Duration::from_mins(10)).await;
        }
    };
    reconcile(&bed).await;
    assert_eq!(kept(&bed).await.id, first.id);
    bed.site.image = Some(ImageId::new("image-2"));
    reconcile(&bed).await;
    assert_eq!(bed.live(), []);
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_terminates_a_kept_machine_with_another_image_and_leaves_one_with_its_own() {
    let mut bed = bed();
    work(&bed).await;
    let first = kept(&bed).await;
    let rebuild = async |bed: &Bed| {
        let _ = bed.slurm.tick();
        let target = [Target::new(node("n1"))];
        let options = RebuildOptions::default();
        let report = bed.run(async |run| run::rebuild(run, &target, options).await).await;
        report.nodes[&node("n1")].outcome
    };
    assert_eq!(rebuild(&bed).await, Outcome::Nothing);
    assert_eq!(kept(&bed).await.id, first.id);
    bed.site.image = Some(ImageId::new("image-2"));
    assert_eq!(rebuild(&bed).await, Outcome::Down);
    assert_eq!(bed.live(), []);
    work(&bed).await;
    assert_eq!(kept(&bed).await.image, Some(ImageId::new("image-2")), "the next start renews it");
}

#[tokio::test(start_paused = true)]
async fn metrics_count_what_is_kept_and_a_start_takes_it_from_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = bed();
    let path = directory.path().join("elastic.prom");
    bed.files = Files { metrics: Some(path.clone()), ..Files::default() };
    let machines = async |bed: &Bed, state: &str| {
        bed.run(async |run| run::reconcile(run).await).await;
        let text = std::fs::read_to_string(&path).unwrap();
        let start = format!("slurm_elastic_machines{{state=\"{state}\"");
        let line = text.lines().find(|line| line.starts_with(&start)).map(str::to_owned);
        line.and_then(|line| line.rsplit(' ').next().map(str::to_owned)).unwrap_or_default()
    };
    work(&bed).await;
    kept(&bed).await;
    assert_eq!(
        (machines(&bed, "stopped").await, machines(&bed, "running").await),
        ("1".into(), "0".into())
    );
    assert_eq!(start(&bed).await.nodes[&node("n1")].outcome, Outcome::Up);
    assert_eq!(
        (machines(&bed, "stopped").await, machines(&bed, "running").await),
        ("0".into(), "1".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_machine_does_not_count_against_max_nodes() {
    let mut bed = bed();
    bed.site.policies.max_nodes = Some(1);
    work(&bed).await;
    let first: InstanceId = kept(&bed).await.id;
    let report = bed.run(async |run| run::start(run, &names("n2"), &[]).await).await;
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Up, "{report:?}");
    let report = start(&bed).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(provision::Cause::MaxNodes), "{report:?}");
    assert!(bed.live().iter().any(|one| one.id == first && one.state == InstanceState::Stopped));
}
