//! Asking Slurm, the cloud and the state directory for what an explanation needs.

use super::elsewhere::{self, Rooms};
use super::facts::{Facts, Learnt};
use crate::budget;
use crate::cause::Cause;
use crate::failure::chain;
use crate::site::Site;
use crate::state::{State as _, StateDir, StateFile, cooldowns};
use crate::world::{Fleet, Roster};
use cloud_core::{InstanceFilter, Limit, Provider};
use history::Lives;
use history::cost::Spending;
use slurmctl::{Controller, JobFilter, JobRef};
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
pub async fn gather<'a>(sources: &Sources<'a>, wanted: Option<JobRef>) -> Facts<'a> {
    let slurm = sources.slurm;
    let (nodes, jobs, fleet) = tokio::join!(slurm.nodes(None), jobs(slurm, wanted), fleet(sources));
    let text = StateDir::read_only(sources.state_dir).load(StateFile::Cooldowns);
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
    let rooms = match &cooldowns {
        Ok(known) => elsewhere::rooms(sources, known).await,
        Err(_) => Rooms::new(),
    };
    let spending = spending(sources, &fleet);
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
        rooms,
        spending,
        now: sources.now,
    }
}

/// What was spent, if there is a budget and the whole log can be read.
fn spending(sources: &Sources<'_>, fleet: &Learnt<Fleet>) -> Option<Spending> {
    sources.site.allowance.as_ref()?;
    let log = history::read(sources.state_dir).ok()?;
    let nothing = Fleet::default();
    let fleet = fleet.as_ref().unwrap_or(&nothing);
    let lives = Lives::of(&log.events);
    budget::spending(&lives, fleet, sources.conf, sources.site, sources.now)
}

async fn jobs(
    slurm: &dyn Controller,
    wanted: Option<JobRef>,
) -> slurmctl::Result<Vec<slurmctl::Job>> {
    let mut jobs = slurm.jobs(JobFilter::All).await?;
    if let Some(name) = wanted.filter(|name| name.find(&jobs).is_none()) {
        jobs.extend(slurm.jobs(JobFilter::Called(name)).await?);
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
pub(super) async fn in_time<T>(asked: impl Future<Output = cloud_core::Result<T>>) -> Learnt<T> {
    match timeout(CLOUD_WAIT, asked).await {
        Ok(answer) => answer.map_err(|error| chain(&error)),
        Err(_) => Err(format!("the cloud did not answer within {} seconds", CLOUD_WAIT.as_secs())),
    }
}
