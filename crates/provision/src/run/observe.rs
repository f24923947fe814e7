//! Observes the cloud, Slurm and the state directory.

use super::Run;
use super::remember::Peek;
use crate::addresses;
use crate::budget;
use crate::cooldown::Cooldowns;
use crate::failure::chain;
use crate::plan::Rollout;
use crate::retry::Retry;
use crate::state::{NodeLock, cooldowns};
use crate::world::{Fleet, World};
use cloud_core::{ApiOperation, Error, ErrorKind, Instance, InstanceFilter, InstanceId};
use futures_util::stream::{self, StreamExt as _};
use history::cost::Spending;
use history::{Lives, Log};
use hostlist::NodeName;
use slurmctl::{Job, JobFilter, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout_at};

/// Maximum retries of a failed listing.
const MOST_TRIES: u32 = 5;

/// Maximum retries of a request to slurmctld, which has just called the program.
const MOST_ASKED: u32 = 2;

/// How long a cancelled run waits for a response.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// What to query from Slurm.
#[derive(Clone, Copy, Debug)]
pub(super) enum SlurmQuery {
    /// Only the nodes, which starts and stops need. They are called often, and must work with a long or unreadable queue.
    Nodes,
    NodesAndJobs,
    /// Nodes and queue, for callers that can continue without the queue.
    NodesAndPerhapsJobs,
}

/// Slurm's response.
struct SlurmResponse {
    nodes: BTreeMap<NodeName, Node>,
    jobs: Option<Vec<Job>>,
    /// Why the queue could not be read.
    trouble: Option<slurmctl::Error>,
}

/// A snapshot of everything that a planner uses.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The instances of this cluster.
    pub fleet: Fleet,
    /// Slurm's nodes, if slurmctld answered.
    pub slurm: Option<BTreeMap<NodeName, Node>>,
    /// Slurm's jobs, if slurmctld answered and they were queried.
    pub jobs: Option<Vec<Job>>,
    /// The cool-downs.
    pub cooldowns: Cooldowns,
    /// The spending, if there is a budget.
    pub spending: Option<Spending>,
    /// The time of the observation.
    pub now: SystemTime,
    /// Warnings about what could not be observed.
    pub warnings: Vec<String>,
    /// True if the cloud cannot be reached and the caller does not want to wait for it.
    pub given_up: bool,
}

impl Observation {
    /// The input of planners.
    #[must_use]
    pub fn world<'a>(&'a self, run: &Run<'a>) -> World<'a> {
        World {
            site: run.site,
            conf: run.conf,
            fleet: &self.fleet,
            slurm: self.slurm.as_ref(),
            jobs: self.jobs.as_deref(),
            cooldowns: &self.cooldowns,
            spending: self.spending,
            now: self.now,
        }
    }
}

impl Run<'_> {
    /// Observes the cloud and Slurm.
    pub async fn observe(&self) -> Observation {
        self.observe_with(SlurmQuery::NodesAndJobs).await
    }

    /// Observes like a run for these nodes, including their records, without locks and changes.
    pub async fn observe_for(&self, nodes: &[NodeName]) -> Observation {
        let until = Instant::now() + Duration::from_mins(1);
        self.observe_nodes(&mut self.peek(nodes), SlurmQuery::NodesAndJobs, until).await
    }

    /// Reads the records of nodes for a preview, without locks and changes.
    pub(super) fn peek(&self, nodes: &[NodeName]) -> BTreeMap<NodeName, Box<dyn NodeLock>> {
        let peek = |node: &NodeName| -> (NodeName, Box<dyn NodeLock>) {
            (node.clone(), Box::new(Peek::new(self.tools.state.record(node))))
        };
        nodes.iter().map(peek).collect()
    }

    /// Observes the cloud and the queried part of Slurm.
    pub(super) async fn observe_with(&self, asked: SlurmQuery) -> Observation {
        let until = Instant::now() + Duration::from_mins(1);
        self.observe_nodes(&mut BTreeMap::new(), asked, until).await
    }

    /// Observes the cloud and Slurm, and gets every recorded instance of these nodes that the listing lacks.
    pub(super) async fn observe_nodes(
        &self,
        locks: &mut BTreeMap<NodeName, Box<dyn NodeLock>>,
        asked: SlurmQuery,
        until: Instant,
    ) -> Observation {
        let (mut warnings, mut given_up) = (Vec::new(), false);
        warnings.extend(locks.values().find_map(|lock| lock.trouble()));
        let (listed, slurm) = tokio::join!(self.list(until), self.query_slurm(asked));
        let (mut listed, complete) = match listed {
            Ok(listed) => (listed, true),
            Err(error) => {
                warnings.push(chain(&error));
                given_up = error.is_given_up();
                (Vec::new(), false)
            }
        };
        self.remember(locks, &mut listed, until).await;
        let (slurm, jobs) = nodes_and_jobs(slurm, &mut warnings);
        let fleet = Fleet::new(&self.site.identity, self.conf, listed, complete)
            .with_fixed(locks.values().filter_map(|lock| lock.record().fixed_instance()));
        let now = self.tools.now();
        let spending = self.spending(&fleet, now, &mut warnings);
        let cooldowns = cooldowns::load(self.tools.state);
        Observation { fleet, slurm, jobs, cooldowns, spending, now, warnings, given_up }
    }

    /// Computes the spending from the log of events and the running machines, if there is a budget.
    fn spending(
        &self,
        fleet: &Fleet,
        now: SystemTime,
        warnings: &mut Vec<String>,
    ) -> Option<Spending> {
        self.site.allowance.as_ref()?;
        let log = self.tools.state.history().unwrap_or_else(|error| {
            warnings.push(format!("what was spent is not known: {}", chain(&error)));
            Log::default()
        });
        budget::spending(&Lives::of(&log.events), fleet, self.conf, self.site, now)
    }

    /// Observes the cloud and Slurm, and the instances that the node files of a rollout name.
    pub async fn observe_rollout(&self, request: &Rollout) -> Observation {
        let mut observation = self.observe().await;
        let named = request.named.iter().map(|(node, id)| (node.clone(), id.clone())).collect();
        let until = Instant::now() + Duration::from_mins(1);
        for (node, error) in self.observe_named(named, &mut observation, until).await {
            observation.warnings.push(format!("{node}: {error}"));
            // A permanent failure concerns only that node.
            if error.kind().is_transient() {
                observation.fleet.set_incomplete();
            }
        }
        observation
    }

    /// Observes Slurm. An unreadable queue does not hide the nodes.
    pub(super) async fn observe_slurm(&self) -> Observation {
        let mut warnings = Vec::new();
        let answer = match self.query_slurm(SlurmQuery::NodesAndJobs).await {
            Err(_) => self.query_slurm(SlurmQuery::Nodes).await,
            answer => answer,
        };
        let (slurm, jobs) = nodes_and_jobs(answer, &mut warnings);
        let (fleet, cooldowns, now) = (Fleet::default(), Cooldowns::new(), self.tools.now());
        Observation {
            fleet,
            slurm,
            jobs,
            cooldowns,
            spending: None,
            now,
            warnings,
            given_up: false,
        }
    }

    /// Gets the addresses of all instances, if the cloud does not list them.
    pub async fn find_addresses(&self, observation: &mut Observation) {
        self.find_matching_addresses(observation, |_| true).await;
    }

    /// Gets the addresses of nodes that do not respond to Slurm, which may have a wrong address.
    pub(super) async fn find_silent_addresses(&self, observation: &mut Observation) {
        let silent = observation.slurm.iter().flatten().filter(|(_, known)| !known.state.is_up());
        let silent: BTreeSet<NodeName> = silent.map(|(name, _)| name.clone()).collect();
        let node_of = |one: &Instance| self.site.identity.node_of(one);
        self.find_matching_addresses(observation, |one| {
            node_of(one).is_some_and(|node| silent.contains(&node))
        })
        .await;
    }

    async fn find_matching_addresses(
        &self,
        observation: &mut Observation,
        wanted: impl Fn(&Instance) -> bool,
    ) {
        let instances = observation.fleet.instances().filter(|instance| wanted(instance));
        match addresses::look_up(self.tools.cloud, instances).await {
            Ok(found) => observation.fleet.set_addresses(&found),
            Err(error) => {
                let text = format!("cannot get the addresses of instances: {error}");
                observation.warnings.push(text);
            }
        }
    }

    /// Gets the instances that the nodes' files name and that the listing lacks; they may lack the cluster's tags. Returns
    /// those that could not be observed.
    pub(super) async fn observe_named(
        &self,
        mut hidden: Vec<(NodeName, InstanceId)>,
        observation: &mut Observation,
        until: Instant,
    ) -> BTreeMap<NodeName, Error> {
        hidden.retain(|(_, id)| observation.fleet.get(id).is_none());
        let mut answers = stream::iter(hidden)
            .map(|(node, id)| async move { (node, self.get(&id, until).await) })
            .buffer_unordered(self.site.policies.concurrency.max(1));
        let (mut named, mut unseen) = (Vec::new(), BTreeMap::new());
        while let Some((node, answer)) = answers.next().await {
            match answer {
                Ok(instance) => named.push((node, instance)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    unseen.insert(node, error);
                }
            }
        }
        drop(answers);
        let fleet = std::mem::take(&mut observation.fleet);
        observation.fleet = fleet.with_named(&self.site.identity, named);
        unseen
    }

    /// Gets one instance, with retries.
    async fn get(&self, id: &InstanceId, until: Instant) -> Result<Instance, Error> {
        self.again(until, ApiOperation::Get, || self.tools.cloud.get(id)).await
    }

    /// True if the cloud says that an instance is gone.
    pub(super) async fn is_gone(&self, id: &InstanceId, until: Instant) -> bool {
        match self.get(id, until).await {
            Ok(instance) => instance.state.is_leaving(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        }
    }

    async fn list(&self, until: Instant) -> Result<Vec<Instance>, Error> {
        let filter = InstanceFilter::tagged(self.site.identity.tags());
        self.again(until, ApiOperation::List, || self.tools.cloud.list(&filter)).await
    }

    /// Sends a read request to the cloud, with retries.
    async fn again<T, F: Future<Output = Result<T, Error>>>(
        &self,
        until: Instant,
        operation: ApiOperation,
        ask: impl Fn() -> F,
    ) -> Result<T, Error> {
        let unavailable = |why| Error::new(ErrorKind::Unavailable, operation).because(why);
        let mut cancel = self.tools.cancel.clone();
        let mut last = None;
        let mut retry = Retry::at_most(MOST_TRIES);
        loop {
            let ended = async {
                cancel.cancelled().await;
                sleep(LAST_ANSWER).await;
            };
            let answer = tokio::select! {
                biased;
                answer = timeout_at(until, ask()) => answer,
                () = ended => return Err(unavailable("cancelled")),
            };
            let error = match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => error,
                // The earlier error says more.
                Err(_) => break,
            };
            let in_time = |pause: &Duration| {
                Instant::now() + *pause < until && !self.tools.cancel.is_cancelled()
            };
            let Some(pause) = retry.pause(&error).filter(in_time) else {
                return Err(error);
            };
            last = Some(error);
            tokio::select! {
                () = cancel.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
        Err(last.unwrap_or_else(|| unavailable("no answer in time")))
    }

    async fn query_slurm(&self, asked: SlurmQuery) -> slurmctl::Result<SlurmResponse> {
        let nodes = self.tools.slurm.nodes(None).await?;
        let nodes = nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        let (jobs, trouble) = match asked {
            SlurmQuery::Nodes => (None, None),
            SlurmQuery::NodesAndJobs => (Some(self.tools.slurm.jobs(JobFilter::All).await?), None),
            SlurmQuery::NodesAndPerhapsJobs => match self.tools.slurm.jobs(JobFilter::All).await {
                Ok(jobs) => (Some(jobs), None),
                Err(error) => (None, Some(error)),
            },
        };
        Ok(SlurmResponse { nodes, jobs, trouble })
    }

    /// Sends a request to Slurm, with retries.
    pub(super) async fn retry_slurm(
        &self,
        observation: &mut Observation,
        asked: SlurmQuery,
        until: Instant,
    ) {
        for _ in 0..MOST_ASKED {
            if observation.slurm.is_some() || self.tools.cancel.is_cancelled() {
                return;
            }
            let Ok(answer) = timeout_at(until, self.query_slurm(asked)).await else {
                return;
            };
            if let Ok(SlurmResponse { nodes, jobs, .. }) = answer {
                (observation.slurm, observation.jobs) = (Some(nodes), jobs);
            }
        }
    }
}

/// The nodes and jobs of Slurm's response.
fn nodes_and_jobs(
    answer: slurmctl::Result<SlurmResponse>,
    warnings: &mut Vec<String>,
) -> (Option<BTreeMap<NodeName, Node>>, Option<Vec<Job>>) {
    match answer {
        Ok(SlurmResponse { nodes, jobs, trouble }) => {
            warnings.extend(trouble.map(|error| format!("the jobs could not be listed: {error}")));
            (Some(nodes), jobs)
        }
        Err(error) => {
            warnings.push(format!("slurmctld does not answer: {error}"));
            (None, None)
        }
    }
}
