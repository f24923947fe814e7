//! The controller in memory: what a test does to it.

use super::{
    settings::{Call, JobSpec, NodeSpec, Registration, Settings},
    watch::{StateChange, Watcher},
    world::World,
};
use crate::{Job, JobId, Node};
use hostlist::NodeName;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A controller in memory; clones are the same controller.
///
/// Besides [`Controller`](crate::Controller) it has what a simulation needs. It starts no programs:
/// [`tick`](Self::tick) says which ones slurmctld would start, and the simulation runs them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// use slurmctl::memory::{Call, JobSpec, MemorySlurm, Registration, Settings};
/// use slurmctl::JobState;
/// use std::time::Duration;
///
/// let slurm = MemorySlurm::new(Settings::cloud(&"n[1-4]".parse()?));
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
    /// A controller without jobs. Has to be called inside of a tokio run time, whose clock it uses.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Mutex::new(World::new(settings, Instant::now()))))
    }

    /// Queues a job.
    #[must_use]
    pub fn submit_job(&self, spec: JobSpec) -> JobId {
        self.with(|world, now| world.queue(spec, now))
    }

    /// Does what is due now, and says which programs slurmctld would start.
    ///
    /// There is one pass of scheduler and power saving a second, and a tick in between does nothing.
    #[must_use]
    pub fn tick(&self) -> Vec<Call> {
        self.with(World::pass)
    }

    /// When the next tick that does anything is due, as things are; `None` if nothing will happen by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Instant> {
        self.with(|world, now| {
            let due = world.start + Duration::from_secs(world.next(now)?);
            Some(world.restarting.map_or(due, |back| due.max(back)))
        })
    }

    /// slurmd registers from a machine with this address, booted at this time.
    #[must_use]
    pub fn register(&self, node: &NodeName, address: &str, booted: Instant) -> Registration {
        self.with(|world, now| {
            let boot = world.seconds(booted);
            world.register(node.as_str(), address, boot, now)
        })
    }

    /// The machine of a node is gone; slurmctld notices by and by.
    pub fn lost(&self, node: &NodeName) {
        self.with(|world, now| world.lose(node, now));
    }

    /// From now on slurmctld does not answer, or answers again.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.with(|world, _| {
            world.unreachable = unreachable;
            world.dirty = true;
        });
    }

    /// The next calls, so many of them, are carried out, but their answers get lost: the caller does not
    /// learn what came of them.
    pub fn lose_answers(&self, calls: usize) {
        self.with(|world, _| world.lost_answers = calls);
    }

    /// slurm.conf has these nodes from now on; slurmctld reads it when it is reconfigured or restarted.
    ///
    /// Jobs on nodes that are gone then fail. Before 23.11 slurmctld dies of being reconfigured with
    /// other nodes, and is away until it is restarted.
    pub fn set_conf_nodes(&self, nodes: Vec<NodeSpec>) {
        self.with(|world, _| world.write_conf(nodes));
    }

    /// slurmctld dies and is started again with what it last saved: it has forgotten that it asked
    /// for the nodes that are powering up, and asks again.
    pub fn crash(&self) {
        self.with(|world, _| world.forget_resumes());
    }

    /// Has every change of a node's state by a call told to this watcher from now on, at the very
    /// moment before it is made. The watcher must not ask this controller itself.
    pub fn watch(&self, watcher: impl Fn(&StateChange<'_>) + Send + Sync + 'static) {
        self.world().watcher = Some(Watcher(Arc::new(watcher)));
    }

    /// All nodes as they are now, without latency or trouble.
    #[must_use]
    pub fn all_nodes(&self) -> Vec<Node> {
        self.with(|world, _| {
            world.nodes.iter().map(|node| node.show(world.settings.epoch)).collect()
        })
    }

    /// One node as it is now.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Node> {
        self.all_nodes().into_iter().find(|node| node.name.as_str() == name)
    }

    /// All jobs there ever were, as they are now.
    #[must_use]
    pub fn all_jobs(&self) -> Vec<Job> {
        self.with(|world, _| world.jobs.values().map(super::job::JobRecord::show).collect())
    }

    /// One job as it is now.
    #[must_use]
    pub fn job(&self, id: JobId) -> Option<Job> {
        self.with(|world, _| world.jobs.get(&id).map(super::job::JobRecord::show))
    }

    /// Something done to the world at this second.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut World, u64) -> T) -> T {
        let mut world = self.world();
        let now = world.seconds(Instant::now());
        work(&mut world, now)
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
