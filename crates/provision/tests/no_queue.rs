//! A slurmctld that tells of its nodes, and not of its jobs, as with a queue that is too long for squeue's time.

use crate::common::run::{self, Run};
use crate::common::{Bed, conf, groups, names, node};
use async_trait::async_trait;
use cloud_core::{ImageId, InstanceName, InstanceSpec, Provider as _, ShapeName};
use hostlist::Hostlist;
use provision::plan::{RebuildOptions, Target};
use provision::{Outcome, Report};
use slurmconf::SlurmVersion;
use slurmctl::memory::MemorySlurm;
use slurmctl::{
    BatchJob, Controller, ControllerConfig, Error, ErrorKind, Job, JobFilter, JobId, Node,
    NodeAction, NodeAddress, Reason, Result,
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

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

    async fn jobs(&self, _: JobFilter) -> Result<Vec<Job>> {
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
    let _ = bed.run_on(&bed.cloud, slurm, async |run| run::reconcile(run).await).await;
    sleep(Duration::from_mins(1)).await;
    bed.run_on(&bed.cloud, slurm, async |run| run::reconcile(run).await).await
}

/// By a script that has cut itself loose from slurmctld, so that nothing but the node's state says that Slurm has asked.
#[tokio::test(start_paused = true)]
async fn a_reboot_that_slurm_issued_needs_no_queue() {
    let bed = Bed::new("n1");
    let (_, request) = bed.job(1).await;
    let (nodes, jobs) = (names("n1"), groups(&request));
    bed.run(async |run| run::start(run, &nodes, &jobs).await).await;
    let machine = bed.live().remove(0);
    let _ = bed.slurm.register(&node("n1"), &machine.address.unwrap().to_string(), Instant::now());
    bed.slurm.reboot(&"n1".parse().unwrap(), &Reason::new("new kernel")).await.unwrap();
    let rebuild = async || {
        let (slurm, targets) = (NoQueue(bed.slurm.clone()), [Target::new(node("n1"))]);
        let options = RebuildOptions::default();
        let rebuild = async |run: &Run<'_>| run::rebuild(run, &targets, options).await;
        bed.run_on(&bed.cloud, &slurm, rebuild).await.nodes.remove(&node("n1")).unwrap()
    };
    let early = rebuild().await;
    assert_eq!(early.outcome, Outcome::Refused, "a job may run there yet: {early:?}");
    while !bed.slurm.node("n1").unwrap().state.is_reboot_issued() {
        sleep(Duration::from_secs(1)).await;
        let _ = bed.slurm.tick();
    }
    let done = rebuild().await;
    assert_eq!(done.outcome, Outcome::Done, "{done:?}");
    assert_eq!(bed.cloud.boots(&machine.id), Some(2));
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
async fn an_orphan_is_ended_though_the_queue_cannot_be_read() {
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
