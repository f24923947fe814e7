//! Who waits for whom, and for how long.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod common;

use cloud_core::memory::Trouble;
use cloud_core::{ErrorKind, InstanceState, Operation};
use common::{Bed, groups, names, node};
use provision::exec::Cancel;
use provision::plan::{Gaps, GroupSize, Resize};
use provision::state::StateDir;
use provision::{Cause, Outcome, Report, run};
use slurmconf::{Config, Document, SlurmVersion};
use slurmctl::memory::{JobSpec, MemorySlurm, NodeSpec, Settings as SlurmSettings};
use slurmctl::{Controller as _, NodeAction, Reason};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn the_wish_of_a_stop_that_was_killed_hindered_every_start() {
    let bed = Bed::new("n1");
    let nodes = names("n1");
    let lock = bed.state.try_lock(&node("n1")).unwrap().unwrap();
    let stop = bed.run(async |run| run::stop(run, &nodes).await);
    assert!(timeout(Duration::from_secs(20), stop).await.is_err(), "killed while it waits");
    assert!(!bed.state.asked_to_yield(bed.now()).unwrap().is_empty(), "its wish is still there");
    drop(lock);
    sleep(Duration::from_secs(11)).await;
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_gets_a_node_that_is_let_go_of_late() {
    let bed = Bed::new("n1");
    let nodes = names("n1");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let lock = bed.state.try_lock(&node("n1")).unwrap().unwrap();
    let stop = bed.run(async |run| run::stop(run, &nodes).await);
    let late = async {
        for _ in 0..6 {
            sleep(Duration::from_secs(10)).await;
            assert!(bed.state.asked_to_yield(bed.now()).unwrap().contains(&node("n1")), "renewed");
        }
        drop(lock);
    };
    let (report, ()) = tokio::join!(stop, late);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Down, "{report:?}");
    assert!(bed.state.asked_to_yield(bed.now()).unwrap().is_empty(), "taken back");
}

/// Two persistent nodes with a job on both, and slurm.conf for them.
async fn persistent(runs: Duration) -> (Bed, Document) {
    let lines = "NodeName=n[1-2] CPUs=2 Features=shape=small,ad=1 State=UNKNOWN\n";
    let text = format!("# STARTNODES\n{lines}# ENDNODES\nPartitionName=main Nodes=ALL\n");
    let mut bed = Bed::new("n[1-2]");
    bed.config = Config::parse(&text).unwrap();
    let mut settings = SlurmSettings::cloud(&"n[1-2]".parse().unwrap());
    settings.nodes = names("n[1-2]").into_iter().map(NodeSpec::fixed).collect();
    bed.slurm = MemorySlurm::new(settings);
    bed.run(async |run| run::deploy(run, None).await).await;
    let _ = bed.slurm.submit_job(JobSpec::new(2, runs));
    sleep(Duration::from_secs(1)).await;
    let _ = bed.slurm.tick();
    assert!(bed.slurm.node("n2").unwrap().state.has_job());
    (bed, Document::parse(text))
}

async fn shrink(bed: &Bed, document: &Document) -> Report {
    let groups = [GroupSize { stem: "n".to_owned(), first: 1, width: 1, size: 1 }];
    let request = Resize {
        groups: &groups,
        gaps: Gaps::Keep,
        document,
        version: SlurmVersion::new(24, 11),
        patience: Duration::from_hours(2),
    };
    let resize = bed.run(async |run| run::resize(run, &request).await);
    let slurm = async {
        loop {
            sleep(Duration::from_secs(1)).await;
            let _ = bed.slurm.tick();
        }
    };
    tokio::select! {
        report = resize => report,
        () = slurm => panic!("never"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_patience_was_cut_to_the_time_that_a_start_has() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let begun = Instant::now();
    let report = shrink(&bed, &document).await;
    assert!(report.is_success(), "{report:?}");
    assert!(Instant::now() - begun > Duration::from_mins(50), "it waited for the job");
    assert_eq!(bed.live().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_resize_left_its_nodes_drained() {
    let (mut bed, document) = persistent(Duration::from_hours(1)).await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let told = async {
        sleep(Duration::from_secs(30)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain());
        signal.cancel();
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), told);
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Cancelled), "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "takes jobs again");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

/// As Slurm does with `idle_on_node_suspend` when it suspends a node, whose machine `stopnode` is then to end.
#[tokio::test(start_paused = true)]
async fn a_resize_that_waits_kept_suspended_nodes_and_let_jobs_onto_them() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let lifted = async {
        sleep(Duration::from_secs(30)).await;
        let list = "n2".parse().unwrap();
        bed.slurm.set_state(&list, NodeAction::Undrain, None).await.unwrap();
        assert!(bed.state.try_lock(&node("n2")).unwrap().is_none(), "resize has it in hand");
        bed.state.ask_to_yield(&names("n2"), bed.now() + Duration::from_mins(1)).unwrap();
        sleep(Duration::from_secs(11)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "drained again");
        assert!(bed.state.try_lock(&node("n2")).unwrap().is_some(), "let go of");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lifted);
    assert!(report.is_success(), "{report:?}");
    assert_eq!(bed.live().len(), 1);
}

/// What a stop and a start do to a node that a resize has let go of.
#[tokio::test(start_paused = true)]
async fn a_machine_that_was_launched_while_a_resize_waited_was_left_behind() {
    let (bed, document) = persistent(Duration::from_hours(1)).await;
    let others = async {
        sleep(Duration::from_secs(30)).await;
        bed.state.ask_to_yield(&names("n2"), bed.now() + Duration::from_secs(10)).unwrap();
        sleep(Duration::from_secs(11)).await;
        let old = bed.live().into_iter().find(|machine| machine.name.as_str() == "n2").unwrap();
        assert!(bed.cloud.force(&old.id, InstanceState::Terminated));
        // Listings lag behind.
        sleep(Duration::from_mins(1)).await;
        let nodes = names("n2");
        let report = bed.run(async |run| run::deploy(run, Some(&nodes)).await).await;
        assert_eq!(bed.live().len(), 2, "{report:?}");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), others);
    assert!(report.is_success(), "{report:?}");
    let left: Vec<String> = bed.live().iter().map(|machine| machine.name.to_string()).collect();
    assert_eq!(left, ["n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_was_told_to_end_behind_its_wait_ended_machines() {
    let (mut bed, document) = persistent(Duration::from_mins(10)).await;
    let (signal, cancel) = Cancel::new();
    bed.cancel = cancel;
    let told = async {
        // The first look behind the wait.
        while bed.slurm.node("n2").unwrap().state.has_job() {
            sleep(Duration::from_secs(1)).await;
        }
        let before = bed.requests(Operation::List);
        while bed.requests(Operation::List) == before {
            sleep(Duration::from_millis(1)).await;
        }
        signal.cancel();
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), told);
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Cancelled), "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "takes jobs again");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

/// What an administrator drained is not undrained, so that there was nothing to undo.
#[tokio::test(start_paused = true)]
async fn patience_that_was_over_began_anew_for_a_node_of_the_administrators() {
    let (bed, document) = persistent(Duration::from_mins(130)).await;
    let (list, reason) = ("n2".parse().unwrap(), Reason::new("bad disk"));
    bed.slurm.set_state(&list, NodeAction::Drain, Some(&reason)).await.unwrap();
    let report = shrink(&bed, &document).await;
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Timeout), "{report:?}");
    assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "as it was");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_drained_again_stayed_so_when_jobs_did_not_end() {
    let (bed, document) = persistent(Duration::from_hours(3)).await;
    let (list, reason) = ("n2".parse().unwrap(), Reason::new("bad disk"));
    bed.slurm.set_state(&list, NodeAction::Drain, Some(&reason)).await.unwrap();
    let lifted = async {
        sleep(Duration::from_secs(30)).await;
        bed.slurm.set_state(&list, NodeAction::Undrain, None).await.unwrap();
        sleep(Duration::from_secs(11)).await;
        assert!(bed.slurm.node("n2").unwrap().state.has_drain(), "drained again");
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lifted);
    assert_eq!(report.nodes[&node("n2")].cause, Some(Cause::Timeout), "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "takes jobs again");
}

#[tokio::test(start_paused = true)]
async fn a_resize_that_cannot_go_on_after_its_wait_takes_its_drain_back() {
    let (bed, document) = persistent(Duration::from_mins(10)).await;
    let lock = async {
        sleep(Duration::from_secs(30)).await;
        bed.state.ask_to_yield(&names("n2"), bed.now() + Duration::from_secs(10)).unwrap();
        sleep(Duration::from_secs(11)).await;
        let lock = bed.state.try_lock(&node("n2")).unwrap().unwrap();
        sleep(Duration::from_hours(1)).await;
        drop(lock);
    };
    let (report, ()) = tokio::join!(shrink(&bed, &document), lock);
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Busy, "{report:?}");
    assert!(!bed.slurm.node("n2").unwrap().state.has_drain(), "takes jobs again");
    assert_eq!(bed.live().len(), 2, "nothing deleted");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stopped_on_its_way_up_was_waited_for_to_the_end() {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let off = async {
        while bed.live().is_empty() {
            sleep(Duration::from_millis(100)).await;
        }
        sleep(Duration::from_secs(2)).await;
        assert!(bed.cloud.force(&bed.live()[0].id, InstanceState::Stopped));
        Instant::now()
    };
    let (report, stopped) = tokio::join!(start, off);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::GivenBack, "{report:?}");
    assert!(Instant::now() - stopped < Duration::from_mins(1), "{report:?}");
    assert!(bed.live().is_empty(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn locks_that_cannot_be_had_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut bed = Bed::new("n1");
    bed.state = Box::new(StateDir::open(directory.path()).unwrap());
    // A directory in the place of the lock cannot be opened for writing, not even by root.
    std::fs::create_dir(directory.path().join("nodes/n1")).unwrap();
    let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    assert!(report.is_success(), "the cloud's tags are the truth: {report:?}");
    let told = |warning: &String| warning.contains("cannot be locked") && warning.contains("n1");
    assert!(report.warnings.iter().any(told), "{:?}", report.warnings);
}

#[tokio::test(start_paused = true)]
async fn one_address_that_slurm_refuses_left_all_nodes_untold() {
    let mut bed = Bed::new("n[1-3]");
    // slurmctld does not know the third.
    bed.slurm = MemorySlurm::new(SlurmSettings::cloud(&"n[1-2]".parse().unwrap()));
    let report = bed.run(async |run| run::start(run, &names("n[1-3]"), &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 2, "{report:?}");
    assert_eq!(report.nodes[&node("n3")].outcome, Outcome::Untold, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_without_room_was_commented_on_once_for_each_of_its_nodes() {
    let bed = Bed::new("n[001-200]");
    bed.cloud.chance(Some(Operation::Launch), Trouble::Refuse(ErrorKind::Capacity), 1.0);
    let (job, request) = bed.job(200).await;
    let (nodes, jobs) = (names("n[001-200]"), groups(&request));
    let begun = Instant::now();
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    assert_eq!(report.exit_code(), 1);
    let took = Instant::now() - begun;
    // In virtual time: a call takes 20 ms, and 200 of them took four seconds.
    assert!(took < Duration::from_secs(2), "{took:?}");
    let comment = bed.slurm.job(job).unwrap().admin_comment;
    assert!(comment.is_some_and(|text| text.contains("out of capacity")));
}
