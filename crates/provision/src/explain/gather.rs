//! Asking Slurm, the cloud and the state directory for what an explanation needs.

use super::facts::{Facts, Learnt};
use crate::cause::Cause;
use crate::failure::chain;
use crate::site::Site;
use crate::state::{Document, State as _, StateDir, cooldowns};
use crate::world::{Fleet, Roster};
use cloud_core::{InstanceFilter, Limit, Provider};
use slurmctl::{Controller, JobFilter, JobId};
use std::path::Path;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// How long the cloud may take: what Slurm says is worth showing without it.
const CLOUD_WAIT: Duration = Duration::from_secs(5);

/// How many bytes of events count as lately: some ten thousand events.
const LATELY: u64 = 4 << 20;

/// Whom to ask.
#[derive(Debug)]
pub struct Sources<'a> {
    /// Slurm.
    pub slurm: &'a dyn Controller,
    /// The cloud, or why it cannot be asked.
    pub cloud: Learnt<&'a dyn Provider>,
    /// The state directory, which is only read.
    pub state_dir: &'a Path,
    /// What the operator decided.
    pub site: &'a Site,
    /// What slurm.conf says.
    pub conf: &'a Roster<'a>,
    /// Why the configuration cannot be read, if it cannot.
    pub configuration: Option<String>,
    /// The time.
    pub now: SystemTime,
}

/// Asks for all unfinished jobs, and for this one even if it has ended.
pub async fn gather<'a>(sources: &Sources<'a>, wanted: Option<JobId>) -> Facts<'a> {
    let slurm = sources.slurm;
    let (nodes, jobs, fleet) = tokio::join!(slurm.nodes(None), jobs(slurm, wanted), fleet(sources));
    let text = StateDir::read_only(sources.state_dir).load(Document::Cooldowns);
    let cooldowns = text.map(|text| cooldowns::read(text.as_deref()));
    let cooldowns = cooldowns.map_err(|error| chain(&error));
    let events = history::read_at_most(sources.state_dir, LATELY);
    let is_quota = |known: &crate::Cooldowns| {
        known.pools().any(|(_, cooldown)| cooldown.cause == Cause::Quota)
    };
    let limits = match &cooldowns {
        Ok(known) if is_quota(known) => limits(sources).await,
        Ok(_) | Err(_) => Ok(Vec::new()),
    };
    let by_name = |nodes: Vec<slurmctl::Node>| {
        nodes.into_iter().map(|node| (node.name.clone(), node)).collect()
    };
    Facts {
        site: sources.site,
        conf: sources.conf,
        configuration: sources.configuration.clone(),
        nodes: nodes.map(by_name).map_err(|error| chain(&error)),
        jobs: jobs.map_err(|error| chain(&error)),
        fleet,
        cooldowns,
        events: events.map(|log| log.events).map_err(|error| chain(&error)),
        limits,
        now: sources.now,
    }
}

async fn jobs(
    slurm: &dyn Controller,
    wanted: Option<JobId>,
) -> slurmctl::Result<Vec<slurmctl::Job>> {
    let mut jobs = slurm.jobs(JobFilter::All).await?;
    if let Some(id) = wanted.filter(|id| !jobs.iter().any(|job| job.id == *id)) {
        jobs.extend(slurm.jobs(JobFilter::Ids(vec![id])).await?);
    }
    Ok(jobs)
}

async fn fleet(sources: &Sources<'_>) -> Learnt<Fleet> {
    let cloud = sources.cloud.clone()?;
    let filter = InstanceFilter::tagged(sources.site.identity.tags());
    let listed = in_time(cloud.list(&filter)).await?;
    Ok(Fleet::new(&sources.site.identity, sources.conf, listed, true))
}

async fn limits(sources: &Sources<'_>) -> Learnt<Vec<Limit>> {
    in_time(sources.cloud.clone()?.limits()).await
}

/// What the cloud answers, if it does so in time.
async fn in_time<T>(asked: impl Future<Output = cloud_core::Result<T>>) -> Learnt<T> {
    match timeout(CLOUD_WAIT, asked).await {
        Ok(answer) => answer.map_err(|error| chain(&error)),
        Err(_) => Err(format!("the cloud did not answer within {} seconds", CLOUD_WAIT.as_secs())),
    }
}
