//! What is left when a run is killed, cancelled, or not obeyed.

use crate::common::run;
use crate::common::{Bed, groups, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings};
use cloud_core::{ApiOperation, Capability, ErrorKind};
use provision::Cancel;
use provision::plan::{Gaps, GroupSize, JobGroup, Resize};
use provision::state::{Event, EventKind, NodeRecord, State, StateDir, StateFile};
use provision::{Cause, OnPartial, Outcome};
use slurmconf::{Config, Document as Conf, SlurmVersion};
use slurmctl::memory::{Call, JobSpec, MemorySlurm, MemorySlurmSettings, NodeSpec};
use slurmctl::{Controller as _, NodeAction, Reason};
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, advance};

/// Kills a future after so many waits; true if it was still alive.
async fn killed_after<F: Future>(waits: u32, process: F) -> bool {
    let mut process = pin!(process);
    let mut left = waits;
    std::future::poll_fn(move |context| {
        if process.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(false);
        }
        if left == 0 {
            return std::task::Poll::Ready(true);
        }
        left -= 1;
        std::task::Poll::Pending
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_start_killed_anywhere_and_called_again_leaves_one_instance() {
    for tokens in [true, false] {
        let mut waits = 0;
        loop {
            let mut settings = MemoryCloudSettings::default();
            if !tokens {
                settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
            }
            let bed = Bed::with("n[1-2]", settings);
            let (_, request) = bed.job(2).await;
            let nodes = names("n[1-2]");
            let jobs = groups(&request);
            let process = bed.run(async |run| run::start(run, &nodes, &jobs).await);
            let killed = killed_after(waits, process).await;
            let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
            assert!(report.is_success(), "killed after {waits} waits: {report:?}");
            assert_eq!(bed.live().len(), 2, "killed after {waits} waits, tokens: {tokens}");
            if !killed {
                break;
            }
            waits += 1;
        }
        println!("tokens: {tokens}: killed at {waits} different waits");
        assert!(waits > 10, "only {waits} waits");
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_killed_anywhere_and_then_stopped_leaves_no_instance() {
    let mut waits = 0;
    loop {
        let bed = Bed::new("n[1-2]");
        let nodes = names("n[1-2]");
        let process = bed.run(async |run| run::start(run, &nodes, &[]).await);
        let killed = killed_after(waits, process).await;
        let report = bed.run(async |run| run::stop(run, &nodes).await).await;
        assert!(report.is_success(), "killed after {waits} waits: {report:?}");
        assert_eq!(bed.live().len(), 0, "killed after {waits} waits");
        if !killed {
            break;
        }
        waits += 1;
    }
    assert!(waits > 10, "only {waits} waits");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_node_starts_is_obeyed() {
    let bed = Bed::new("n[1-3]");
    let (_, request) = bed.job(3).await;
    let (nodes, jobs) = (names("n[1-3]"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        // As Slurm does before it calls its suspend program.
        let (gone, why) = ("n2".parse().unwrap(), Reason::new("somebody wants it off"));
        bed.slurm.set_state(&gone, NodeAction::PowerDownForce, Some(&why)).await.unwrap();
        bed.run(async |run| run::stop(run, &names("n2")).await).await
    };
    let (started, stopped) = tokio::join!(start, stop);
    assert_eq!(stopped.nodes[&node("n2")].outcome, Outcome::Down, "{stopped:?}");
    assert_eq!(started.nodes[&node("n2")].outcome, Outcome::Yielded);
    let live: Vec<_> = bed.live().iter().map(|one| one.name.to_string()).collect();
    assert_eq!(live, ["n1", "n3"]);
}

#[tokio::test(start_paused = true)]
async fn two_starts_of_one_node_make_one_instance() {
    let mut settings = MemoryCloudSettings::default();
    settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
    let bed = Bed::with("n[1-3]", settings);
    let nodes = names("n[1-3]");
    let start = || bed.run(async |run| run::start(run, &nodes, &[]).await);
    let (first, second) = tokio::join!(start(), start());
    assert!(first.is_success() && second.is_success(), "{second:?}");
    assert_eq!(bed.live().len(), 3);
    assert_eq!(bed.requests(ApiOperation::Launch), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_start_undoes_what_is_in_flight_and_gives_it_back() {
    let (signal, cancel) = Cancel::new();
    let mut bed = Bed::new("n[1-4]");
    bed.cancel = cancel;
    bed.site.policies.concurrency = 2;
    let (job, request) = bed.job(4).await;
    let (nodes, jobs) = (names("n[1-4]"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        signal.cancel();
        Instant::now()
    };
    let (report, told) = tokio::join!(start, stop);
    assert!(Instant::now() - told <= Duration::from_secs(11));
    assert!(report.nodes.values().all(|one| one.cause == Some(Cause::Cancelled)), "{report:?}");
    assert_eq!(bed.live().len(), 0);
    for name in &nodes {
        assert!(!bed.slurm.node(name.as_str()).unwrap().state.is_powering_up(), "{name}");
    }
    assert_eq!(bed.slurm.job(job).unwrap().restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn slurmctld_may_be_away() {
    let bed = Bed::new("n[1-2]");
    let nodes = names("n[1-2]");
    bed.slurm.set_unreachable(true);
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(bed.live().len(), 2, "launched all the same");
    assert_eq!(report.with(Outcome::Unreported).count(), 2, "and said so: {report:?}");
    assert!(!report.warnings.is_empty());
    let report = bed.run(async |run| run::stop(run, &nodes).await).await;
    assert_eq!(report.with(Outcome::Down).count(), 2, "{report:?}");
    assert!(report.is_success());
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let report = bed.run(async |run| run::stop_all(run).await).await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(bed.live().len(), 0);
}

/// A job of three nodes, one of which the cloud does not give.
async fn incomplete(on_partial: OnPartial) -> (Bed, provision::Report) {
    let mut bed = Bed::new("n[1-3]");
    bed.site.policies.on_partial = on_partial;
    let (_, request) = bed.job(3).await;
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Forbidden));
    let (nodes, jobs) = (names("n[1-3]"), groups(&request));
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    assert_eq!(report.with(Outcome::ReturnedToSlurm).count(), 1, "{report:?}");
    (bed, report)
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_get_all_its_nodes_releases_the_others() {
    let (bed, report) = incomplete(OnPartial::Release).await;
    assert_eq!(report.with(Outcome::Released).count(), 2, "{report:?}");
    assert_eq!(bed.live().len(), 0);
    let nodes = bed.slurm.all_nodes();
    assert!(nodes.iter().all(|known| !known.state.is_powering_up()), "{nodes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_get_all_its_nodes_keeps_the_others_if_told_so() {
    let (bed, report) = incomplete(OnPartial::Keep).await;
    assert_eq!(report.with(Outcome::Up).count(), 2, "{report:?}");
    assert_eq!(bed.live().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_another_job_uses_is_not_released() {
    let bed = Bed::new("n[1-2]");
    let half = JobSpec { cpus: Some(1), ..JobSpec::new(2, Duration::from_mins(1)) };
    let _ = bed.slurm.submit_job(half);
    let alone =
        JobSpec { cpus: Some(1), wanted: names("n2"), ..JobSpec::new(1, Duration::from_mins(1)) };
    let _ = bed.slurm.submit_job(alone);
    let mut request = None;
    for _ in 0..5 {
        for call in bed.slurm.tick() {
            if let Call::Resume { request: asked, .. } = call {
                request = Some(asked);
            }
        }
        advance(Duration::from_secs(1)).await;
    }
    // Only the first job is told of, as when a call is split.
    let jobs: Vec<JobGroup> = groups(&request.unwrap()).into_iter().take(1).collect();
    assert_eq!(jobs[0].nodes.len(), 2);
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Forbidden));
    let nodes = names("n[1-2]");
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Up, "{report:?}");
}

fn resize_bed(nodes: &str) -> (Bed, String) {
    let mut bed = Bed::new(nodes);
    let lines = format!("NodeName={nodes} CPUs=2 Features=shape=small,ad=1 State=UNKNOWN\n");
    let text =
        format!("# STARTNODES\n{lines}# ENDNODES\nPartitionName=main Nodes=ALL Default=YES\n");
    bed.config = Config::parse(&text).unwrap();
    let list: hostlist::Hostlist = nodes.parse().unwrap();
    let mut settings = MemorySlurmSettings::cloud(&list);
    settings.nodes = list.node_names().unwrap().into_iter().map(NodeSpec::fixed).collect();
    bed.slurm = MemorySlurm::new(settings);
    (bed, text)
}

async fn shrink(bed: &Bed, text: &str, size: usize, patience: Duration) -> provision::Report {
    let document = Conf::parse(text.to_owned());
    let groups = [GroupSize { partition: None, stem: "n".to_owned(), first: 1, width: 1, size }];
    let request = Resize {
        groups: &groups,
        gaps: Gaps::Keep,
        document: &document,
        version: SlurmVersion::new(24, 11),
        patience,
    };
    bed.run(async |run| run::resize(run, &request).await).await
}

#[tokio::test(start_paused = true)]
async fn a_node_leaves_slurm_conf_only_when_its_instance_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slurm.conf");
    let (mut bed, text) = resize_bed("n[1-3]");
    std::fs::write(&path, &text).unwrap();
    bed.files.slurm_conf = Some(path.clone());
    bed.run(async |run| run::deploy(run, None).await).await;
    assert_eq!(bed.live().len(), 3);
    for _ in 0..5 {
        bed.cloud.inject(ApiOperation::Terminate, InjectedFault::Refuse(ErrorKind::Forbidden));
    }
    let report = shrink(&bed, &text, 2, Duration::from_mins(1)).await;
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "still there, and so is the node");
    assert_eq!(bed.live().len(), 3);
    bed.cloud.clear_faults();
    let report = shrink(&bed, &text, 2, Duration::from_mins(1)).await;
    assert!(report.is_success(), "{report:?}");
    let written = std::fs::read_to_string(&path).unwrap();
    let left = Config::parse(&written).unwrap();
    assert_eq!(left.nodes.iter().map(|def| def.names.len()).sum::<usize>(), 2, "{written}");
    assert_eq!(bed.live().len(), 2);
    assert!(path.with_file_name("slurm.conf.previous").exists());
}

#[tokio::test(start_paused = true)]
async fn jobs_that_do_not_end_leave_everything_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("slurm.conf");
    let (mut bed, text) = resize_bed("n[1-2]");
    std::fs::write(&path, &text).unwrap();
    bed.files.slurm_conf = Some(path.clone());
    bed.run(async |run| run::deploy(run, None).await).await;
    let _ = bed.slurm.submit_job(JobSpec::new(2, Duration::from_hours(5)));
    advance(Duration::from_secs(2)).await;
    let _ = bed.slurm.tick();
    assert!(bed.slurm.node("n2").unwrap().state.has_job());
    let report = shrink(&bed, &text, 1, Duration::from_secs(30)).await;
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Timeout), "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "undrained");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_state_directory_keeps_what_it_is_given_and_locks_across_handles() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) =
        (StateDir::open(directory.path()).unwrap(), StateDir::open(directory.path()).unwrap());
    let name = node("n1");
    let mut lock = one.try_lock(&name).unwrap().unwrap();
    assert!(two.try_lock(&name).unwrap().is_none(), "taken");
    assert!(two.try_lock(&node("n2")).unwrap().is_some(), "another node is free");
    let record = NodeRecord { generation: 7, ..NodeRecord::default() };
    lock.keep(&NodeRecord { generation: 1_000_000, ..NodeRecord::default() }).unwrap();
    lock.keep(&record).unwrap();
    drop(lock);
    assert_eq!(two.try_lock(&name).unwrap().unwrap().record(), record);
    for text in ["first", "second"] {
        assert!(one.change(StateFile::Cooldowns, &mut |_| text.to_owned()).unwrap());
    }
    assert_eq!(two.load(StateFile::Cooldowns).unwrap().as_deref(), Some("second"));
    let previous = directory.path().join("cooldowns.json.previous");
    assert_eq!(std::fs::read_to_string(previous).unwrap(), "first");
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
    one.ask_to_yield(std::slice::from_ref(&name), now + Duration::from_secs(5)).unwrap();
    assert!(two.asked_to_yield(now).unwrap().contains(&name));
    assert!(two.asked_to_yield(now + Duration::from_secs(6)).unwrap().is_empty(), "it is over");
    two.stop_asking(std::slice::from_ref(&name)).unwrap();
    assert!(one.asked_to_yield(now).unwrap().is_empty());
    for _ in 0..2 {
        one.note(&Event::new(now, "r", EventKind::Up).of(&name)).unwrap();
    }
    let events = std::fs::read_to_string(directory.path().join("events.jsonl")).unwrap();
    assert_eq!(events.lines().count(), 2);
    assert!(events.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[tokio::test(start_paused = true)]
async fn a_failed_node_loses_its_instance_and_comes_back_after_its_rest() {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    let jobs = groups(&request);
    bed.run(async |run| run::start(run, &names("n1"), &jobs).await).await;
    // The machine never registers, so that slurmctld gives up.
    let mut failed = false;
    let mut back = None;
    let end = Instant::now() + Duration::from_mins(40);
    while Instant::now() < end && back.is_none() {
        advance(Duration::from_secs(30)).await;
        for call in bed.slurm.tick() {
            if let Call::ResumeFail { nodes } = call {
                failed = true;
                let nodes = nodes.node_names().unwrap();
                bed.run(async |run| run::failed(run, &nodes).await).await;
                assert!(bed.slurm.node("n1").unwrap().state.is_down());
                assert!(bed.live().is_empty());
            }
        }
        bed.run(async |run| run::reconcile(run).await).await;
        let state = bed.slurm.node("n1").unwrap().state;
        if failed && !state.is_down() {
            back = Some(Instant::now());
        }
    }
    assert!(back.is_some_and(|back| back - bed.begun >= bed.site.policies.cooldown));
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_stopped_while_it_looks_launches_nothing() {
    let (signal, cancel) = Cancel::new();
    let mut bed = Bed::new("n1");
    bed.cancel = cancel;
    signal.cancel();
    let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Cancelled), "{report:?}");
    assert_eq!(bed.requests(ApiOperation::Launch), 0);
}

/// As OpenStack does it: no listing shows servers of a cell that is down, and Nova cannot tell of one by id.
#[tokio::test(start_paused = true)]
async fn a_machine_whose_cell_is_down_is_not_launched_again() {
    let mut settings = MemoryCloudSettings::default();
    settings.capabilities = settings.capabilities.without(Capability::LaunchToken);
    let bed = Bed::with("n1", settings);
    let nodes = names("n1");
    assert!(bed.run(async |run| run::start(run, &nodes, &[]).await).await.is_success());
    let instance = bed.live().pop().unwrap().id;
    bed.cloud.inject_randomly(Some(ApiOperation::List), InjectedFault::Flap, 1.0);
    bed.cloud.inject_randomly(
        Some(ApiOperation::Get),
        InjectedFault::Refuse(ErrorKind::Unavailable),
        1.0,
    );
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(bed.requests(ApiOperation::Launch), 1, "none but the first");
    let record = bed.state.try_lock(&node("n1")).unwrap().unwrap().record();
    assert_eq!(record.launch.and_then(|launch| launch.id()), Some(instance));
}

#[tokio::test(start_paused = true)]
async fn a_preview_observes_with_what_runs_remember() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::from_secs(5);
    let bed = Bed::with("n1", settings);
    let nodes = names("n1");
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert!(report.is_success(), "{report:?}");
    advance(Duration::from_secs(10)).await;
    let report = bed.run(async |run| run::stop_now(run, &nodes).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down, "{report:?}");
    let stale = bed.run(async |run| run.observe().await).await;
    assert_eq!(stale.fleet.standing(&node("n1")).here.len(), 1, "the listing is behind");
    let preview = bed.run(async |run| run.observe_for(&nodes).await).await;
    assert!(preview.fleet.standing(&node("n1")).here.is_empty());
}
