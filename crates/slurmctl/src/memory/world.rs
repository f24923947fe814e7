//! Everything that a controller in memory knows.

use super::{
    job::JobRecord,
    node::{NodeRecord, Power, Reboot, Seconds},
    settings::{Call, JobSpec, Settings},
    watch::Watcher,
};
use crate::{Error, ErrorKind, JobId, JobState};
use hostlist::NodeName;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// The controller's state; it changes by passes, one a second at most, and by what it is told.
#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: Settings,
    pub(super) start: Instant,
    /// In the order of slurm.conf, which is the order that Slurm prefers nodes in.
    pub(super) nodes: Vec<NodeRecord>,
    pub(super) jobs: BTreeMap<JobId, JobRecord>,
    /// The second of the last pass.
    last_pass: Option<Seconds>,
    /// Something was told since.
    pub(super) dirty: bool,
    pub(super) unreachable: bool,
    /// slurmctld has died, and waits for somebody to start it.
    pub(super) dead: bool,
    /// How many answers will get lost.
    pub(super) lost_answers: usize,
    /// Until when slurmctld is away for a restart.
    pub(super) restarting: Option<Instant>,
    next_job: u32,
    /// Programs for jobs that want a reboot, found while scheduling.
    pub(super) calls: Vec<Call>,
    pub(super) watcher: Option<Watcher>,
}

/// What Slurm says to a name that it does not know.
pub(super) fn unknown_node(tried: &str) -> Error {
    Error::new(ErrorKind::NotFound, tried).because("Invalid node name specified")
}

impl World {
    pub(super) fn new(settings: Settings, start: Instant) -> Self {
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
    pub(super) fn is_away(&self, now: Instant) -> bool {
        self.unreachable || self.dead || self.restarting.is_some_and(|back| now < back)
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

    /// Does what is due at this second, once, and says which programs to start.
    pub(super) fn pass(&mut self, now: Seconds) -> Vec<Call> {
        let done = self.last_pass.is_some_and(|last| last >= now);
        if done || self.is_away(Instant::now()) {
            return Vec::new();
        }
        self.last_pass = Some(now);
        self.dirty = false;
        self.end_jobs(now);
        self.miss_nodes(now);
        self.schedule(now);
        self.power_work(now);
        self.start_jobs(now);
        let calls = std::mem::take(&mut self.calls);
        self.dirty |= !calls.is_empty();
        calls
    }

    /// The second of the next pass that would change anything, if nothing else happens.
    pub(super) fn next(&self, now: Seconds) -> Option<Seconds> {
        if self.unreachable || self.dead {
            return None;
        }
        let soon = self.last_pass.map_or(now, |last| now.max(last + 1));
        if self.dirty {
            return Some(soon);
        }
        let nodes = self.nodes.iter().flat_map(|node| self.due(node)).flatten();
        let jobs = self.jobs.values().filter_map(|job| match job.state {
            JobState::Pending if job.begin > 0 => Some(job.begin),
            JobState::Running => job.end,
            JobState::Pending
            | JobState::Configuring
            | JobState::Completing
            | JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Timeout
            | JobState::NodeFail
            | JobState::BootFail
            | JobState::Preempted
            | JobState::OutOfMemory
            | JobState::Deadline
            | JobState::Revoked
            | JobState::Suspended
            | JobState::Requeued
            | JobState::RequeueHold
            | JobState::Other(_) => None,
        });
        nodes
            .chain(jobs)
            .filter(|due| self.last_pass.is_none_or(|last| *due > last))
            .min()
            .map(|due| due.max(soon))
    }

    /// When a node's timers run out.
    fn due(&self, node: &NodeRecord) -> [Option<Seconds>; 4] {
        // Slurm's comparisons are strict: a second more than the setting says.
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

    /// Nodes that fell silent, and reboots that took too long.
    fn miss_nodes(&mut self, now: Seconds) {
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

    /// The machine of a node is gone; slurmctld will notice.
    pub(super) fn lose(&mut self, name: &NodeName, now: Seconds) {
        if let Some(node) = self.node(name.as_str()) {
            node.lost.get_or_insert(now);
            self.dirty = true;
        }
    }

    /// slurmctld died and starts with what it had saved: nodes that were asked for are asked for again.
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
