//! Batches of a rollout.

use crate::common::run;
use crate::common::{Bed, conf, names, node};
use cloud_core::{ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName};
use provision::Cancel;
use provision::plan::Rollout;
use provision::{Outcome, Report};
use slurmctl::memory::{MemorySlurm, MemorySlurmSettings, NodeSpec};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::sleep;

/// Two persistent nodes that are up, and a slurmctld that takes ten seconds for each answer.
async fn slow() -> Bed {
    let mut bed = Bed::new("n[1-2]");
    bed.config = conf("NodeName=n[1-2] CPUs=2 State=UNKNOWN");
    let mut settings = MemorySlurmSettings::cloud(&"n[1-2]".parse().unwrap());
    settings.nodes = names("n[1-2]").into_iter().map(NodeSpec::fixed).collect();
    settings.latency = Duration::from_secs(10);
    bed.slurm = MemorySlurm::new(settings);
    for name in names("n[1-2]") {
        let (shape, image) = (ShapeName::new("small"), ImageId::new("image-1"));
        let mut spec = InstanceSpec::new(InstanceName::new(name.as_str()), shape, image);
        spec.tags = bed.site.identity.tags_of(&name);
        bed.cloud.launch(&spec).await.unwrap();
    }
    sleep(Duration::from_mins(2)).await;
    bed
}

async fn roll(bed: &Bed, request: &mut Rollout) -> Report {
    bed.run(async |run| run::rollout(run, request).await).await.unwrap()
}

/// Nodes, then jobs, are asked for, and the third call is the one to reboot.
const THIRD_CALL: Duration = Duration::from_secs(21);

#[tokio::test(start_paused = true)]
async fn nodes_that_slurmctld_never_heard_of_do_not_count_as_tried() {
    let bed = slow().await;
    let mut request = Rollout::new(ImageId::new("image-2"));
    (request.batch, request.canary) = (2, 2);
    let away = async {
        sleep(THIRD_CALL).await;
        bed.slurm.set_unreachable(true);
        sleep(Duration::from_secs(5)).await;
        bed.slurm.set_unreachable(false);
    };
    let (report, ()) = tokio::join!(roll(&bed, &mut request), away);
    assert_eq!(report.with(Outcome::Failed).count(), 2, "{report:?}");
    assert_eq!((request.tried.len(), request.last), (0, None), "nobody has touched them");
    let report = roll(&bed, &mut request).await;
    assert_eq!(report.with(Outcome::Done).count(), 2, "{report:?}");
    assert_eq!(request.tried, names("n[1-2]").into_iter().collect());
}

#[tokio::test(start_paused = true)]
async fn a_reboot_whose_answer_is_lost_is_noted() {
    let bed = slow().await;
    let mut request = Rollout::new(ImageId::new("image-2"));
    let lost = async {
        sleep(THIRD_CALL).await;
        bed.slurm.lose_answers(1);
    };
    let (report, ()) = tokio::join!(roll(&bed, &mut request), lost);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!(request.tried, BTreeSet::from([node("n1")]));
}

/// Ctrl-C between two batches, or while the first was looked for, and nodes were rebooted all the same.
#[tokio::test(start_paused = true)]
async fn a_cancelled_rollout_begins_no_other_batch() {
    let mut bed = slow().await;
    let (stop, cancel) = Cancel::new();
    bed.cancel = cancel;
    let mut request = Rollout::new(ImageId::new("image-2"));
    let told = async {
        sleep(Duration::from_secs(5)).await;
        stop.cancel();
    };
    let (report, ()) = tokio::join!(roll(&bed, &mut request), told);
    assert_eq!(report.nodes[&node("n1")].outcome, Outcome::Failed, "{report:?}");
    assert_eq!((request.tried.len(), request.last), (0, None), "nothing has begun");
    assert!(bed.slurm.all_nodes().iter().all(|node| !node.state.is_reboot_requested()));
}
