//! The state of [`MemorySlurm`](super::MemorySlurm).

use super::{
    job::JobRecord,
    node::{NodeRecord, Power, Reboot, Seconds},
    settings::{Call, JobSpec, MemorySlurmSettings},
    watch::Watcher,
};
use crate::{Error, ErrorKind, JobId, JobState};
use hostlist::NodeName;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The controller's state, which changes by passes (at most one a second) and by calls.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: MemorySlurmSettings,
    pub(super) start: Instant,
    /// In the order of slurm.conf, in which Slurm allocates nodes.
    pub(super) nodes: Vec<NodeRecord>,
    pub(super) jobs: BTreeMap<JobId, JobRecord>,
    /// The second of the last pass.
    last_pass: Option<Seconds>,
    /// True if something has changed since.
    pub(super) dirty: bool,
    pub(super) unreachable: bool,
    /// True if slurmctld has died and was not restarted.
    pub(super) dead: bool,
    /// How many more answers are lost.
    pub(super) lost_answers: usize,
    /// When a restart ends.
    pub(super) restarting: Option<Instant>,
    next_job: u32,
    /// The programs to start at the end of the pass.
    pub(super) calls: Vec<Call>,
    pub(super) watcher: Option<Watcher>,
}

/// Slurm's error for an unknown node.
pub(super) fn unknown_node(tried: &str) -> Error {
    Error::new(ErrorKind::NotFound, tried).because("Invalid node name specified")
}

impl World {
    pub(super) fn new(settings: MemorySlurmSettings, start: Instant) -> Self {
        let nodes = settings.nodes.iter().cloned().map(NodeRecord::new).collect();
        Self {
            settings,
            start,
            nodes,
            jobs: BTreeMap::new(),
            last_pass: None,
            dirty: true,
            unreachable: false,
            dead: false,
            lost_answers: 0,
            restarting: None,
            next_job: 1,
            calls: Vec::new(),
            watcher: None,
        }
    }

    pub(super) fn seconds(&self, at: Instant) -> Seconds {
        at.saturating_duration_since(self.start).as_secs()
    }

    /// True while slurmctld does not answer.
    pub(super) fn is_unreachable(&self, now: Instant) -> bool {
        self.unreachable || self.dead || self.restarting.is_some_and(|back| now < back)
    }

    /// True if the answer of this call is lost.
    pub(super) fn loses_answer(&mut self) -> bool {
        let lost = self.lost_answers > 0;
        self.lost_answers = self.lost_answers.saturating_sub(1);
        lost
    }

    pub(super) fn node(&mut self, name: &str) -> Option<&mut NodeRecord> {
        self.nodes.iter_mut().find(|node| node.name().as_str() == name)
    }

    pub(super) fn queue(&mut self, spec: JobSpec, now: Seconds) -> JobId {
        let id = JobId::new(self.next_job);
        self.next_job = self.next_job.saturating_add(1);
        self.jobs.insert(id, JobRecord::new(id, spec, now));
        self.dirty = true;
        id
    }

    /// Does what is due at this second and returns the programs to start.
    pub(super) fn pass(&mut self, now: Seconds) -> Vec<Call> {
        let done = self.last_pass.is_some_and(|last| last >= now);
        if done || self.is_unreachable(Instant::now()) {
            return Vec::new();
        }
        self.last_pass = Some(now);
        self.dirty = false;
        self.end_jobs(now);
        self.check_nodes(now);
        self.schedule(now);
        self.power_work(now);
        self.start_jobs(now);
        let calls = std::mem::take(&mut self.calls);
        self.dirty |= !calls.is_empty();
        calls
    }

    /// The second of the next pass that changes anything, if nothing else happens.
    pub(super) fn next(&self, now: Seconds) -> Option<Seconds> {
        if self.unreachable || self.dead {
            return None;
        }
        let soon = self.last_pass.map_or(now, |last| now.max(last + 1));
        if self.dirty {
            return Some(soon);
        }
        let nodes = self.nodes.iter().flat_map(|node| self.due(node)).flatten();
        let jobs = self.jobs.values().filter_map(|job| {
            let pending = job.state == JobState::Pending && job.begin > 0;
            if pending {
                Some(job.begin)
            } else {
                job.end.filter(|_| job.state == JobState::Running)
            }
        });
        nodes
            .chain(jobs)
            .filter(|due| self.last_pass.is_none_or(|last| *due > last))
            .min()
            .map(|due| due.max(soon))
    }

    /// When the timers of a node expire.
    fn due(&self, node: &NodeRecord) -> [Option<Seconds>; 4] {
        // Slurm's comparisons are strict: one second more than the setting.
        let after = |since: Seconds, time: Duration| since + time.as_secs() + 1;
        let settings = &self.settings;
        let power = match node.power {
            Power::Up | Power::Down => None,
            Power::GoingDown { since } => Some(after(since, settings.suspend_timeout)),
            Power::ComingUp { since } => Some(after(since, settings.resume_timeout)),
        };
        let idle = node.last_busy.filter(|_| node.is_suspendable()).zip(settings.suspend_time);
        let reboot = match node.reboot {
            Some(Reboot::Issued { since }) => Some(after(since, settings.resume_timeout)),
            Some(Reboot::Requested) | None => None,
        };
        let silence =
            if node.not_responding { settings.slurmd_timeout } else { settings.slurmd_timeout / 2 };
        let lost = node.silent_since().filter(|_| node.power == Power::Up && !node.down);
        [
            power,
            idle.map(|(busy, time)| after(busy, time)),
            reboot,
            lost.map(|since| after(since, silence)),
        ]
    }

    /// Sets nodes down that do not respond or whose reboot takes too long.
    fn check_nodes(&mut self, now: Seconds) {
        let timeout = self.settings.slurmd_timeout.as_secs();
        let patience = self.settings.resume_timeout.as_secs();
        let appends = self.settings.appends_reasons();
        let mut gone = Vec::new();
        for node in &mut self.nodes {
            if let Some(Reboot::Issued { since }) = node.reboot
                && now > since + patience
            {
                node.reboot = None;
                node.drain = false;
                node.down = true;
                node.append_reason("reboot timed out", now);
                continue;
            }
            let watched = node.power == Power::Up && node.reboot.is_none();
            let Some(lost) = node.silent_since().filter(|_| watched) else {
                continue;
            };
            node.not_responding |= now > lost + timeout / 2;
            if now > lost + timeout && !node.down {
                node.down = true;
                node.explain_down("Not responding", appends, now);
                gone.push(node.name().clone());
            }
        }
        for name in gone {
            self.kill_jobs(&name, now);
        }
    }

    /// Removes the machine of a node.
    pub(super) fn lose(&mut self, name: &NodeName, now: Seconds) {
        if let Some(node) = self.node(name.as_str()) {
            node.lost.get_or_insert(now);
            self.dirty = true;
        }
    }

    /// Restarts slurmctld from its saved state: nodes that were powering up are resumed again.
    pub(super) fn forget_resumes(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.power, Power::ComingUp { .. }) {
                node.power = Power::Down;
                node.wants_up = node.jobs.is_empty();
                node.not_responding = false;
            }
        }
        self.dirty = true;
    }
}
