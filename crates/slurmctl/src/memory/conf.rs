//! slurmctld with a changed slurm.conf.

use super::{
    job::JobRecord,
    node::{NodeRecord, Seconds},
    world::World,
};
use crate::{JobId, JobState};
use hostlist::NodeName;

impl World {
    /// Reads slurm.conf again; false if slurmctld dies, which it does before 23.11 if the set of nodes has changed.
    pub(super) fn reconfigure(&mut self, now: Seconds) -> bool {
        let before = self.nodes.iter().map(NodeRecord::name);
        let same = self.settings.nodes.iter().map(|spec| &spec.name).eq(before);
        self.dead = !same && !self.settings.version.reconfigures_nodes();
        if !self.dead {
            self.read_conf(now);
        }
        !self.dead
    }

    /// Takes over the nodes of slurm.conf. Nodes that stay keep their state; jobs on the others fail.
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

    fn fail_jobs(&mut self, node: &NodeName, now: Seconds) {
        let there = |job: &&JobRecord| job.is_placed() && job.nodes.contains(node);
        let ids: Vec<JobId> = self.jobs.values().filter(there).map(|job| job.id).collect();
        for id in ids {
            self.release(id, now);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.state = JobState::NodeFail;
                job.end = None;
            }
        }
    }
}
