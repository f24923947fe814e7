//! Observing state changes.

use super::{job::JobRecord, world::World};
use crate::{Job, JobState, Node, NodeAction};
use hostlist::NodeName;
use std::{fmt, sync::Arc};

/// A node just before a call changes its state.
#[derive(Debug)]
#[non_exhaustive]
pub struct StateChange<'a> {
    /// The node before the change.
    pub node: &'a Node,
    /// The change.
    pub action: NodeAction,
    /// The jobs that run on it.
    pub running: &'a [Job],
}

#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<dyn Fn(&StateChange<'_>) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl World {
    pub(super) fn notify_watcher(&self, name: &NodeName, action: NodeAction) {
        let known = self.nodes.iter().find(|node| node.name() == name);
        let (Some(Watcher(watcher)), Some(node)) = (&self.watcher, known) else {
            return;
        };
        let running: Vec<Job> = self
            .jobs
            .values()
            .filter(|job| job.state == JobState::Running && job.nodes.contains(name))
            .map(JobRecord::show)
            .collect();
        let node = &node.show(self.settings.epoch);
        watcher(&StateChange { node, action, running: &running });
    }
}
