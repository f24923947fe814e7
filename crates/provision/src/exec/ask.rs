//! What is asked of the cloud, and what its answers mean.

use super::end::remove;
use super::engine::{Engine, LAST_ANSWERS};
use super::failure::Failure;
use super::work::{Life, Phase, Then, Vain, Work};
use crate::cause::Cause;
use crate::cooldown::Gate;
use crate::report::Outcome;
use crate::site::{Place, Pool};
use crate::state::EventKind;
use cloud_core::{Error, ErrorKind, Instance, InstanceId, InstanceSpec, LaunchToken};
use hostlist::NodeName;
use tokio::time::Instant;

/// How often a request that had no effect is repeated, besides what the cloud's client has done.
pub(super) const MOST_TRIES: u32 = 4;

/// How often a launch may turn out to be a repeat of one whose instance is gone.
const MOST_GENERATIONS: u32 = 24;

/// Most instances that are asked for by themselves at a time.
const MOST_FOUND: usize = 8;

/// A request that has ended.
pub(super) struct Answer {
    pub(super) node: NodeName,
    pub(super) what: Asked,
}

pub(super) enum Asked {
    Launched(Pool, Result<Instance, Error>),
    Terminated(InstanceId, Result<(), Error>),
    Started(InstanceId, Result<(), Error>),
    /// One instance that listings do not show.
    Found(InstanceId, Result<Instance, Error>),
}

/// What a node asks for next.
enum Next {
    Launch(Box<InstanceSpec>, Pool),
    Terminate(InstanceId),
    Start(InstanceId),
}

impl Work {
    /// True if there is a request to make, now or later.
    pub(super) fn can_ask(&self) -> bool {
        if self.asking || self.held || self.unheard {
            return false;
        }
        match self.phase {
            Phase::Remove { .. } | Phase::Launch | Phase::Start(_) => true,
            Phase::AwaitGone { .. } | Phase::Doubt { .. } | Phase::Watch(_) | Phase::Over(_) => {
                false
            }
        }
    }
}

impl Engine<'_> {
    /// Begins as many requests as may be under way.
    pub(super) fn dispatch(&mut self) {
        let most = self.site.policies.concurrency.max(1);
        if self.requests.len() >= most {
            return;
        }
        let now = Instant::now();
        let ready: Vec<NodeName> = self
            .works
            .values()
            .filter(|work| work.can_ask() && work.not_before <= now)
            .map(|work| work.node.clone())
            .collect();
        for node in ready {
            if self.requests.len() >= most {
                return;
            }
            if let Some(next) = self.next(&node) {
                self.ask(node, next);
            }
        }
    }

    /// What the node asks for next; none if it has to wait, or if nothing is left.
    fn next(&mut self, node: &NodeName) -> Option<Next> {
        let work = self.works.get_mut(node)?;
        match &mut work.phase {
            Phase::Remove { ids, .. } => {
                let Some(next) = ids.last().cloned() else {
                    self.removed(node);
                    return None;
                };
                if work.needs_word() {
                    work.unheard = true;
                    self.desk.confirm(node);
                    return None;
                }
                Some(Next::Terminate(next))
            }
            Phase::Start(id) => Some(Next::Start(id.clone())),
            Phase::Launch => self.next_place(node),
            Phase::AwaitGone { .. } | Phase::Doubt { .. } | Phase::Watch(_) | Phase::Over(_) => {
                None
            }
        }
    }

    /// A launch in the first of the node's places that is not cooling down.
    fn next_place(&mut self, node: &NodeName) -> Option<Next> {
        let now = self.tools.now();
        loop {
            let work = self.works.get_mut(node)?;
            let Some(pool) = work.place().map(Place::pool) else {
                let nowhere = || Failure::new(Cause::Refused, "no place to launch in");
                let failure = work.failure.clone().unwrap_or_else(nowhere);
                self.fail(node, failure);
                // Where nobody is told of it, nothing else happens that would wake us.
                let goes_on = self.works.get(node).is_some_and(Work::can_ask);
                return if goes_on { self.next(node) } else { None };
            };
            match (self.probing.get(&pool), self.cooldowns.gate(&pool, now)) {
                // The answer of the one who tries is on its way.
                (Some(prober), _) if prober != node => return None,
                (Some(_), _) | (None, Gate::Open) => return self.launch(node, pool),
                (None, Gate::Probe) => {
                    let left = self.deadline.saturating_duration_since(Instant::now());
                    let patience = left + LAST_ANSWERS;
                    self.change_cooldowns(|all| all.probe(&pool, now, patience));
                    self.probing.insert(pool.clone(), node.clone());
                    return self.launch(node, pool);
                }
                (None, Gate::Cooling(_)) if work.can_repeat(self.tools) => {
                    // Others had no room there; but it may have made its machine before, which is not to be left for that.
                    work.doubts_fully(self.tools);
                    return None;
                }
                (None, Gate::Cooling(entry)) => {
                    let failure = Failure::new(entry.cause, format!("{pool}: {entry}"));
                    work.failure.get_or_insert(failure);
                    work.place += 1;
                }
            }
        }
    }

    /// The launch, written down before it is asked for; none if one without an answer is to be looked for before.
    fn launch(&mut self, node: &NodeName, pool: Pool) -> Option<Next> {
        let now = self.tools.now();
        let work = self.works.get_mut(node)?;
        let (wanted, place) = work.wanted().zip(work.place())?;
        let spec = self.site.spec(wanted, place, work.record.generation);
        let token = spec.token.as_ref();
        work.repeats = work.can_repeat(self.tools);
        if work.repeats && work.open_token() != token.map(LaunchToken::as_str) {
            // In another place, say: this one would come beside it.
            work.doubts_fully(self.tools);
            self.ends_probes(node);
            return None;
        }
        work.launches += 1;
        work.launched.get_or_insert_with(Instant::now);
        work.notes_launch(now, token);
        Some(Next::Launch(Box::new(spec), pool))
    }

    fn ask(&mut self, node: NodeName, next: Next) {
        if let Some(work) = self.works.get_mut(&node) {
            work.asking = true;
        }
        let cloud = self.tools.cloud;
        self.requests.push(Box::pin(async move {
            let what = match next {
                Next::Launch(spec, pool) => Asked::Launched(pool, cloud.launch(&spec).await),
                Next::Terminate(id) => {
                    let done = cloud.terminate(&id).await;
                    Asked::Terminated(id, done)
                }
                Next::Start(id) => {
                    let done = cloud.start(&id).await;
                    Asked::Started(id, done)
                }
            };
            Answer { node, what }
        }));
    }

    /// Asks for one instance that the listings do not show.
    ///
    /// Once at a time for a node, and for a few nodes at a time: the others come when these are answered.
    pub(super) fn ask_for(&mut self, node: &NodeName, id: InstanceId) {
        let cloud = self.tools.cloud;
        let node = node.clone();
        if self.finding.len() >= MOST_FOUND {
            self.unfound.push_back((node, id));
            return;
        }
        if !self.finding.insert(node.clone()) {
            return;
        }
        self.requests.push(Box::pin(async move {
            let found = cloud.get(&id).await;
            Answer { node, what: Asked::Found(id, found) }
        }));
    }

    /// Asks for the next instance that had to wait, if somebody still wants to know.
    fn ask_for_next(&mut self) {
        while self.finding.len() < MOST_FOUND
            && let Some((node, id)) = self.unfound.pop_front()
        {
            if self.works.get(&node).is_some_and(Work::needs_look) {
                self.ask_for(&node, id);
            }
        }
    }

    pub(super) fn answered(&mut self, Answer { node, what }: Answer) {
        match what {
            Asked::Launched(pool, result) => {
                self.no_longer_asking(&node);
                self.launched(&node, &pool, result);
            }
            Asked::Terminated(id, result) => {
                self.no_longer_asking(&node);
                self.terminated(&node, &id, result);
            }
            Asked::Started(id, result) => {
                self.no_longer_asking(&node);
                self.started(&node, &id, result);
            }
            Asked::Found(id, result) => {
                self.finding.remove(&node);
                self.found(&node, &id, result);
                self.ask_for_next();
            }
        }
    }

    fn no_longer_asking(&mut self, node: &NodeName) {
        if let Some(work) = self.works.get_mut(node) {
            work.asking = false;
        }
    }

    fn launched(&mut self, node: &NodeName, pool: &Pool, result: Result<Instance, Error>) {
        match result {
            Ok(instance) => {
                self.opens_probes(node);
                self.accepted(node, &instance);
            }
            Err(error) => {
                let event = self.tools.event(EventKind::LaunchFailed).of(node);
                self.tools.note(&event.because(error.to_string()));
                self.refused(node, pool, &error);
            }
        }
    }

    fn accepted(&mut self, node: &NodeName, instance: &Instance) {
        let now = self.tools.now();
        self.tools.note(&self.tools.event(EventKind::Launched).of(node).with(instance.id.as_str()));
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.notes_instance(now, &instance.id);
        work.life = Life::Fresh;
        match &mut work.phase {
            Phase::Launch => work.goes(Phase::Watch(instance.id.clone())),
            // Given up in the meantime: undone. Given to whoever asked for it: theirs.
            Phase::Remove { ids, then: Then::Over(_), .. } => ids.push(instance.id.clone()),
            Phase::Over(outcome) if *outcome != Outcome::Yielded => {
                let then = Then::Over(*outcome);
                work.goes(remove(vec![instance.id.clone()], then));
            }
            Phase::Remove { .. }
            | Phase::AwaitGone { .. }
            | Phase::Doubt { .. }
            | Phase::Start(_)
            | Phase::Watch(_)
            | Phase::Over(_) => {}
        }
    }

    /// What to do about a launch that was refused.
    fn refused(&mut self, node: &NodeName, pool: &Pool, error: &Error) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let failure = Failure::of(error, work.place(), Some(node));
        // What had no effect leaves no launch to look for, but for the one that it repeats.
        let repeats = work.repeats;
        if error.kind() != ErrorKind::Ambiguous && !repeats {
            work.forgets_launch();
        }
        if work.is_given_up() {
            return;
        }
        match error.kind() {
            ErrorKind::Throttled | ErrorKind::Unavailable => {
                if !work.retries(MOST_TRIES, error.retry_after()) {
                    self.fail(node, failure);
                }
            }
            ErrorKind::Capacity | ErrorKind::Quota => {
                self.probing.remove(pool);
                self.cool(pool, failure.cause);
                if repeats {
                    self.doubt(node, failure, Vain::Launch);
                } else {
                    self.elsewhere(node, failure);
                }
            }
            ErrorKind::Ambiguous => {
                let then = work.may_repeat(self.tools);
                self.doubt(node, failure, then);
            }
            ErrorKind::Conflict if work.launches <= MOST_GENERATIONS => match error.code() {
                Some(LaunchToken::USED_UP) => self.used_up(node),
                _ if repeats => self.doubt(node, failure, Vain::Launch),
                Some(_) | None => self.doubt(node, failure, Vain::NextToken),
            },
            ErrorKind::Conflict
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::Protocol
            | ErrorKind::Unsupported => self.fail(node, failure),
        }
    }

    /// The next of the node's places.
    pub(super) fn elsewhere(&mut self, node: &NodeName, failure: Failure) {
        if let Some(work) = self.works.get_mut(node) {
            work.failure = Some(failure);
            work.place += 1;
            work.tries = 0;
        }
    }

    fn started(&mut self, node: &NodeName, id: &InstanceId, result: Result<(), Error>) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        if work.is_given_up() {
            return;
        }
        match result {
            Ok(()) => {
                work.unstarted = 0;
                work.goes(Phase::Watch(id.clone()));
            }
            Err(error) => match error.kind() {
                // Started by another hand, or not yet stopped: the look tells.
                ErrorKind::Ambiguous | ErrorKind::Conflict => {
                    work.unstarted += 1;
                    work.goes(Phase::Watch(id.clone()));
                }
                ErrorKind::Throttled | ErrorKind::Unavailable
                    if work.retries(MOST_TRIES, error.retry_after()) => {}
                ErrorKind::Throttled
                | ErrorKind::Unavailable
                | ErrorKind::Unauthenticated
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::Invalid
                | ErrorKind::Quota
                | ErrorKind::Capacity
                | ErrorKind::Protocol
                | ErrorKind::Unsupported => {
                    let failure = Failure::of(&error, None, Some(node));
                    self.fail(node, failure);
                }
            },
        }
    }
}
