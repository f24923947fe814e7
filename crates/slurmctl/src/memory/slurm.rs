//! The controller in memory, as tests use it.

use super::{
    job::JobRecord,
    settings::{Call, JobSpec, MemorySlurmSettings, NodeSpec, Registration},
    watch::{StateChange, Watcher},
    world::World,
};
use crate::{Job, JobId, Node};
use hostlist::NodeName;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A slurmctld in memory, for tests and simulations; clones share it.
///
/// It implements [`Controller`](crate::Controller). It starts no programs: [`tick`](Self::tick) returns those that
/// slurmctld would start, and the simulation runs them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// use slurmctl::memory::{Call, JobSpec, MemorySlurm, Registration, MemorySlurmSettings};
/// use slurmctl::JobState;
/// use std::time::Duration;
///
/// let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n[1-4]".parse()?));
/// let job = slurm.submit_job(JobSpec::new(2, Duration::from_secs(60)));
/// let [Call::Resume { nodes, .. }] = &slurm.tick()[..] else { unreachable!() };
/// assert_eq!(nodes.to_string(), "n[1-2]");
/// for node in nodes.node_names()? {
///     let up = slurm.register(&node, "10.0.0.1", tokio::time::Instant::now());
///     assert_eq!(up, Registration::Accepted);
/// }
/// tokio::time::advance(Duration::from_secs(1)).await;
/// assert!(slurm.tick().is_empty());
/// assert_eq!(slurm.job(job).unwrap().state, JobState::Running);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct MemorySlurm(Arc<Mutex<World>>);

impl MemorySlurm {
    /// A controller without jobs; must be called in a tokio runtime, whose clock it uses.
    #[must_use]
    pub fn new(settings: MemorySlurmSettings) -> Self {
        Self(Arc::new(Mutex::new(World::new(settings, Instant::now()))))
    }

    /// Submits a job.
    #[must_use]
    pub fn submit_job(&self, spec: JobSpec) -> JobId {
        self.with(|world, now| world.queue(spec, now))
    }

    /// Runs the scheduler and power saving, at most once a second, and returns the programs that slurmctld starts.
    #[must_use]
    pub fn tick(&self) -> Vec<Call> {
        self.with(World::pass)
    }

    /// When the next tick that does anything is due; `None` if nothing is.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        self.with(|world, now| {
            let due = world.start + Duration::from_secs(world.next(now)?);
            Some(world.restarting.map_or(due, |back| due.max(back)))
        })
    }

    /// Registers a node from a machine with this address and boot time.
    #[must_use]
    pub fn register(&self, node: &NodeName, address: &str, booted: Instant) -> Registration {
        self.with(|world, now| {
            let boot = world.seconds(booted);
            world.register(node.as_str(), address, boot, now)
        })
    }

    /// Removes the machine of a node; slurmctld notices after `SlurmdTimeout`.
    pub fn lost(&self, node: &NodeName) {
        self.with(|world, now| world.lose(node, now));
    }

    /// Makes slurmctld unreachable, or reachable again.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.with(|world, _| {
            world.unreachable = unreachable;
            world.dirty = true;
        });
    }

    /// Loses the answers of the next calls, which are carried out all the same.
    pub fn lose_answers(&self, calls: usize) {
        self.with(|world, _| world.lost_answers = calls);
    }

    /// Writes other nodes into slurm.conf; slurmctld reads it when it is reconfigured or restarted.
    ///
    /// Jobs on removed nodes then fail. Before 23.11 a reconfigure with other nodes kills slurmctld until it is restarted.
    pub fn set_conf_nodes(&self, nodes: Vec<NodeSpec>) {
        self.with(|world, _| world.settings.nodes = nodes);
    }

    /// Crashes slurmctld and restarts it from its saved state: it resumes nodes that were powering up once more.
    pub fn crash(&self) {
        self.with(|world, _| world.forget_resumes());
    }

    /// Calls `watcher` before every change of a node's state by a call. The watcher must not use this controller.
    pub fn watch(&self, watcher: impl Fn(&StateChange<'_>) + Send + Sync + 'static) {
        self.world().watcher = Some(Watcher(Arc::new(watcher)));
    }

    /// All nodes, without latency or faults.
    #[must_use]
    pub fn all_nodes(&self) -> Vec<Node> {
        self.with(|world, _| {
            world.nodes.iter().map(|node| node.show(world.settings.epoch)).collect()
        })
    }

    /// One node, without latency or faults.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        self.all_nodes().into_iter().find(|node| node.name.as_str() == name)
    }

    /// All jobs, finished or not.
    #[must_use]
    pub fn all_jobs(&self) -> Vec<Job> {
        self.with(|world, _| world.jobs.values().map(JobRecord::show).collect())
    }

    /// One job, finished or not.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<Job> {
        self.with(|world, _| world.jobs.get(&id).map(JobRecord::show))
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut World, u64) -> T) -> T {
        let mut world = self.world();
        let now = world.seconds(Instant::now());
        work(&mut world, now)
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
