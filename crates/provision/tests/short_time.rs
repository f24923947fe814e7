//! Launches without an answer, by runs that have less time than it takes to be sure of them.

use crate::common::run;
use crate::common::{Bed, conf, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, Span};
use cloud_core::{ApiOperation, ErrorKind, Zone};
use provision::{Cause, Fallback, Outcome, Report};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// As with a ResumeTimeout of half a minute, in a cloud that is quick enough for it.
fn hurried() -> Bed {
    let mut settings = MemoryCloudSettings::default();
    settings.boot = Span::millis(300, 300);
    settings.address = Span::millis(100, 100);
    settings.terminate = Span::millis(300, 300);
    let mut bed = Bed::with("n1", settings);
    bed.site.policies.deadline = Duration::from_secs(15);
    bed
}

async fn start(bed: &Bed) -> Report {
    bed.run(async |run| run::start(run, &names("n1"), &[]).await).await
}

#[tokio::test(start_paused = true)]
async fn a_launch_without_an_answer_does_not_block_its_node() {
    for trouble in [InjectedFault::LoseRequest, InjectedFault::LoseResponse] {
        let bed = hurried();
        bed.cloud.inject(ApiOperation::Launch, trouble);
        let report = start(&bed).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{trouble:?}: {report:?}");
        assert_eq!(bed.live().len(), 1, "{trouble:?}");
    }
}

/// The run before had no time to repeat it.
#[tokio::test(start_paused = true)]
async fn a_launch_of_an_earlier_run_does_not_block_its_node() {
    let bed = hurried();
    for _ in 0..3 {
        bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseRequest);
    }
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseResponse);
    let report = start(&bed).await;
    assert_ne!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    bed.run(async |run| run::stop(run, &names("n1")).await).await;
    let report = start(&bed).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(bed.live().len(), 1);
}

/// What is refused may be so for the launch that had no answer, and is under way yet.
#[tokio::test(start_paused = true)]
async fn a_refused_repeat_does_not_answer_for_the_first_launch() {
    for kind in [ErrorKind::Capacity, ErrorKind::Conflict] {
        let mut bed = hurried();
        bed.site.policies.deadline = Duration::from_mins(5);
        bed.site.fallback =
            vec![Fallback { zone: Some(Zone::new("zone-2")), ..Fallback::default() }];
        bed.cloud.inject(ApiOperation::Launch, InjectedFault::DoneLater(Duration::from_secs(8)));
        let dies = tokio::time::timeout(Duration::from_secs(1), start(&bed)).await;
        assert!(dies.is_err(), "killed");
        bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(kind));
        let report = start(&bed).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{kind}: {report:?}");
        sleep(Duration::from_mins(1)).await;
        assert_eq!(bed.live().len(), 1, "{kind}: {report:?}");
    }
}

/// A token says nothing of a launch with another, and listings are behind.
#[tokio::test(start_paused = true)]
async fn a_launch_without_an_answer_is_resolved_before_another_elsewhere() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::from_secs(6);
    let mut bed = Bed::with("n1", settings);
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::DoneLater(Duration::from_secs(2)));
    let dies = tokio::time::timeout(Duration::from_secs(1), start(&bed)).await;
    assert!(dies.is_err(), "killed");
    // Somebody has changed the zone of the node since.
    bed.config = conf("NodeName=n1 State=CLOUD CPUs=2 Features=shape=small,ad=2");
    let begun = Instant::now();
    let report = start(&bed).await;
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{report:?}");
    assert_eq!(report.nodes[&node("n1")].launches, 0, "the first was found: {report:?}");
    assert!(begun.elapsed() < Duration::from_mins(2));
    assert_eq!(bed.live().len(), 1);
}

/// Its machine is there, and would be ended just when there is no room for another.
#[tokio::test(start_paused = true)]
async fn an_ambiguous_launch_is_resolved_though_its_pool_cools_down() {
    let mut settings = MemoryCloudSettings::default();
    settings.lag = Duration::from_secs(6);
    let bed = Bed::with("n[1-2]", settings);
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::LoseResponse);
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    let nodes = names("n[1-2]");
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let up: Vec<_> = report.with(Outcome::Up).collect();
    assert_eq!(up, [&node("n1")], "{report:?}");
    assert_eq!(bed.live().len(), 1);
}

/// That the time is over says nothing; what the cloud said last says what to do.
#[tokio::test(start_paused = true)]
async fn a_node_returned_at_the_deadline_has_the_last_words_of_the_cloud() {
    let minute = Duration::from_mins(1);
    let rows = [
        (InjectedFault::Refuse(ErrorKind::Conflict), Cause::Conflict),
        (InjectedFault::Refuse(ErrorKind::Throttled), Cause::Throttled),
        (InjectedFault::Refuse(ErrorKind::Unavailable), Cause::Unavailable),
        (InjectedFault::LoseRequest, Cause::Ambiguous),
        (InjectedFault::Delay(minute), Cause::Ambiguous),
    ];
    for (fault, cause) in rows {
        let mut bed = hurried();
        // Less than any of them is retried for.
        bed.site.policies.deadline = Duration::from_secs(9);
        for _ in 0..40 {
            bed.cloud.inject(ApiOperation::Launch, fault);
        }
        let report = start(&bed).await;
        let n1 = &report.nodes[&node("n1")];
        assert_eq!(n1.cause, Some(cause), "{fault:?}: {report:?}");
        let reason = n1.reason.as_deref().unwrap_or_default();
        assert!(reason.starts_with("launch: ") && reason.contains("zone-1"), "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_is_never_seen_has_the_error_of_the_listing() {
    let mut bed = hurried();
    bed.site.policies.deadline = Duration::from_secs(9);
    // The first listing is that of the plan.
    bed.cloud.inject(ApiOperation::List, InjectedFault::Delay(Duration::ZERO));
    for _ in 0..40 {
        bed.cloud.inject(ApiOperation::List, InjectedFault::Refuse(ErrorKind::Unavailable));
    }
    let report = start(&bed).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!(n1.cause, Some(Cause::Unavailable), "{report:?}");
}

/// The cloud agreed to the second place: what the first said counts no more.
#[tokio::test(start_paused = true)]
async fn a_machine_that_never_runs_took_too_long() {
    let mut settings = MemoryCloudSettings::default();
    settings.boot = Span::millis(600_000, 600_000);
    let mut bed = Bed::with("n1", settings);
    bed.site.policies.deadline = Duration::from_secs(30);
    bed.site.fallback = vec![Fallback { zone: Some(Zone::new("zone-2")), ..Fallback::default() }];
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Capacity));
    let report = start(&bed).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!((n1.cause, n1.launches), (Some(Cause::Timeout), 2), "{report:?}");
}
