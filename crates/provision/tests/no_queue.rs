//! A slurmctld that tells of its nodes, and not of its jobs, as with a queue that is too long for squeue's time.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may")]

mod common;

use async_trait::async_trait;
use cloud_core::{ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName};
use common::{Bed, conf, node};
use hostlist::Hostlist;
use provision::exec::Tools;
use provision::run::{self, Run};
use provision::{Report, Roster};
use slurmconf::SlurmVersion;
use slurmctl::memory::MemorySlurm;
use slurmctl::{
    BatchJob, Controller, ControllerConfig, Error, ErrorKind, Job, JobId, Jobs, Node, NodeAction,
    NodeAddress, Reason, Result,
};
use std::time::Duration;
use tokio::time::sleep;

#[derive(Debug)]
struct NoQueue(MemorySlurm);

#[async_trait]
impl Controller for NoQueue {
    fn version(&self) -> SlurmVersion {
        self.0.version()
    }

    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        self.0.nodes(which).await
    }

    async fn jobs(&self, _: Jobs) -> Result<Vec<Job>> {
        Err(Error::new(ErrorKind::Unavailable, "squeue").because("no answer in time"))
    }

    async fn config(&self) -> Result<ControllerConfig> {
        self.0.config().await
    }

    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()> {
        self.0.set_addresses(addresses).await
    }

    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()> {
        self.0.set_state(nodes, to, reason).await
    }

    async fn comment(&self, job: JobId, text: &str) -> Result<()> {
        self.0.comment(job, text).await
    }

    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()> {
        self.0.reboot(nodes, reason).await
    }

    async fn submit(&self, job: &BatchJob) -> Result<JobId> {
        self.0.submit(job).await
    }

    async fn ping(&self) -> Result<bool> {
        self.0.ping().await
    }

    async fn reconfigure(&self) -> Result<()> {
        self.0.reconfigure().await
    }

    async fn restart(&self) -> Result<()> {
        self.0.restart().await
    }
}

/// Two runs, a minute apart.
async fn reconcile_twice(bed: &Bed, slurm: &dyn Controller) -> Report {
    let (roster, clock) = (Roster::new(&bed.config), || bed.now());
    let tools = Tools {
        cloud: &bed.cloud,
        slurm,
        state: &*bed.state,
        clock: &clock,
        progress: &(),
        files: &bed.files,
        run: "test",
        cancel: bed.cancel.clone(),
    };
    let run = Run { tools, site: &bed.site, conf: &roster };
    let _ = run::reconcile(&run).await;
    sleep(Duration::from_mins(1)).await;
    run::reconcile(&run).await
}

/// A machine of a node that Slurm has powered down.
async fn orphan(bed: &Bed, name: &str) {
    let image = ImageId::new("image-1");
    let mut spec = InstanceSpec::new(InstanceName::new(name), ShapeName::new("small"), image);
    spec.tags = bed.site.identity.tags_of(&node(name));
    bed.cloud.launch(&spec).await.unwrap();
    sleep(bed.site.policies.grace + Duration::from_mins(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_orphan_was_left_for_as_long_as_the_queue_could_not_be_read() {
    let bed = Bed::new("n[1-2]");
    orphan(&bed, "n1").await;
    let report = reconcile_twice(&bed, &NoQueue(bed.slurm.clone())).await;
    assert!(bed.live().is_empty(), "{report:?}");
    assert!(report.warnings.iter().any(|text| text.contains("squeue")), "{report:?}");
}

/// Nothing but the queue shows a job that is suspended.
#[tokio::test(start_paused = true)]
async fn a_machine_is_not_ended_where_only_the_queue_could_show_its_job() {
    let mut bed = Bed::new("n[1-2]");
    bed.config = conf("NodeName=n1 State=CLOUD CPUs=2 Features=shape=small,ad=1");
    orphan(&bed, "n2").await;
    let report = reconcile_twice(&bed, &NoQueue(bed.slurm.clone())).await;
    assert_eq!(bed.live().len(), 1, "{report:?}");
    let report = reconcile_twice(&bed, &bed.slurm).await;
    assert!(bed.live().is_empty(), "slurm.conf has lost it, and no job is there: {report:?}");
}
