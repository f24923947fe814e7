//! Pools without capacity cool down: nothing is launched there for a while, and then one launch probes the pool.

use super::shared::Shared;
use super::stage::Executor;
use crate::cause::Cause;
use crate::cooldown::{Cooldown, Cooldowns, Gate};
use crate::site::{Place, Pool};
use crate::state::{EventKind, cooldowns};
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Refusals of one pool within this time count as one, because storing each of them waits for a disk.
const MOMENT: Duration = Duration::from_secs(5);

/// Whether a launch may use a pool now.
pub(super) enum Entry {
    /// It may, perhaps as the launch that probes the pool.
    Launch,
    /// It has to wait for the answer of the launch that probes the pool.
    Wait,
    /// It has to go elsewhere.
    Cooling(Cooldown),
}

impl Shared<'_> {
    /// Decides whether a node may launch in a place.
    pub(super) fn enter(&self, place: &Place, node: &NodeName) -> Entry {
        let pool = &place.pool();
        match self.probing.borrow().get(pool) {
            Some(prober) if prober != node => return Entry::Wait,
            Some(_) => return Entry::Launch,
            None => {}
        }
        let now = self.tools.now();
        let gate = self.cooldowns.borrow().gate_of(place, now);
        match gate {
            Gate::Open => Entry::Launch,
            Gate::Probe => {
                let left = self.deadline.saturating_duration_since(Instant::now());
                let patience = left + super::LAST_ANSWERS;
                self.change_cooldowns(|all| all.probe(pool, now, patience));
                self.probing.borrow_mut().insert(pool.clone(), node.clone());
                Entry::Launch
            }
            Gate::Cooling(entry) => Entry::Cooling(entry),
        }
    }

    /// Closes a pool, for all nodes of this run and for other runs.
    pub(super) fn cool_down(&self, place: &Place, cause: Cause) {
        let pool = &place.pool();
        let (now, pause) = (self.tools.now(), self.site.policies.cooldown);
        let is_new = |known: &Cooldown| {
            let age = now.duration_since(known.opened);
            known.probed.is_none() && age.is_ok_and(|age| age < MOMENT)
        };
        let gate = self.cooldowns.borrow().gate(pool, now);
        if let Gate::Cooling(known) = gate
            && known.cause == cause
            && is_new(&known)
        {
            return;
        }
        self.change_cooldowns(|all| all.close(pool.clone(), cause, now, pause));
        let event =
            self.tools.event(EventKind::Cooling).because(format!("{pool}: {}", cause.words()));
        self.tools.note(&event.caused_by(cause.as_str()).in_place(place.recorded()));
    }

    /// Keeps nodes that failed by themselves out of service for a while, so that Slurm does not give the same
    /// ones to the next job: reconcile drains them where there are others.
    pub(super) fn rest(&self, failed: &BTreeSet<NodeName>, cause: Cause) {
        let (now, pause) = (self.tools.now(), self.site.policies.cooldown);
        if failed.is_empty() || !is_own(cause) || pause.is_zero() {
            return;
        }
        self.change_cooldowns(|all| {
            for node in failed {
                all.rest(node.clone(), cause, now, pause);
            }
        });
    }

    /// Closes the pool of a place that refused a launch. That is also the answer to a probe.
    pub(super) fn refused_by(&self, place: Option<&Place>, cause: Cause) {
        if let Some(place) = place {
            self.probing.borrow_mut().remove(&place.pool());
            self.cool_down(place, cause);
            self.probes_changed.notify_waiters();
        }
    }

    /// Opens the pools that the node probes: it got an instance.
    pub(super) fn open_probes(&self, node: &NodeName) {
        for pool in self.probes_of(node) {
            self.change_cooldowns(|all| all.open(&pool));
        }
    }

    /// Lets other nodes probe the pools that the node probes: it gets no answer any more.
    pub(super) fn end_probes(&self, node: &NodeName) {
        for pool in self.probes_of(node) {
            self.change_cooldowns(|all| all.end_probe(&pool));
        }
    }

    fn probes_of(&self, node: &NodeName) -> Vec<Pool> {
        let mut probing = self.probing.borrow_mut();
        let own: Vec<Pool> =
            probing.extract_if(.., |_, prober| prober == node).map(|(pool, _)| pool).collect();
        if !own.is_empty() {
            self.probes_changed.notify_waiters();
        }
        own
    }

    /// Changes the cool-downs of this run and the stored ones.
    fn change_cooldowns(&self, change: impl Fn(&mut Cooldowns)) {
        change(&mut self.cooldowns.borrow_mut());
        if !cooldowns::change(self.tools.state, change) {
            self.warn("the cool-downs could not be stored");
        }
    }
}

impl Executor<'_> {
    /// Notes that a place has yielded a bad machine, and closes its pool until then, if it is not the first.
    pub(super) fn note_bad(&mut self, pool: &Pool, until: Option<SystemTime>) {
        let now = self.tools.now();
        let note = |all: &mut Cooldowns| {
            all.note_bad(pool.clone(), now);
            if let Some(until) = until {
                let pause = until.duration_since(now).unwrap_or_default();
                all.close(pool.clone(), Cause::Unhealthy, now, pause);
            }
        };
        note(&mut self.cooldowns);
        if !cooldowns::change(self.tools.state, note) {
            self.report.warn("the cool-downs could not be stored");
        }
        if until.is_some() {
            let text = format!("{pool}: {}", Cause::Unhealthy.words());
            let event = self.tools.event(EventKind::Cooling).because(text);
            let event = event.caused_by(Cause::Unhealthy.as_str());
            self.tools.note(&event.in_place(pool.recorded()));
        }
    }

    /// Keeps nodes out of service until then. The file is written once for all of them, because that waits for a disk.
    pub(super) fn rest(&mut self, rests: &[(NodeName, Cause, SystemTime)]) {
        if rests.is_empty() {
            return;
        }
        let now = self.tools.now();
        let rest = |all: &mut Cooldowns| {
            for (node, cause, until) in rests {
                let pause = until.duration_since(now).unwrap_or_default();
                all.rest(node.clone(), *cause, now, pause);
            }
        };
        rest(&mut self.cooldowns);
        if !cooldowns::change(self.tools.state, rest) {
            self.report.warn("the cool-downs could not be stored");
        }
    }
}

/// True if the failure is the node's own: another node may well come up in its place.
fn is_own(cause: Cause) -> bool {
    match cause {
        Cause::Timeout
        | Cause::NeverRegistered
        | Cause::Conflict
        | Cause::Invalid
        | Cause::NotFound => true,
        Cause::Capacity
        | Cause::Quota
        | Cause::Throttled
        | Cause::Unavailable
        | Cause::Ambiguous
        | Cause::Unauthenticated
        | Cause::Forbidden
        | Cause::Protocol
        | Cause::Cooling
        | Cause::JobIncomplete
        | Cause::Refused
        | Cause::Slurm
        | Cause::Budget
        | Cause::MaxNodes
        | Cause::Unhealthy
        | Cause::Preempted
        | Cause::Cancelled => false,
    }
}
