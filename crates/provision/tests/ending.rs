//! What is ended, and what is left alone.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, Span};
use cloud_core::{
    ApiOperation, ErrorKind, ImageId, InstanceId, InstanceName, InstanceSpec, ShapeName, Zone,
};
use cloud_core::{Capability, Provider as _};
use provision::Cancel;
use provision::state::Launch;
use provision::{Cause, Fallback, Identity, Outcome};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{Controller as _, JobState, NodeAction};
use std::time::Duration;
use tokio::time::Instant;

/// A machine with these tags beside those that runs launch.
async fn machine(bed: &Bed, name: &str, identity: &Identity) -> InstanceId {
    let image = ImageId::new("image-1");
    let mut spec = InstanceSpec::new(InstanceName::new(name), ShapeName::new("small"), image);
    spec.tags = identity.tags_of(&node(name));
    bed.cloud.launch(&spec).await.unwrap().id
}

/// Remembers this machine as the one that was launched for a node.
fn remember(bed: &Bed, name: &str, id: &InstanceId) {
    let mut lock = bed.state.try_lock(&node(name)).unwrap().unwrap();
    let mut record = lock.record();
    record.launch = Some(Launch::answered(bed.now(), id));
    lock.keep(&record).unwrap();
}

fn is_there(bed: &Bed, id: &InstanceId) -> bool {
    bed.cloud.instances().iter().any(|one| one.id == *id && !one.state.is_leaving())
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_ours_any_more_is_neither_ended_nor_adopted() {
    let bed = Bed::new("n1");
    let theirs = machine(&bed, "n1", &Identity::cluster("red")).await;
    remember(&bed, "n1", &theirs);
    let report = bed.run(async |run| run::stop(run, &names("n1")).await).await;
    assert!(report.is_success(), "{report:?}");
    assert!(is_there(&bed, &theirs), "ended");
    remember(&bed, "n1", &theirs);
    let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 1, "{report:?}");
    assert_ne!(report.nodes[&node("n1")].instance.as_deref(), Some(theirs.as_str()));
    assert_eq!(bed.live().len(), 1, "one of our own");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_would_not_go_does_not_keep_the_others() {
    let bed = Bed::new("n1");
    for _ in 0..3 {
        machine(&bed, "n1", &bed.site.identity).await;
    }
    tokio::time::sleep(Duration::from_mins(2)).await;
    bed.cloud.inject(ApiOperation::Terminate, InjectedFault::Refuse(ErrorKind::Forbidden));
    let report = bed.run(async |run| run::stop(run, &names("n1")).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Forbidden), "{report:?}");
    assert_eq!(bed.live().len(), 1, "the one that would not go");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_empty_cluster_does_not_need_slurmctld() {
    let bed = Bed::new("n1");
    bed.slurm.set_unreachable(true);
    let report = bed.run(async |run| run::stop_all(run).await).await;
    assert!(report.is_success(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_of_all_that_nobody_has_seen_is_no_success() {
    let bed = Bed::new("n1");
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    let blind = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        bed.cloud.inject_randomly(
            Some(ApiOperation::List),
            InjectedFault::Refuse(ErrorKind::Forbidden),
            1.0,
        );
    };
    let stop = bed.run(async |run| run::stop_all(run).await);
    let (report, ()) = tokio::join!(stop, blind);
    assert!(!report.is_success(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_launch_answered_after_the_node_was_given_up_is_undone() {
    for lost in [false, true] {
        let (signal, cancel) = Cancel::new();
        let mut bed = Bed::new("n1");
        bed.cancel = cancel;
        let (_, request) = bed.job(1).await;
        let (nodes, jobs) = (names("n1"), groups(&request));
        if lost {
            bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseRequest);
        } else {
            bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_secs(5)));
        }
        let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
        let stop = async {
            while bed.requests(ApiOperation::List) == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            signal.cancel();
        };
        let (report, ()) = tokio::join!(start, stop);
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
        assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Cancelled), "{report:?}");
        assert_eq!(bed.live().len(), 0, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hosts_file_that_cannot_be_read_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hosts");
    // A link to itself cannot be read, not even by root.
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let mut bed = Bed::new("n1");
    bed.config = conf("NodeName=n1 CPUs=2 Features=shape=small,ad=1 State=UNKNOWN");
    bed.files.hosts = Some(path.clone());
    let report = bed.run(async |run| run::deploy(run, None).await).await;
    assert_eq!(report.failures.len(), 1, "{report:?}");
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink(), "replaced");
}

/// A machine without an address registers and runs its job; then the start is told to stop.
async fn cancelled_while_a_job_runs(bed: &mut Bed, request: &slurmctl::ResumeRequest) {
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let (nodes, jobs) = (names("n1"), groups(request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        if !bed.slurm.node("n1").unwrap().state.is_up() {
            let _ = bed.slurm.register(&node("n1"), "10.0.0.9", Instant::now());
        }
        let _ = bed.slurm.tick();
        tokio::time::sleep(Duration::from_secs(20)).await;
        let _ = bed.slurm.tick();
        assert!(bed.slurm.node("n1").unwrap().state.is_up());
        signal.cancel();
    };
    let (report, ()) = tokio::join!(start, stop);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_stopped_does_not_end_a_machine_with_a_job() {
    let mut settings = MemoryCloudSettings::default();
    settings.address = Span::millis(36_000_000, 36_000_000);
    let mut bed = Bed::with("n1", settings);
    let job = bed.slurm.submit_job(JobSpec::new(1, Duration::from_hours(5)));
    let mut request = None;
    while request.is_none() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for call in bed.slurm.tick() {
            if let Call::Resume { request: asked, .. } = call {
                request = Some(asked);
            }
        }
    }
    let request = request.unwrap();
    // Launched by the first run, and found by the second.
    for _ in 0..2 {
        cancelled_while_a_job_runs(&mut bed, &request).await;
        assert_eq!(bed.live().len(), 1);
        assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Running);
        assert_eq!(bed.slurm.job(job).unwrap().restarts, 0);
    }
    assert_eq!(bed.requests(ApiOperation::Terminate), 0);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_told_to_go_and_stayed_is_told_again() {
    for all in [false, true] {
        let bed = Bed::new("n1");
        let id = machine(&bed, "n1", &bed.site.identity).await;
        let mut lock = bed.state.try_lock(&node("n1")).unwrap().unwrap();
        let mut record = lock.record();
        record.terminate(&id, bed.now());
        lock.keep(&record).unwrap();
        drop(lock);
        tokio::time::sleep(Duration::from_mins(4)).await;
        let report = if all {
            bed.run(async |run| run::stop_all(run).await).await
        } else {
            bed.run(async |run| run::stop(run, &names("n1")).await).await
        };
        assert!(report.is_success(), "{report:?}");
        assert!(!is_there(&bed, &id), "left for good");
    }
}

/// A node with a launch that was never answered, and another machine that is on its way out.
async fn half_launched(bed: &Bed) {
    let one = machine(bed, "n1", &bed.site.identity).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    bed.cloud.terminate(&one).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut lock = bed.state.try_lock(&node("n1")).unwrap().unwrap();
    let mut record = lock.record();
    record.launch = Some(Launch::asked(bed.now()));
    lock.keep(&record).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_shows_up_while_another_machine_leaves_is_not_doubled() {
    for stops in [false, true] {
        let mut settings = MemoryCloudSettings::default();
        settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
        settings.terminate = Span::millis(20_000, 20_000);
        let bed = Bed::with("n1", settings);
        half_launched(&bed).await;
        let nodes = names("n1");
        let late = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            machine(&bed, "n1", &bed.site.identity).await
        };
        if stops {
            let stop = bed.run(async |run| run::stop(run, &nodes).await);
            let (report, id) = tokio::join!(stop, late);
            assert!(report.is_success(), "{report:?}");
            assert!(!is_there(&bed, &id), "left");
        } else {
            let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
            let (report, id) = tokio::join!(start, late);
            assert!(report.is_success(), "{report:?}");
            assert!(is_there(&bed, &id));
            assert_eq!(bed.live().len(), 1, "{report:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_wait_for_the_lock_of_another() {
    let bed = Bed::new("n[1-2]");
    let nodes = names("n[1-2]");
    // Another has one of them in hand all the time.
    let lock = bed.state.try_lock(&node("n2")).unwrap().unwrap();
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let watch = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        bed.live().len()
    };
    let (report, live) = tokio::join!(start, watch);
    assert_eq!(live, 1, "{report:?}");
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Busy);
    let stop = bed.run(async |run| run::stop(run, &nodes).await);
    let watch = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        bed.live().len()
    };
    let (report, live) = tokio::join!(stop, watch);
    assert_eq!(live, 0, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down);
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Busy);
    drop(lock);
}

/// The call that slurmctld makes for a job that runs for hours.
async fn long_job(bed: &Bed) -> (slurmctl::JobId, slurmctl::ResumeRequest) {
    let job = bed.slurm.submit_job(JobSpec::new(1, Duration::from_hours(5)));
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for call in bed.slurm.tick() {
            if let Call::Resume { request, .. } = call {
                return (job, request);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_with_a_job_is_not_taken_for_the_dead_one_before_it() {
    let mut settings = MemoryCloudSettings::default();
    settings.address = Span::millis(36_000_000, 36_000_000);
    let mut bed = Bed::with("n1", settings);
    let other = Fallback { zone: Some(Zone::new("zone-2")), ..Fallback::default() };
    bed.site.fallback = vec![other];
    let (job, request) = long_job(&bed).await;
    // The first fails for want of room; of the second, no answer comes, and it is found.
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::FailLater(ErrorKind::Capacity));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseResponse);
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let (nodes, jobs) = (names("n1"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        let runs = |bed: &Bed| {
            bed.live().iter().any(|one| one.state == cloud_core::InstanceState::Running)
        };
        while !runs(&bed) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_secs(15)).await;
        let _ = bed.slurm.register(&node("n1"), "10.0.0.9", Instant::now());
        tokio::time::sleep(Duration::from_secs(5)).await;
        let _ = bed.slurm.tick();
        assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Running);
        signal.cancel();
    };
    let (report, ()) = tokio::join!(start, stop);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].launches, 2, "{report:?}");
    assert_eq!(bed.live().len(), 1, "it runs a job");
    assert_eq!(bed.slurm.job(job).unwrap().restarts, 0);
}

/// A node that has come up, and on which a job runs.
async fn busy() -> (Bed, slurmctl::JobId) {
    let bed = Bed::new("n1");
    let (job, request) = long_job(&bed).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    let _ = bed.slurm.register(&node("n1"), "10.0.0.9", Instant::now());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let _ = bed.slurm.tick();
    assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Running, "{report:?}");
    (bed, job)
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_stop_a_node_that_slurm_wants() {
    let (bed, job) = busy().await;
    let report = bed.run(async |run| run::stop(run, &names("n1")).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Nothing, "{report:?}");
    assert_eq!(bed.live().len(), 1, "slurmctld's own call is too old");
    assert_eq!(bed.slurm.job(job).unwrap().state, JobState::Running);
    let report = bed.run(async |run| run::stop_now(run, &names("n1")).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down, "{report:?}");
    assert_eq!(bed.live().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_operator_stops_a_node_while_it_starts() {
    let bed = Bed::new("n1");
    let (_, request) = long_job(&bed).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        bed.run(async |run| run::stop_now(run, &nodes).await).await
    };
    let (started, stopped) = tokio::join!(start, stop);
    assert_eq!(stopped.nodes[&node("n1")].outcome, Outcome::Down, "{stopped:?}");
    assert_eq!(started.nodes[&node("n1")].outcome, Outcome::Yielded, "{started:?}");
    assert_eq!(bed.live().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_end_a_node_that_came_up_while_the_cloud_was_slow() {
    for lists in [true, false] {
        let bed = Bed::new("n1");
        let nodes = names("n1");
        let (_, request) = bed.job(1).await;
        let jobs = groups(&request);
        bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
        let why = slurmctl::Reason::new("somebody wants it off");
        let list = "n1".parse().unwrap();
        bed.slurm.set_state(&list, NodeAction::PowerDownForce, Some(&why)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(matches!(bed.slurm.tick()[..], [Call::Suspend { .. }]));
        if lists {
            bed.cloud.inject(ApiOperation::List, InjectedFault::Delay(Duration::from_secs(10)));
        } else {
            bed.cloud
                .inject(ApiOperation::Terminate, InjectedFault::Refuse(ErrorKind::Unavailable));
            let trouble = InjectedFault::Refuse(ErrorKind::Unavailable);
            bed.cloud.inject_randomly(Some(ApiOperation::Terminate), trouble, 1.0);
        }
        let stop = bed.run(async |run| run::stop(run, &nodes).await);
        let up = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let booted = Instant::now();
            assert_eq!(bed.slurm.register(&node("n1"), "10.0.0.9", booted), ACCEPTED);
            bed.cloud.clear_faults();
        };
        let (report, ()) = tokio::join!(stop, up);
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Nothing, "{lists}: {report:?}");
        assert!(report.nodes[&node("n1")].reason.is_some(), "{report:?}");
        assert_eq!(bed.live().len(), 1, "Slurm has it in service again");
    }
}

const ACCEPTED: slurmctl::memory::Registration = slurmctl::memory::Registration::Accepted;
