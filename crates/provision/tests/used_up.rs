//! Launches whose token another launch has used up, and launches in doubt beside a machine on its way out.

use crate::common::run;
use crate::common::{Bed, names, node};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings, Span};
use cloud_core::{
    ApiOperation, ImageId, InstanceId, InstanceName, InstanceSpec, Provider as _, ShapeName,
};
use provision::Outcome;
use provision::state::MemoryState;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long the cloud takes for the first launch of a start: longer than listings are behind.
const SLOW: Duration = Duration::from_secs(5);

/// A machine of the node by another's hand, such as a controller that does not share our state.
async fn machine(bed: &Bed) -> InstanceId {
    let image = ImageId::new("image-1");
    let mut spec = InstanceSpec::new(InstanceName::new("n1"), ShapeName::new("small"), image);
    spec.tags = bed.site.identity.tags_of(&node("n1"));
    bed.cloud.launch(&spec).await.unwrap().id
}

/// A node that had machines before, of which nothing is remembered: the first tokens are used up.
async fn forgotten(settings: MemoryCloudSettings) -> Bed {
    let mut bed = Bed::with("n1", settings);
    let nodes = names("n1");
    for _ in 0..2 {
        bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        bed.run(async |run| run::stop(run, &nodes).await).await;
        sleep(Duration::from_mins(10)).await;
    }
    bed.state = Box::new(MemoryState::new());
    bed
}

#[tokio::test(start_paused = true)]
async fn a_launch_with_the_next_token_adopts_the_machine_of_another() {
    let bed = forgotten(MemoryCloudSettings::default()).await;
    // The listing of the plan is too far behind to show it.
    let other = machine(&bed).await;
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Delay(SLOW));
    let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!((n1.outcome, n1.launches), (Outcome::Up, 1), "{report:?}");
    assert_eq!(n1.instance.as_deref(), Some(other.as_str()), "adopted");
    assert_eq!(bed.live().len(), 1);
}

/// A state directory that is read-only, or lost after each run.
#[tokio::test(start_paused = true)]
async fn the_thousandth_start_takes_no_longer_than_the_tenth() {
    let mut bed = Bed::with("n1", MemoryCloudSettings::default());
    let nodes = names("n1");
    for number in 1..=1000 {
        let begun = Instant::now();
        let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
        let n1 = &report.nodes[&node("n1")];
        assert_eq!(n1.outcome, Outcome::Up, "start {number}: {report:?}");
        assert!(n1.launches <= 4, "start {number}: {report:?}");
        let launches = bed.cloud.history();
        let launch = launches.iter().rfind(|it| it.operation == ApiOperation::Launch).unwrap();
        let took = launch.at.saturating_sub(begun - bed.begun);
        assert!(took < Duration::from_secs(15), "start {number}: {took:?}");
        bed.run(async |run| run::stop(run, &nodes).await).await;
        sleep(Duration::from_secs(20)).await;
        bed.state = Box::new(MemoryState::new());
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_that_are_used_up_take_seconds() {
    let bed = forgotten(MemoryCloudSettings::default()).await;
    let (nodes, begun) = (names("n1"), Instant::now());
    let report = bed.run(async |run| run::start(run, &nodes, &[]).await).await;
    let n1 = &report.nodes[&node("n1")];
    assert_eq!((n1.outcome, n1.launches), (Outcome::Up, 2), "{report:?}");
    let launch =
        bed.cloud.history().iter().rfind(|it| it.operation == ApiOperation::Launch).cloned();
    let took = launch.unwrap().at.saturating_sub(begun - bed.begun);
    assert!(took < Duration::from_secs(8), "{took:?}");
}

/// The machine that another has ended still has the node's name.
#[tokio::test(start_paused = true)]
async fn an_ambiguous_launch_waits_for_a_machine_on_its_way_out() {
    let takes = Duration::from_mins(1);
    for lost in [false, true] {
        let mut settings = MemoryCloudSettings::default();
        settings.terminate = Span { least: takes, most: takes };
        let bed = forgotten(settings).await;
        let id = machine(&bed).await;
        bed.cloud.terminate(&id).await.unwrap();
        let gone = bed.begun.elapsed() + takes;
        let trouble = if lost { InjectedFault::LoseRequest } else { InjectedFault::Delay(SLOW) };
        bed.cloud.inject(ApiOperation::Launch, trouble);
        let report = bed.run(async |run| run::start(run, &names("n1"), &[]).await).await;
        assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Up, "{lost}: {report:?}");
        let history = bed.cloud.history();
        let last = history.iter().rfind(|it| it.operation == ApiOperation::Launch).unwrap().at;
        // But for half of the latency of the answer.
        assert!(last + Duration::from_millis(50) >= gone, "{lost}: {last:?}, {gone:?}");
    }
}
