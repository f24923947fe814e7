//! What a reconcile puts right, and what it says when it cannot.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::InjectedFault;
use cloud_core::{
    ApiOperation, ErrorKind, ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName,
};
use provision::Cancel;
use provision::plan::Handling;
use provision::state::StateDir;
use provision::{Cause, Outcome, Report};
use slurmctl::memory::{Call, JobSpec};
use slurmctl::{Controller as _, NodeAction, Reason};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

async fn reconcile(bed: &Bed) -> Report {
    bed.run(async |run| run::reconcile(run).await).await
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_cannot_remember_what_it_saw_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = Bed::new("n1");
    bed.state = Box::new(StateDir::open(directory.path()).unwrap());
    // What is no text cannot be read, and a directory in its place cannot be replaced.
    let path = directory.path().join("sightings.json");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("file"), "").unwrap();
    let report = reconcile(&bed).await;
    assert_eq!(report.exit_code(), 1, "{report:?}");
    assert!(report.failures.iter().any(|text| text.contains("sightings.json")), "{report:?}");
    let (_, look) = bed.run(async |run| run::preview_reconcile(run).await).await;
    assert!(look.warnings.iter().any(|text| text.contains("sightings.json")), "{look:?}");
}

/// A machine of a node that Slurm has powered down, seen once.
async fn orphan() -> Bed {
    orphan_in(Bed::new("n1")).await
}

/// A cloud whose clock is right: it says that the machine was made in the future.
#[tokio::test(start_paused = true)]
async fn an_orphan_goes_though_our_clock_is_hours_behind() {
    let mut bed = Bed::new("n1");
    sleep(Duration::from_hours(12)).await;
    bed.begun += Duration::from_hours(6);
    let bed = orphan_in(bed).await;
    sleep(bed.site.policies.grace).await;
    reconcile(&bed).await;
    assert!(bed.live().is_empty());
}

async fn orphan_in(bed: Bed) -> Bed {
    let image = ImageId::new("image-1");
    let mut spec = InstanceSpec::new(InstanceName::new("n1"), ShapeName::new("small"), image);
    spec.tags = bed.site.identity.tags_of(&node("n1"));
    bed.cloud.launch(&spec).await.unwrap();
    sleep(bed.site.policies.grace + Duration::from_mins(1)).await;
    reconcile(&bed).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(bed.live().len(), 1);
    bed
}

#[tokio::test(start_paused = true)]
async fn an_orphan_stays_when_slurm_wants_its_node_again() {
    let bed = orphan().await;
    let trouble = InjectedFault::Refuse(ErrorKind::Unavailable);
    bed.cloud.inject_randomly(Some(ApiOperation::Terminate), trouble, 1.0);
    let wanted = async {
        sleep(Duration::from_secs(3)).await;
        let _ = bed.slurm.submit_job(JobSpec::new(1, Duration::from_hours(1)));
        assert!(matches!(bed.slurm.tick()[..], [Call::Resume { .. }]));
        bed.cloud.clear_faults();
    };
    let (report, ()) = tokio::join!(reconcile(&bed), wanted);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Nothing, "{report:?}");
    assert_eq!(bed.live().len(), 1);
}

/// What is left to the next run is not reported as repaired.
#[tokio::test(start_paused = true)]
async fn a_repair_that_is_not_made_is_not_reported_as_made() {
    let handling = |report: &Report| report.findings.iter().map(|it| it.handling).collect();
    let bed = orphan().await;
    let other = bed.state.try_lock(&node("n1")).unwrap();
    let report = reconcile(&bed).await;
    let all: Vec<Handling> = handling(&report);
    assert_eq!((all, bed.live().len()), (vec![Handling::Watched], 1), "locked: {report:?}");
    drop(other);
    let refused = InjectedFault::Refuse(ErrorKind::Forbidden);
    bed.cloud.inject(ApiOperation::Terminate, refused);
    let report = reconcile(&bed).await;
    let all: Vec<Handling> = handling(&report);
    assert_eq!((all, bed.live().len()), (vec![Handling::Watched], 1), "refused: {report:?}");
    let report = reconcile(&bed).await;
    let all: Vec<Handling> = handling(&report);
    assert_eq!((all, bed.live().len()), (vec![Handling::Repaired], 0), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn an_orphan_stays_while_slurmctld_is_away() {
    let bed = orphan().await;
    bed.cloud.inject(ApiOperation::List, InjectedFault::Delay(Duration::ZERO));
    bed.cloud.inject(ApiOperation::List, InjectedFault::Delay(Duration::from_secs(10)));
    let away = async {
        sleep(Duration::from_secs(5)).await;
        bed.slurm.set_unreachable(true);
    };
    let (report, ()) = tokio::join!(reconcile(&bed), away);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!(bed.live().len(), 1);
    bed.slurm.set_unreachable(false);
    reconcile(&bed).await;
    assert!(bed.live().is_empty(), "the next run ends it");
}

/// Killed before it could launch anything, as by a reboot; Slurm waits for five minutes, and the next boot as long.
#[tokio::test(start_paused = true)]
async fn a_node_whose_start_died_is_returned_before_slurm_gives_it_up() {
    let bed = Bed::new("n1");
    let (job, _) = bed.job(1).await;
    for _ in 0..7 {
        reconcile(&bed).await;
        sleep(Duration::from_mins(1)).await;
        let _ = bed.slurm.tick();
    }
    let state = bed.slurm.node("n1").unwrap().state;
    assert!(!state.is_powering_up() && !state.is_down(), "{state}");
    assert_eq!(bed.slurm.job(job).unwrap().restarts, 1);
}

/// What is ended takes its time, and only then nodes are returned to service.
#[tokio::test(start_paused = true)]
async fn a_node_that_an_administrator_holds_is_not_returned_to_service() {
    let bed = Bed::new("n[1-2]");
    let (n2, timeout) = ("n2".parse().unwrap(), Reason::new("ResumeTimeout reached"));
    bed.slurm.set_state(&n2, NodeAction::Down, Some(&timeout)).await.unwrap();
    let bed = orphan_in(bed).await;
    let trouble = InjectedFault::Refuse(ErrorKind::Unavailable);
    bed.cloud.inject_randomly(Some(ApiOperation::Terminate), trouble, 1.0);
    let holds = async {
        sleep(Duration::from_secs(3)).await;
        let theirs = Reason::new("bad disk");
        bed.slurm.set_state(&n2, NodeAction::Drain, Some(&theirs)).await.unwrap();
        bed.cloud.clear_faults();
    };
    let (report, ()) = tokio::join!(reconcile(&bed), holds);
    assert!(report.is_success() && bed.live().is_empty(), "{report:?}");
    let held = bed.slurm.node("n2").unwrap();
    assert!(held.state.has_drain() && held.state.is_down(), "{held:?}");
}

/// Nodes that a run of ours drained and forgot, seen once.
async fn forgotten() -> Bed {
    let bed = Bed::new("n[1-200]");
    let (all, reason) = ("n[1-200]".parse().unwrap(), Reason::new("elastic: drained for resize"));
    bed.slurm.set_state(&all, NodeAction::Drain, Some(&reason)).await.unwrap();
    reconcile(&bed).await;
    sleep(Duration::from_mins(1)).await;
    bed
}

fn drained(bed: &Bed) -> usize {
    bed.slurm.all_nodes().iter().filter(|node| node.state.has_drain()).count()
}

#[tokio::test(start_paused = true)]
async fn slurm_is_told_about_many_nodes_in_one_call() {
    let bed = forgotten().await;
    let begun = Instant::now();
    let report = reconcile(&bed).await;
    assert_eq!(report.with(Outcome::Done).count(), 200, "{report:?}");
    assert_eq!(drained(&bed), 0);
    // In virtual time: a call takes 20 ms, and 200 of them took four seconds.
    let took = Instant::now() - begun;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_reconcile_ends() {
    let mut bed = forgotten().await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    signal.cancel();
    let report = reconcile(&bed).await;
    assert_eq!(report.nodes[&node("n1")].cause, Some(Cause::Cancelled), "{report:?}");
    assert_eq!(drained(&bed), 200);
}

/// A start or a stop has one node of the zone in hand, as is likely when there is no room.
#[tokio::test(start_paused = true)]
async fn a_zone_is_drained_though_another_process_has_one_of_its_nodes() {
    let mut bed = Bed::new("n[1-4]");
    bed.config = conf(
        "NodeName=n[1-3] State=CLOUD CPUs=2 Features=shape=small,ad=1\n\
         NodeName=n4 State=CLOUD CPUs=2 Features=shape=small,ad=2",
    );
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    let _ = bed.run(async |run| run::start(run, &names("n3"), &[]).await).await;
    let _theirs = bed.state.try_lock(&node("n2")).unwrap().unwrap();
    let report = reconcile(&bed).await;
    assert!(report.is_success(), "{report:?}");
    let drained = |name: &&str| bed.slurm.node(name).unwrap().state.has_drain();
    let all = ["n1", "n2", "n3", "n4"];
    assert_eq!(all.iter().filter(|name| drained(name)).collect::<Vec<_>>(), [&"n1", &"n3"]);
}

/// Slurm gave a job the same nodes again and again, those of a zone without room, while another zone had some.
#[tokio::test(start_paused = true)]
async fn a_job_leaves_nodes_of_a_zone_without_room() {
    let mut bed = Bed::new("n[1-4]");
    bed.config = conf(
        "NodeName=n[1-2] State=CLOUD CPUs=2 Features=shape=small,ad=1\n\
         NodeName=n[3-4] State=CLOUD CPUs=2 Features=shape=small,ad=2",
    );
    let (job, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
    let mut called = BTreeSet::new();
    for _ in 0..20 {
        sleep(Duration::from_secs(10)).await;
        for call in bed.slurm.tick() {
            match call {
                Call::Resume { request, .. } => called.extend(request.all.node_names().unwrap()),
                Call::Suspend { nodes } => {
                    let nodes = nodes.node_names().unwrap();
                    bed.run(async |run| run::stop(run, &nodes).await).await;
                }
                _ => {}
            }
        }
        let report = reconcile(&bed).await;
        assert!(report.is_success(), "{report:?}");
    }
    assert_eq!(called, BTreeSet::from([node("n3")]), "job {job} goes where there is room");
    let kept_away = |name: &str| bed.slurm.node(name).unwrap().state.has_drain();
    assert!(kept_away("n1") && kept_away("n2") && !kept_away("n4"));
    sleep(bed.site.policies.cooldown).await;
    assert!(reconcile(&bed).await.is_success());
    assert!(!kept_away("n1") && !kept_away("n2"), "tried again when the cool-down is over");
}

/// The first two machines of zone 1 fail their health check; the node may also have machines of zone 2.
#[tokio::test(start_paused = true)]
async fn a_place_that_yields_two_bad_machines_is_avoided_for_a_time() {
    let mut bed = Bed::new("n[1-3]");
    bed.config =
        conf("NodeName=n[1-3] State=CLOUD CPUs=2 Features=shape=small,ad=1,place1=/1/,place2=/2/");
    bed.site.policies.cooldown = Duration::from_mins(10);
    let zone = |bed: &Bed, name: &str| {
        let live = bed.live().into_iter().find(|one| one.name.as_str() == name);
        live.and_then(|one| one.zone).map(|zone| zone.to_string())
    };
    let start = async |bed: &Bed, name: &str| {
        let nodes = names(name);
        let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        assert!(report.is_success(), "{report:?}");
    };
    for name in ["n1", "n2"] {
        start(&bed, name).await;
        assert_eq!(zone(&bed, name).as_deref(), Some("zone-1"));
        let address = bed.live().iter().find_map(|one| one.address).unwrap().to_string();
        let _ = bed.slurm.register(&node(name), &address, Instant::now());
        let reason = Reason::new("NHC: bad fan");
        let drained = name.parse().unwrap();
        bed.slurm.set_state(&drained, NodeAction::Drain, Some(&reason)).await.unwrap();
        assert!(reconcile(&bed).await.is_success());
        sleep(Duration::from_mins(1)).await;
    }
    start(&bed, "n3").await;
    assert_eq!(zone(&bed, "n3").as_deref(), Some("zone-2"), "zone 1 is avoided");
    bed.run(async |run| run::stop_now(run, &names("n3")).await).await;
    sleep(Duration::from_mins(15)).await;
    start(&bed, "n3").await;
    assert_eq!(zone(&bed, "n3").as_deref(), Some("zone-1"), "until its cool-down is over");
}

/// What is gone costs nothing, whoever has ended it: the log is all that `cost` has.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_machine_that_somebody_else_has_ended_is_noted_once() {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    bed.run(async |run| run::start(run, &names("n1"), &groups(&request)).await).await;
    let id = bed.live().remove(0).id;
    bed.cloud.terminate(&id).await.unwrap();
    let ends = || {
        let log = bed.state.history().unwrap();
        let is_end = |event: &&history::Event| {
            event.event == history::EventKind::Terminated
                && event.instance.as_deref() == Some(id.as_str())
        };
        log.events.iter().filter(is_end).map(|event| event.at).collect::<Vec<_>>()
    };
    sleep(Duration::from_mins(1)).await;
    reconcile(&bed).await;
    assert_eq!(ends(), [0_u64; 0], "a listing may lag behind its launch");
    sleep(bed.site.policies.grace).await;
    // An answer that is not one says nothing.
    let refused = InjectedFault::Refuse(ErrorKind::Forbidden);
    bed.cloud.inject_randomly(Some(ApiOperation::Get), refused, 1.0);
    reconcile(&bed).await;
    assert_eq!(ends(), [0_u64; 0]);
    bed.cloud.clear_faults();
    reconcile(&bed).await;
    let noted = history::millis(bed.now());
    for _ in 0..3 {
        sleep(Duration::from_mins(1)).await;
        reconcile(&bed).await;
    }
    assert_eq!(ends(), [noted]);
    let lives = history::Lives::of(&bed.state.history().unwrap().events);
    let now = history::millis(bed.now());
    let machines = history::cost::machines(&lives, now, |_| 2, |_| None);
    assert_eq!(machines.iter().map(|machine| machine.until).collect::<Vec<_>>(), [noted]);
}
