//! What is between programs and slurmctld.

use crate::simulation::judge::Judge;
use async_trait::async_trait;
use hostlist::Hostlist;
use slurmconf::SlurmVersion;
use slurmctl::memory::MemorySlurm;
use slurmctl::{
    BatchJob, Controller, ControllerConfig, Job, JobFilter, JobId, Node, NodeAction, NodeAddress,
    Reason, Result, StateFlag,
};
use std::sync::Arc;

/// A controller at the other end of a line; the judge knows who has not been answered.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) slurm: MemorySlurm,
    pub(crate) judge: Arc<Judge>,
    /// Nodes that are up are taken for nodes on their way, as when nobody asks twice.
    pub(crate) outdated: bool,
}

#[async_trait]
impl Controller for Line {
    fn version(&self) -> SlurmVersion {
        self.slurm.version()
    }

    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        let mut nodes = self.slurm.nodes(which).await.inspect_err(|_| self.judge.unheard())?;
        for node in nodes.iter_mut().filter(|node| self.outdated && node.state.is_up()) {
            node.state.flags.insert(StateFlag::PoweringUp);
        }
        Ok(nodes)
    }

    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>> {
        self.slurm.jobs(which).await.inspect_err(|_| self.judge.unheard())
    }

    async fn config(&self) -> Result<ControllerConfig> {
        self.slurm.config().await
    }

    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()> {
        self.slurm.set_addresses(addresses).await?;
        self.judge.addressed(addresses.iter().map(|it| it.node.clone()));
        Ok(())
    }

    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()> {
        self.slurm.set_state(nodes, to, reason).await
    }

    async fn comment(&self, job: JobId, text: &str) -> Result<()> {
        self.slurm.comment(job, text).await
    }

    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()> {
        self.slurm.reboot(nodes, reason).await
    }

    async fn submit(&self, job: &BatchJob) -> Result<JobId> {
        self.slurm.submit(job).await
    }

    async fn ping(&self) -> Result<bool> {
        self.slurm.ping().await
    }

    async fn reconfigure(&self) -> Result<()> {
        self.slurm.reconfigure().await
    }

    async fn restart(&self) -> Result<()> {
        self.slurm.restart().await
    }
}
