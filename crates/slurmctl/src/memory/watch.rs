//! Who is told of what is done to nodes.

use super::world::World;
use crate::{Job, JobState, Node, NodeAction};
use hostlist::NodeName;
use std::{fmt, sync::Arc};

/// A node at the very moment before its state is changed by a call.
#[derive(Debug)]
#[non_exhaustive]
pub struct StateChange<'a> {
    /// The node, as it is before.
    pub node: &'a Node,
    /// What is done to it.
    pub action: NodeAction,
    /// The jobs that run on it.
    pub running: &'a [Job],
}

/// Who is told.
#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<dyn Fn(&StateChange<'_>) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl World {
    pub(super) fn tell_watcher(&self, name: &NodeName, action: NodeAction) {
        let known = self.nodes.iter().find(|node| node.name() == name);
        let (Some(Watcher(watcher)), Some(node)) = (&self.watcher, known) else {
            return;
        };
        let running: Vec<Job> = self
            .jobs
            .values()
            .filter(|job| job.state == JobState::Running && job.nodes.contains(name))
            .map(super::job::JobRecord::show)
            .collect();
        let node = &node.show(self.settings.epoch);
        watcher(&StateChange { node, action, running: &running });
    }
}
