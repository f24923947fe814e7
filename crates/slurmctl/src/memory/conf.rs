//! slurm.conf with other nodes in it, and what slurmctld makes of that.

use super::{
    node::{NodeRecord, Seconds},
    settings::NodeSpec,
    world::World,
};
use crate::{JobId, JobState};
use hostlist::NodeName;

impl World {
    /// Reads slurm.conf again; true if slurmctld survives that. Before 23.11 it dies if there are other
    /// nodes in it than before.
    pub(super) fn reconfigure(&mut self, now: Seconds) -> bool {
        let before = self.nodes.iter().map(NodeRecord::name);
        let same = self.settings.nodes.iter().map(|spec| &spec.name).eq(before);
        self.dead = !same && !self.settings.version.reconfigures_nodes();
        if !self.dead {
            self.read_conf(now);
        }
        !self.dead
    }

    /// Takes the nodes that slurm.conf has now; those that stay are as they were.
    pub(super) fn read_conf(&mut self, now: Seconds) {
        let mut before = std::mem::take(&mut self.nodes);
        for spec in self.settings.nodes.clone() {
            let place = before.iter().position(|node| *node.name() == spec.name);
            let node = place.map(|place| before.swap_remove(place));
            self.nodes.push(match node {
                Some(node) => NodeRecord { spec, ..node },
                None => NodeRecord::new(spec),
            });
        }
        for node in before {
            self.fail_jobs(node.name(), now);
        }
        self.dirty = true;
    }

    /// Jobs on a node that is there no more are not requeued.
    fn fail_jobs(&mut self, node: &NodeName, now: Seconds) {
        let there = |id: &JobId| {
            self.jobs.get(id).is_some_and(|job| job.is_placed() && job.nodes.contains(node))
        };
        let ids: Vec<JobId> = self.jobs.keys().copied().filter(there).collect();
        for id in ids {
            self.release(id, now);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.state = JobState::NodeFail;
                job.end = None;
            }
        }
    }

    /// Writes other nodes into slurm.conf, which slurmctld has not read yet.
    pub(super) fn write_conf(&mut self, nodes: Vec<NodeSpec>) {
        self.settings.nodes = nodes;
    }
}
