//! [`MemorySlurm`] as a [`Controller`].

use super::{
    job::JobRecord,
    node::{Power, Reboot},
    settings::JobSpec,
    slurm::MemorySlurm,
    world::{World, unknown_node},
};
use crate::{
    BatchJob, Controller, ControllerConfig, Error, ErrorKind, Job, JobFilter, JobId, Node,
    NodeAction, NodeAddress, Reason, Result,
    argv::LONGEST_COMMENT,
    reason::clean,
    update::{Update, refuse_all},
};
use async_trait::async_trait;
use hostlist::Hostlist;
use slurmconf::SlurmVersion;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

impl MemorySlurm {
    /// Does `work` in the middle of the time that a call takes.
    async fn call<T>(
        &self,
        tried: &str,
        work: impl FnOnce(&mut World, u64) -> Result<T> + Send,
    ) -> Result<T> {
        let (latency, timeout) =
            self.with(|world, _| (world.settings.latency, world.settings.timeout));
        sleep(latency / 2).await;
        if !self.world().is_unreachable(Instant::now()) {
            let result = self.with(work);
            sleep(latency / 2).await;
            if !self.with(|world, _| world.loses_answer()) {
                return result;
            }
        }
        sleep(timeout).await;
        let error = Error::new(ErrorKind::Unavailable, tried);
        Err(error.because(format!("no answer in {timeout:?}")))
    }
}

#[async_trait]
impl Controller for MemorySlurm {
    fn version(&self) -> SlurmVersion {
        self.world().settings.version
    }

    async fn nodes(&self, which: Option<&Hostlist>) -> Result<Vec<Node>> {
        self.call("scontrol show node", |world, _| {
            let epoch = world.settings.epoch;
            let wanted = |name: &str| which.is_none_or(|list| list.contains(name));
            let nodes = world.nodes.iter().filter(|node| wanted(node.name().as_str()));
            Ok(nodes.map(|node| node.show(epoch)).collect())
        })
        .await
    }

    async fn jobs(&self, which: JobFilter) -> Result<Vec<Job>> {
        self.call("squeue", |world, _| {
            let jobs = world.jobs.values().map(JobRecord::show);
            Ok(jobs.filter(|job| which.matches(job)).collect())
        })
        .await
    }

    async fn config(&self) -> Result<ControllerConfig> {
        self.call("scontrol show config", |world, _| {
            let settings = &world.settings;
            let seconds = |time: Duration| format!("{} sec", time.as_secs());
            let idle =
                if settings.idle_on_node_suspend { "idle_on_node_suspend" } else { "(null)" };
            Ok(ControllerConfig::from_iter([
                ("ClusterName", "memory".to_owned()),
                ("ResumeTimeout", seconds(settings.resume_timeout)),
                ("SuspendTimeout", seconds(settings.suspend_timeout)),
                ("SuspendTime", settings.suspend_time.map_or("INFINITE".to_owned(), seconds)),
                ("SlurmdTimeout", seconds(settings.slurmd_timeout)),
                ("SlurmctldParameters", idle.to_owned()),
            ]))
        })
        .await
    }

    async fn set_addresses(&self, addresses: &[NodeAddress]) -> Result<()> {
        let tried = "scontrol update nodeaddr";
        // Exactly what a real slurmctld would be sent.
        let (updates, mut failures) = Update::addresses(addresses, self.version());
        self.call(tried, |world, _| {
            for update in updates {
                let result = update.argv().and_then(|_| world.set_addresses(&update, tried));
                failures.extend(result.err());
            }
            Error::all(failures)
        })
        .await
    }

    async fn set_state(
        &self,
        nodes: &Hostlist,
        to: NodeAction,
        reason: Option<&Reason>,
    ) -> Result<()> {
        self.call("scontrol update state", |world, now| world.set_state(nodes, to, reason, now))
            .await
    }

    async fn set_topology(&self, nodes: &Hostlist, place: &str) -> Result<()> {
        self.call("scontrol update topology", |world, _| world.set_topology(nodes, place)).await
    }

    async fn comment(&self, job: JobId, text: &str) -> Result<()> {
        let tried = format!("scontrol update jobid={job}");
        self.call(&tried, |world, _| {
            let missing =
                || Error::new(ErrorKind::NotFound, &tried).because("Invalid job id specified");
            let job = world.jobs.get_mut(&job).ok_or_else(missing)?;
            job.admin_comment = Some(clean(text, LONGEST_COMMENT)).filter(|text| !text.is_empty());
            Ok(())
        })
        .await
    }

    async fn reboot(&self, nodes: &Hostlist, reason: &Reason) -> Result<()> {
        let tried = format!("scontrol reboot {nodes}");
        self.call(&tried, |world, now| {
            refuse_all(nodes)?;
            let mut unknown = false;
            for name in nodes {
                let Some(node) = world.node(&name) else {
                    unknown = true;
                    continue;
                };
                // Slurm silently ignores these.
                if matches!(node.power, Power::Down | Power::GoingDown { .. }) || node.wants_down {
                    continue;
                }
                if matches!(node.reboot, Some(Reboot::Issued { .. })) {
                    continue;
                }
                node.reboot = Some(Reboot::Requested);
                node.drain = true;
                node.set_reason(reason.as_str(), now);
            }
            world.dirty = true;
            if unknown { Err(unknown_node(&tried)) } else { Ok(()) }
        })
        .await
    }

    async fn submit(&self, job: &BatchJob) -> Result<JobId> {
        self.call("sbatch", |world, now| {
            let mut spec = JobSpec::new(1, Duration::ZERO);
            spec.partition.clone_from(&job.partition);
            spec.wanted = vec![job.node.clone()];
            spec.reboot = job.reboot;
            let there = world.nodes.iter().any(|node| {
                node.spec.partitions.contains(&spec.partition) && *node.name() == job.node
            });
            if !there {
                let text = "Requested node configuration is not available";
                return Err(Error::new(ErrorKind::Refused, "sbatch").because(text));
            }
            Ok(world.queue(spec, now))
        })
        .await
    }

    async fn ping(&self) -> Result<bool> {
        match self.call("scontrol ping", |_, _| Ok(())).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Unavailable => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn reconfigure(&self) -> Result<()> {
        let tried = "scontrol reconfigure";
        self.call(tried, |world, now| {
            if world.reconfigure(now) {
                return Ok(());
            }
            let text = "Zero Bytes were transmitted or received";
            Err(Error::new(ErrorKind::Unavailable, tried).because(text))
        })
        .await
    }

    async fn restart(&self) -> Result<()> {
        // The restart goes on even if the caller is dropped.
        let back = {
            self.with(World::read_conf);
            let mut world = self.world();
            let back = Instant::now() + world.settings.restart_time;
            world.dead = false;
            world.restarting = Some(back);
            world.dirty = true;
            back
        };
        sleep_until(back).await;
        Ok(())
    }
}
