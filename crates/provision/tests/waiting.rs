//! Who waits for whom, and for how long.

use crate::common::run;
use crate::common::{Bed, conf, groups, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, Span};
use cloud_core::{ApiOperation, ErrorKind, InstanceState, Provider as _};
use provision::state::StateDir;
use provision::{Outcome, Stopped};
use slurmctl::Controller as _;
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(start_paused = true)]
async fn the_wish_of_a_killed_stop_hinders_no_start() {
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

/// SuspendProgram called late, or an operator without `--now`.
#[tokio::test(start_paused = true)]
async fn a_stop_asks_slurm_before_it_ends_a_start() {
    let bed = Bed::new("n[1-2]");
    let (_, request) = bed.job(2).await;
    let (nodes, jobs) = (names("n[1-2]"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let stop = async {
        while bed.live().is_empty() {
            sleep(Duration::from_millis(100)).await;
        }
        bed.run(async |run| run::stop(run, &nodes).await).await
    };
    let (started, stopped) = tokio::join!(start, stop);
    for name in &nodes {
        assert_eq!(started.nodes[name].outcome, Outcome::Up, "{started:?}");
        assert_eq!(stopped.nodes[name].outcome, Outcome::Nothing, "{stopped:?}");
        assert_eq!(stopped.nodes[name].reason.as_deref(), Some("wanted again"));
    }
    assert!(bed.state.asked_to_yield(bed.now()).unwrap().is_empty());
}

/// The stop was killed, or still waits: its wish is older than the start.
#[tokio::test(start_paused = true)]
async fn a_start_does_not_yield_to_a_wish_that_is_older_than_it() {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    bed.state.ask_to_yield(&nodes, bed.now() + Duration::from_secs(10)).unwrap();
    let report = bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
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

#[tokio::test(start_paused = true)]
async fn a_cancelled_stop_asks_a_silent_cloud_no_more() {
    let mut bed = Bed::new("n1");
    let (signal, cancel) = provision::Cancel::new();
    bed.cancel = cancel;
    bed.cloud.inject_randomly(
        Some(ApiOperation::List),
        InjectedFault::Refuse(ErrorKind::Unavailable),
        1.0,
    );
    let nodes = names("n1");
    for all in [false, true] {
        let begun = Instant::now();
        let stop =
            bed.run(
                async |run| {
                    if all { run::stop_all(run).await } else { run::stop(run, &nodes).await }
                },
            );
        let end = async {
            sleep(Duration::from_secs(1)).await;
            signal.cancel();
        };
        let (report, ()) = tokio::join!(stop, end);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_ne!(report.exit_code(), 0, "{report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_reason_why_a_cloud_does_not_answer_survives_the_deadline() {
    let bed = Bed::new("n1");
    bed.cloud.inject(ApiOperation::List, InjectedFault::Refuse(ErrorKind::Unavailable));
    bed.cloud.inject_randomly(
        Some(ApiOperation::List),
        InjectedFault::Delay(Duration::from_hours(1)),
        1.0,
    );
    let look = bed.run(async |run| run.observe().await).await;
    assert!(!look.warnings.iter().any(|it| it.contains("no answer in time")), "{look:?}");
    assert!(look.warnings.iter().any(|it| it.contains("unavailable")), "{look:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_stops_on_its_way_up_is_not_waited_for() {
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
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
    assert!(Instant::now() - stopped < Duration::from_mins(1), "{report:?}");
    assert!(bed.live().is_empty(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_still_stopping_is_started() {
    let mut bed = Bed::new("n1");
    bed.site.policies.stopped = Stopped::Start;
    let nodes = names("n1");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let old = bed.live().remove(0).id;
    assert!(bed.cloud.force(&old, InstanceState::Stopping));
    // What is listed is a little behind.
    sleep(Duration::from_secs(5)).await;
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let off = async {
        sleep(Duration::from_secs(30)).await;
        assert!(bed.cloud.force(&old, InstanceState::Stopped));
    };
    let (report, ()) = tokio::join!(start, off);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].instance.as_deref(), Some(old.as_str()));
}

/// A stop that took five seconds had the second of the nodes in hand; the first never comes up, or takes its time.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_busy_for_a_moment_does_not_wait_for_the_others() {
    let bed = Bed::new("n[1-2]");
    let nodes = names("n[1-2]");
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_mins(4)));
    let lock = bed.state.try_lock(&node("n2")).unwrap().unwrap();
    let begun = Instant::now();
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let free = async {
        sleep(Duration::from_secs(5)).await;
        drop(lock);
        while !bed.live().iter().any(|one| one.tags.get("node").is_some_and(|it| it == "n2")) {
            sleep(Duration::from_millis(100)).await;
        }
        begun.elapsed()
    };
    let (report, launched) = tokio::join!(start, free);
    assert!(launched < Duration::from_secs(15), "{launched:?}");
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(report.nodes.len(), 2, "{report:?}");
}

/// A stop of many, most of which have no machine any more, and one of those is wanted again.
#[tokio::test(start_paused = true)]
async fn a_node_with_nothing_to_end_is_released_at_once() {
    let bed = Bed::new("n[1-2]");
    let nodes = names("n[1-2]");
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    bed.cloud.inject(ApiOperation::Terminate, InjectedFault::Delay(Duration::from_mins(3)));
    let stop = bed.run(async |run| run::stop(run, &nodes).await);
    let start = async {
        sleep(Duration::from_secs(5)).await;
        let begun = Instant::now();
        let report = bed.run(async |run| run::start(run, &names("n2"), &[]).await).await;
        (report, begun.elapsed())
    };
    let (stopped, (started, took)) = tokio::join!(stop, start);
    assert_eq!(stopped.nodes[&node("n1")].outcome, Outcome::Down, "{stopped:?}");
    assert_eq!(stopped.nodes[&node("n2")].outcome, Outcome::Nothing, "{stopped:?}");
    assert_eq!(started.nodes[&node("n2")].outcome, Outcome::Up, "{started:?}");
    assert!(took < Duration::from_mins(2), "{took:?}");
}

/// As bare metal does, with a ResumeTimeout to match.
#[tokio::test(start_paused = true)]
async fn a_machine_that_takes_minutes_to_go_is_waited_for() {
    let mut settings = MemoryCloudSettings::default();
    settings.terminate = Span::millis(240_000, 240_000);
    let mut bed = Bed::with("n1", settings);
    bed.site.policies.deadline = Duration::from_mins(19);
    let nodes = names("n1");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    bed.run(async |run| run::stop(run, &nodes).await).await;
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(bed.live().len(), 1, "{report:?}");
}

/// By an administrator, say; gone it is still listed for a while, or not at all.
#[tokio::test(start_paused = true)]
async fn a_machine_that_somebody_else_ended_is_replaced() {
    for linger in [Duration::from_hours(1), Duration::ZERO] {
        let mut settings = MemoryCloudSettings::default();
        settings.terminate = Span::millis(60_000, 60_000);
        settings.linger = linger;
        let bed = Bed::with("n1", settings);
        let nodes = names("n1");
        bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        let theirs = bed.live().remove(0).id;
        bed.cloud.terminate(&theirs).await.unwrap();
        sleep(Duration::from_secs(5)).await;
        let begun = Instant::now();
        let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{linger:?}: {report:?}");
        assert!(begun.elapsed() < Duration::from_mins(2), "{linger:?}: {report:?}");
    }
}

/// Listings that are minutes behind, of a cloud that does not say addresses with instances.
#[tokio::test(start_paused = true)]
async fn a_machine_that_listings_show_wrong_is_asked_for_by_its_id() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::from_mins(5);
    settings.shows_addresses = false;
    let bed = Bed::with("n1", settings);
    let nodes = names("n1");
    // The first is not listed yet, and then listed though it is gone.
    for _ in 0..2 {
        let begun = Instant::now();
        let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}: {report:?}", begun.elapsed());
        assert_eq!(bed.live().len(), 1, "{report:?}");
        sleep(Duration::from_mins(6)).await;
        bed.run(async |run| run::stop(run, &nodes).await).await;
    }
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
async fn one_address_that_slurm_refuses_does_not_affect_the_others() {
    let mut bed = Bed::new("n[1-3]");
    // slurmctld does not know the third.
    bed.slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n[1-2]".parse().unwrap()));
    let report = bed.run(async |run| run::start(run, &names("n[1-3]"), &[]).await).await;
    assert_eq!(report.with(Outcome::Up).count(), 2, "{report:?}");
    assert_eq!(report.nodes[&node("n3")].outcome, Outcome::Unreported, "{report:?}");
}

/// The second time when the last machine of the call was up, over what stood there by then.
#[tokio::test(start_paused = true)]
async fn a_job_whose_pool_cools_down_gets_one_comment() {
    let mut bed = Bed::new("n[1-2]");
    bed.config = conf(
        "NodeName=n1 State=CLOUD CPUs=2 Features=shape=small,ad=1\n\
         NodeName=n2 State=CLOUD CPUs=2 Features=shape=small,ad=2",
    );
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    let (job, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n[1-2]"), groups(&request));
    let start = bed.run(async |run| run::start(run, &nodes, &jobs).await);
    let comment = async {
        sleep(Duration::from_secs(5)).await;
        let said = bed.slurm.job(job).unwrap().admin_comment;
        assert!(said.is_some_and(|text| text.contains("out of capacity")), "at once");
        bed.slurm.comment(job, "call me").await.unwrap();
    };
    let (report, ()) = tokio::join!(start, comment);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::ReturnedToSlurm, "{report:?}");
    assert_eq!(report.nodes[&node("n2")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(bed.slurm.job(job).unwrap().admin_comment.as_deref(), Some("call me"));
}

#[tokio::test(start_paused = true)]
async fn a_job_without_room_gets_one_comment_for_all_its_nodes() {
    let bed = Bed::new("n[001-200]");
    bed.cloud.inject_randomly(
        Some(ApiOperation::Launch),
        InjectedFault::Refuse(ErrorKind::Capacity),
        1.0,
    );
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

#[tokio::test(start_paused = true)]
async fn a_node_that_waits_to_report_its_address_is_yielded_to_a_stop() {
    let bed = Bed::new("n1");
    let nodes = names("n1");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let launched = bed.live();
    bed.slurm.set_unreachable(true);
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let wish = async {
        // The first call that reports the address is under way.
        sleep(Duration::from_secs(15)).await;
        bed.state.ask_to_yield(&nodes, bed.now() + Duration::from_secs(10)).unwrap();
    };
    let (report, ()) = tokio::join!(start, wish);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Yielded, "{report:?}");
    assert_eq!(bed.live(), launched, "the machine is left to the stop");
}

/// The cloud does not answer a launch until after the last moment.
#[tokio::test(start_paused = true)]
async fn a_node_is_yielded_even_if_its_launch_has_no_answer() {
    let bed = Bed::new("n1");
    let nodes = names("n1");
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(Duration::from_mins(20)));
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let wish = async {
        sleep(Duration::from_secs(15)).await;
        bed.state.ask_to_yield(&nodes, bed.now() + Duration::from_secs(10)).unwrap();
    };
    let (report, ()) = tokio::join!(start, wish);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Yielded, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_start_of_a_stopped_machine_that_is_under_way_is_finished_before_its_node_is_yielded() {
    let mut bed = Bed::new("n1");
    bed.site.policies.stopped = Stopped::Start;
    let nodes = names("n1");
    bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let old = bed.live().remove(0).id;
    assert!(bed.cloud.force(&old, InstanceState::Stopped));
    sleep(Duration::from_secs(5)).await;
    bed.cloud.inject(ApiOperation::Start, InjectedFault::Delay(Duration::from_secs(30)));
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let wish = async {
        sleep(Duration::from_secs(5)).await;
        bed.state.ask_to_yield(&nodes, bed.now() + Duration::from_secs(10)).unwrap();
    };
    let (report, ()) = tokio::join!(start, wish);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Yielded, "{report:?}");
    assert_eq!(bed.done(ApiOperation::Start), 1, "the request was not broken off");
}
