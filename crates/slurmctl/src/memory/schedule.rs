//! The scheduler.

use super::{
    job::JobRecord,
    node::{NodeRecord, Power, Reboot, Seconds},
    settings::{Call, JobSpec},
    world::World,
};
use crate::{JobId, JobState};
use hostlist::NodeName;
use slurmconf::SlurmVersion;

impl World {
    /// Completes jobs whose run time is over.
    pub(super) fn end_jobs(&mut self, now: Seconds) {
        let ended = |job: &&JobRecord| {
            job.state == JobState::Running && job.end.is_some_and(|end| end <= now)
        };
        let ids: Vec<JobId> = self.jobs.values().filter(ended).map(|job| job.id).collect();
        for id in ids {
            self.release(id, now);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.state = JobState::Completed;
            }
            self.dirty = true;
        }
    }

    /// Allocates nodes to pending jobs, oldest first.
    pub(super) fn schedule(&mut self, now: Seconds) {
        let waiting = |job: &&JobRecord| job.state == JobState::Pending && job.begin <= now;
        let ids: Vec<JobId> = self.jobs.values().filter(waiting).map(|job| job.id).collect();
        for id in ids {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let Some(nodes) = choose(&self.nodes, &job.spec) else {
                job.reason = Some("Resources");
                continue;
            };
            job.reason = None;
            job.state = JobState::Configuring;
            job.nodes.clone_from(&nodes);
            let (cpus, reboot) = (job.spec.cpus, job.spec.reboot);
            for name in &nodes {
                let Some(node) = self.node(name.as_str()) else { continue };
                node.jobs.insert(id, cpus.unwrap_or(node.spec.cpus));
                // An old reason is cleared by the next job.
                node.reason = None;
            }
            if reboot {
                self.reboot_for(id, &nodes, now);
            }
            self.dirty = true;
        }
    }

    /// Reboots the nodes of a job with `--reboot`, where this release does so.
    fn reboot_for(&mut self, id: JobId, nodes: &[NodeName], now: Seconds) {
        let version = self.settings.version;
        let any_cloud =
            self.nodes.iter().any(|node| node.spec.cloud && nodes.contains(node.name()));
        if any_cloud && version >= SlurmVersion::new(23, 2) {
            return;
        }
        let marks = version >= SlurmVersion::new(26, 5);
        for name in nodes {
            let Some(node) = self.node(name.as_str()) else { continue };
            node.power = Power::ComingUp { since: now };
            node.not_responding = true;
            if marks {
                node.reboot = Some(Reboot::Issued { since: now });
            }
        }
        let nodes = nodes.iter().collect();
        self.calls.push(if marks {
            Call::Reboot { nodes }
        } else {
            Call::RebootJob { nodes, job: id }
        });
    }

    /// Starts jobs whose nodes are all up.
    pub(super) fn start_jobs(&mut self, now: Seconds) {
        let nodes = &self.nodes;
        let needs_address = self.settings.looks_for_nodes();
        let up = |name: &NodeName| {
            let Some(node) = nodes.iter().find(|node| node.name() == name) else { return false };
            let reached = !needs_address || node.is_reached();
            node.power == Power::Up && !node.not_responding && reached
        };
        for job in self.jobs.values_mut().filter(|job| job.state == JobState::Configuring) {
            if job.nodes.iter().all(up) {
                job.state = JobState::Running;
                job.end = Some(now + job.spec.run_time.as_secs());
                self.dirty = true;
            }
        }
    }

    /// Requeues or fails the jobs of a node.
    pub(super) fn kill_jobs(&mut self, node: &NodeName, now: Seconds) {
        self.kill(node, now, JobRecord::is_placed);
    }

    /// Requeues or fails the jobs that ran on a machine that was replaced.
    pub(super) fn kill_orphans(&mut self, node: &NodeName, now: Seconds) {
        self.kill(node, now, |job| job.state == JobState::Running);
    }

    fn kill(&mut self, node: &NodeName, now: Seconds, which: impl Fn(&JobRecord) -> bool) {
        let there = |job: &&JobRecord| which(job) && job.nodes.contains(node);
        let ids: Vec<JobId> = self.jobs.values().filter(there).map(|job| job.id).collect();
        let begin = now + self.settings.requeue_delay.as_secs();
        for id in ids {
            self.release(id, now);
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            job.nodes.clear();
            job.end = None;
            if job.spec.requeue {
                job.state = JobState::Pending;
                job.reason = Some("BeginTime");
                job.begin = begin;
                job.restarts = job.restarts.saturating_add(1);
            } else {
                job.state = JobState::NodeFail;
            }
        }
        self.dirty = true;
    }

    /// Frees the nodes of a job.
    pub(super) fn release(&mut self, id: JobId, now: Seconds) {
        for node in &mut self.nodes {
            if node.jobs.remove(&id).is_some() {
                node.last_busy = Some(now);
            }
        }
    }
}

/// The nodes for a job: first those that are up, then those powering up, then the others.
fn choose(nodes: &[NodeRecord], spec: &JobSpec) -> Option<Vec<NodeName>> {
    let fits = |node: &&NodeRecord| {
        let wanted = spec.wanted.is_empty() || spec.wanted.contains(node.name());
        let feature = spec.feature.as_ref().is_none_or(|name| node.spec.features.contains(name));
        wanted && feature && node.spec.partitions.contains(&spec.partition) && node.takes(spec.cpus)
    };
    let mut fitting: Vec<&NodeRecord> = nodes.iter().filter(fits).collect();
    fitting.sort_by_key(|node| match node.power {
        Power::Up => 0,
        Power::ComingUp { .. } => 1,
        Power::Down | Power::GoingDown { .. } => 2,
    });
    let count = spec.nodes.max(spec.wanted.len());
    let chosen = fitting.get(..count)?;
    Some(chosen.iter().map(|node| node.name().clone()).collect())
}
