//! One pass of power saving.

use super::{
    node::{NodeRecord, Power, Reboot, Seconds},
    settings::Call,
    world::World,
};
use crate::{JobNodes, JobState, ResumeRequest};
use hostlist::Hostlist;
use slurmconf::SlurmVersion;

impl World {
    pub(super) fn power_work(&mut self, now: Seconds) {
        self.issue_reboots(now);
        let resumed = self.resume(now);
        let suspended = self.suspend(now);
        self.finish_suspends(now);
        let failed = self.fail_resumes(now);
        if !suspended.is_empty() {
            self.calls.push(Call::Suspend { nodes: suspended });
        }
        if !resumed.is_empty() {
            let request = self.request(&resumed);
            self.calls.push(Call::Resume { nodes: resumed, request });
        }
        if !failed.is_empty() {
            self.calls.push(Call::ResumeFail { nodes: failed });
        }
    }

    fn issue_reboots(&mut self, now: Seconds) {
        let mut nodes = Hostlist::new();
        for node in &mut self.nodes {
            let ready =
                node.down || (node.is_idle() && !node.not_responding && node.power == Power::Up);
            if node.reboot == Some(Reboot::Requested) && ready {
                node.reboot = Some(Reboot::Issued { since: now });
                node.down = true;
                node.append_reason("reboot issued", now);
                nodes.push(node.name().as_str());
            }
        }
        if !nodes.is_empty() {
            self.calls.push(Call::Reboot { nodes });
        }
    }

    /// Resumes powered-down nodes that have a job or were asked for.
    fn resume(&mut self, now: Seconds) -> Hostlist {
        let mut resumed = Hostlist::new();
        for node in &mut self.nodes {
            if node.power == Power::Down && (node.wants_up || !node.jobs.is_empty()) {
                if self.settings.resume_rate.is_some_and(|most| resumed.len() >= most) {
                    self.dirty = true;
                    break;
                }
                node.wants_up = false;
                node.power = Power::ComingUp { since: now };
                node.not_responding = true;
                (node.lost, node.missed) = (None, None);
                resumed.push(node.name().as_str());
            }
        }
        resumed
    }

    /// The contents of the resume file for these nodes.
    fn request(&self, resumed: &Hostlist) -> ResumeRequest {
        let mut request = ResumeRequest::new(resumed.clone());
        for job in self.jobs.values().filter(|job| job.state == JobState::Configuring) {
            let nodes: Hostlist =
                job.nodes.iter().filter(|name| resumed.contains(name.as_str())).collect();
            if nodes.is_empty() {
                continue;
            }
            let mut group = JobNodes::new(job.id, nodes);
            // The resume file of 22.05 has only the nodes to resume.
            if self.settings.version >= SlurmVersion::new(23, 2) {
                group.allocated = job.nodes.iter().collect();
                group.features.clone_from(&job.spec.feature);
                group.partition = Some(job.spec.partition.clone());
            }
            request.jobs.push(group);
        }
        request
    }

    /// Suspends nodes that were asked to power down or have been idle for `SuspendTime`.
    fn suspend(&mut self, now: Seconds) -> Hostlist {
        let time = self.settings.suspend_time;
        let idle_on_suspend = self.settings.idle_on_node_suspend;
        let mut suspended = Hostlist::new();
        for node in &mut self.nodes {
            let idle =
                node.last_busy.zip(time).is_some_and(|(busy, time)| now > busy + time.as_secs());
            // Slurm would suspend persistent nodes, too; clusters exclude them.
            if !node.is_suspendable() || !(node.wants_down || (idle && node.spec.cloud)) {
                continue;
            }
            if node.wants_down || idle_on_suspend {
                node.drain = false;
            }
            if idle_on_suspend {
                node.down = false;
            }
            node.wants_down = false;
            node.not_responding = false;
            (node.lost, node.missed) = (None, None);
            node.power = Power::GoingDown { since: now };
            suspended.push(node.name().as_str());
        }
        suspended
    }

    fn finish_suspends(&mut self, now: Seconds) {
        let timeout = self.settings.suspend_timeout.as_secs();
        let resets = self.settings.version.resets_addresses();
        for node in &mut self.nodes {
            if let Power::GoingDown { since } = node.power
                && now > since + timeout
            {
                node.switch_off(resets);
                self.dirty = true;
            }
        }
    }

    fn fail_resumes(&mut self, now: Seconds) -> Hostlist {
        let timeout = self.settings.resume_timeout.as_secs();
        let old = !self.settings.appends_reasons();
        let mut failed = Hostlist::new();
        for node in &mut self.nodes {
            let Power::ComingUp { since } = node.power else { continue };
            if now <= since + timeout {
                continue;
            }
            node.power = Power::Down;
            node.reboot = None;
            node.down = true;
            node.drain = false;
            node.wants_down = false;
            node.last_busy = None;
            node.instance_id = None;
            node.topology = None;
            node.not_responding = old;
            node.explain_down("ResumeTimeout reached", !old, now);
            failed.push(node.name().as_str());
        }
        for name in failed.node_names().unwrap_or_default() {
            self.kill_jobs(&name, now);
            // Slurm forgets when the node was last busy, and so never suspends it.
            if let Some(node) = self.node(name.as_str()) {
                node.last_busy = None;
            }
        }
        failed
    }
}

impl NodeRecord {
    /// Ends the power-down, after `SuspendTimeout` or when it is cut short.
    pub(super) fn switch_off(&mut self, resets_address: bool) {
        self.power = Power::Down;
        self.last_busy = None;
        self.boot_time = None;
        self.topology = None;
        if self.spec.cloud && resets_address {
            self.address = self.name().to_string();
            self.hostname = self.name().to_string();
            self.instance_id = None;
        }
    }
}
