//! Nodes that are to be rebuilt for a job with `--reboot`, and are not.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::InjectedFault;
use cloud_core::{
    ApiOperation, ErrorKind, ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName,
};
use provision::plan::{RebuildOptions, Target};
use provision::{Outcome, Report};
use slurmconf::SlurmVersion;
use slurmctl::memory::{Call, JobSpec, MemorySlurm, MemorySlurmSettings, NodeSpec};
use slurmctl::{Controller as _, JobId, JobState, NodeAction};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const RELEASES: [(u16, u16); 3] = [(22, 5), (24, 11), (26, 5)];

fn slurm(
    bed: &Bed,
    (major, minor): (u16, u16),
    spec: fn(hostlist::NodeName) -> NodeSpec,
) -> MemorySlurm {
    let mut settings = MemorySlurmSettings::cloud(&"n1".parse().unwrap());
    settings.version = SlurmVersion::new(major, minor);
    settings.nodes = vec![spec(node("n1"))];
    settings.epoch = bed.now();
    MemorySlurm::new(settings)
}

/// A node that is always there, with a machine of ours.
async fn persistent(release: (u16, u16)) -> Bed {
    let mut bed = Bed::new("n1");
    bed.config = conf("NodeName=n1 CPUs=2 State=UNKNOWN Features=shape=small,ad=1");
    bed.slurm = slurm(&bed, release, NodeSpec::fixed);
    let (shape, image) = (ShapeName::new("small"), ImageId::new("image-1"));
    let mut spec = InstanceSpec::new(InstanceName::new("n1"), shape, image);
    spec.tags = bed.site.identity.tags_of(&node("n1"));
    bed.cloud.launch(&spec).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    bed.site.image = Some(ImageId::new("image-2"));
    bed
}

/// A job with `--reboot`, once slurmctld has called for it.
async fn reboot_job(bed: &Bed) -> JobId {
    let mut spec = JobSpec::new(1, Duration::from_mins(1));
    (spec.reboot, spec.requeue) = (true, false);
    let job = bed.slurm.submit_job(spec);
    let called = |call: &Call| matches!(call, Call::RebootJob { .. } | Call::Reboot { .. });
    until(bed, called).await;
    job
}

/// Waits until slurmctld makes such a call.
async fn until(bed: &Bed, wanted: impl Fn(&Call) -> bool) {
    for _ in 0..1000 {
        if bed.slurm.tick().iter().any(&wanted) {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("slurmctld does not call: {:?}", bed.slurm.node("n1"));
}

async fn rebuild(bed: &Bed) -> Report {
    let options =
        RebuildOptions { launch_absent: true, slurm_asks: true, ..RebuildOptions::default() };
    let targets = [Target::new(node("n1"))];
    bed.run(async |run| run::rebuild(run, &targets, options).await).await
}

/// What follows when Slurm has waited long enough.
async fn give_up(bed: &Bed) {
    until(bed, |call| matches!(call, Call::ResumeFail { .. })).await;
    let report = bed.run(async |run| run::failed(run, &names("n1")).await).await;
    assert_eq!(report.with(Outcome::Refused).count(), 1, "{report:?}");
    assert_eq!(bed.requests(ApiOperation::Terminate), 0);
    assert_eq!(bed.live().len(), 1);
    assert!(bed.slurm.node("n1").unwrap().state.is_down());
}

/// Nobody was told, and at ResumeTimeout a healthy machine and all that was on it went.
#[tokio::test(start_paused = true)]
async fn a_refused_rebuild_job_keeps_the_persistent_machine() {
    for release in RELEASES {
        let bed = persistent(release).await;
        let job = reboot_job(&bed).await;
        bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Forbidden));
        let report = rebuild(&bed).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
        let told = bed.slurm.node("n1").unwrap();
        assert!(told.state.has_drain(), "{release:?}: {told:?}");
        assert!(told.reason_text().starts_with("elastic: not rebuilt: "), "{told:?}");
        assert_eq!(bed.slurm.job(job).unwrap().state, JobState::NodeFail, "{release:?}");
        give_up(&bed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_rebuild_job_keeps_the_persistent_machine() {
    for release in RELEASES {
        let bed = persistent(release).await;
        let job = reboot_job(&bed).await;
        // Nothing comes of it, and its repeat is refused as if it were under way.
        bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::LoseRequest);
        bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Conflict));
        let report = rebuild(&bed).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
        let waits = bed.slurm.node("n1").unwrap().state;
        assert!(waits.is_powering_up() && !waits.has_drain(), "it may still come: {waits}");
        assert!(!bed.slurm.job(job).unwrap().state.is_finished(), "{release:?}");
        give_up(&bed).await;
    }
}

/// Only 22.05 calls for such a job.
#[tokio::test(start_paused = true)]
async fn a_refused_rebuild_job_does_not_wait_for_its_elastic_node() {
    let mut bed = Bed::new("n1");
    bed.slurm = slurm(&bed, (22, 5), NodeSpec::cloud);
    let (_, request) = bed.job(1).await;
    let report = bed.run(async |run| run::start(run, &names("n1"), &groups(&request)).await).await;
    assert!(report.is_success(), "{report:?}");
    let address = bed.live()[0].address.unwrap().to_string();
    let _ = bed.slurm.register(&node("n1"), &address, Instant::now());
    bed.site.image = Some(ImageId::new("image-2"));
    let job = reboot_job(&bed).await;
    bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Forbidden));
    let report = rebuild(&bed).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!(bed.slurm.job(job).unwrap().state, JobState::NodeFail);
    until(&bed, |call| matches!(call, Call::Suspend { .. })).await;
    let told = bed.slurm.node("n1").unwrap();
    assert!(told.reason_text().starts_with("elastic: not rebuilt: "), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rebuild_by_hand_takes_no_node_from_a_job_that_waits_for_its_start() {
    let bed = Bed::new("n1");
    let (job, request) = bed.job(1).await;
    let report = bed.run(async |run| run::start(run, &names("n1"), &groups(&request)).await).await;
    assert!(report.is_success(), "{report:?}");
    let report = rebuild(&bed).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Refused, "{report:?}");
    assert!(bed.slurm.node("n1").unwrap().state.is_powering_up());
    assert!(!bed.slurm.job(job).unwrap().state.is_finished());
    assert_eq!(bed.live().len(), 1);
}

/// Slurm takes a node that it has powered down for one without a machine, and asks for it.
#[tokio::test(start_paused = true)]
async fn the_next_job_keeps_the_persistent_machine_that_a_rebuild_job_left() {
    let mut bed = persistent((24, 11)).await;
    let before = bed.live().remove(0).id;
    reboot_job(&bed).await;
    bed.cloud.inject(ApiOperation::Rebuild, InjectedFault::Refuse(ErrorKind::Forbidden));
    let _ = rebuild(&bed).await;
    give_up(&bed).await;
    bed.slurm.set_state(&"n1".parse().unwrap(), NodeAction::Resume, None).await.unwrap();
    let (_, request) = bed.job(1).await;
    bed.site.policies.oldest = Some(Duration::from_mins(1));
    let report = bed.run(async |run| run::start(run, &names("n1"), &groups(&request)).await).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(bed.cloud.boots(&before), Some(2), "rebooted");
    assert_eq!(bed.requests(ApiOperation::Terminate), 0);
}
