//! The end of everything.

use crate::common::run;
use crate::common::{Bed, names, node};
use cloud_core::memory::{MemoryCloudSettings, Span};
use cloud_core::{ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName};
use provision::Outcome;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Launches a machine with our tags every few seconds.
async fn launch(bed: &Bed, times: usize) {
    let image = ImageId::new("image-1");
    let mut spec = InstanceSpec::new(InstanceName::new("n1"), ShapeName::new("small"), image);
    spec.tags = bed.site.identity.tags_of(&node("n1"));
    for _ in 0..times {
        bed.cloud.launch(&spec).await.unwrap();
        sleep(Duration::from_secs(4)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn machines_that_come_while_all_are_ended_are_ended_too() {
    let bed = Bed::new("n1");
    let stop = bed.run(async |run| run::stop_all(run).await);
    let (report, ()) = tokio::join!(stop, launch(&bed, 15));
    assert!(bed.live().is_empty(), "{:?}", bed.live());
    assert!(report.is_success(), "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn an_end_of_all_that_leaves_machines_is_no_success() {
    let bed = Bed::new("n1");
    let stop = bed.run(async |run| run::stop_all(run).await);
    let others = timeout(Duration::from_hours(1), launch(&bed, usize::MAX));
    let report = tokio::select! {
        report = stop => report,
        _ = others => panic!("it has no end"),
    };
    assert_eq!(report.exit_code(), 1, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_start_launches_nothing_more_while_all_is_ended() {
    let mut settings = MemoryCloudSettings::default();
    settings.latency = Span::millis(1_000, 1_000);
    let mut bed = Bed::with("n[1-200]", settings);
    bed.site.policies.concurrency = 1;
    let nodes = names("n[1-200]");
    let start = bed.run(async |run| run::start(run, &nodes, &[]).await);
    let stop = async {
        sleep(Duration::from_secs(6)).await;
        bed.run(async |run| run::stop_all(run).await).await
    };
    let (started, stopped) = tokio::join!(start, stop);
    assert!(stopped.is_success(), "{stopped:?}");
    assert!(started.with(Outcome::Yielded).count() > 150, "{started:?}");
    assert!(bed.live().is_empty(), "{:?}", bed.live());
}
