//! Launches on a cloud that launches many in one request.

use crate::common::run;
use crate::common::{Bed, names};
use cloud_core::memory::{InjectedFault, MemoryCloudSettings};
use cloud_core::{ApiOperation, ErrorKind, ShapeName};
use provision::Outcome;
use std::collections::BTreeSet;

fn batching(nodes: &str) -> Bed {
    let mut settings = MemoryCloudSettings::default();
    settings.batch = 100;
    Bed::with(nodes, settings)
}

/// How many nodes are up, each with one instance of its own.
async fn up(bed: &Bed, nodes: &str) -> usize {
    let report = bed.run(async |run| run::start(run, &names(nodes), &[]).await).await;
    let live = bed.live();
    let different: BTreeSet<_> = live.iter().map(|instance| instance.name.as_str()).collect();
    assert_eq!(different.len(), live.len(), "a node has two instances");
    let count = report.with(Outcome::Up).count();
    assert_eq!(count, live.len(), "{:?}", report.failed_nodes());
    count
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_launched_in_ten_requests() {
    let bed = batching("n[1-1000]");
    assert_eq!(up(&bed, "n[1-1000]").await, 1000);
    assert_eq!(bed.requests(ApiOperation::Launch), 10);
}

#[tokio::test(start_paused = true)]
async fn a_batch_without_an_answer_leaves_one_instance_for_each_node() {
    for fault in [InjectedFault::LoseResponse, InjectedFault::LoseRequest] {
        let bed = batching("n[1-30]");
        bed.cloud.inject(ApiOperation::Launch, fault);
        assert_eq!(up(&bed, "n[1-30]").await, 30, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_batch_is_launched_once() {
    let bed = batching("n[1-30]");
    bed.cloud.inject(ApiOperation::Launch, InjectedFault::Refuse(ErrorKind::Throttled));
    assert_eq!(up(&bed, "n[1-30]").await, 30);
}

#[tokio::test(start_paused = true)]
async fn nodes_of_a_batch_that_find_no_room_are_returned_and_the_others_come_up() {
    let bed = batching("n[1-30]");
    bed.cloud.set_capacity(ShapeName::new("small"), None, Some(20));
    assert_eq!(up(&bed, "n[1-30]").await, 20);
}
