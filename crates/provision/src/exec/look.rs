//! One look at the cloud for all nodes, and what it means for each.

use super::engine::Engine;
use super::failure::Failure;
use super::work::{Life, Phase, Then};
use super::{end::remove, tools::Tools};
use crate::addresses;
use crate::cause::Cause;
use crate::report::Outcome;
use crate::state::EventKind;
use cloud_core::{Error, ErrorKind, Instance, InstanceFilter, InstanceId, InstanceState};
use futures_util::future::BoxFuture;
use hostlist::NodeName;
use slurmctl::NodeAddress;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tokio::time::Instant;

/// Looks in a row that miss an instance before it is asked for by itself: one that was listed
/// before, and one that was not yet.
const MISSED: u32 = 2;
const MISSED_NEW: u32 = 4;

/// How often a stopped instance is told to start.
const MOST_STARTS: u32 = 3;

/// What a look showed.
pub(super) struct Look {
    listed: Result<Vec<Instance>, Error>,
    addresses: Result<BTreeMap<InstanceId, IpAddr>, Error>,
}

impl<'a> Engine<'a> {
    /// One listing for all, and one request for all addresses that it does not show.
    pub(super) fn looks(&self) -> BoxFuture<'a, Look> {
        let tools: &'a Tools<'a> = self.tools;
        let filter = InstanceFilter::tagged(self.site.identity.tags());
        let watched: BTreeSet<InstanceId> = self
            .works
            .values()
            .filter_map(|work| match &work.phase {
                Phase::Watch(id) => Some(id.clone()),
                _ => None,
            })
            .collect();
        Box::pin(async move {
            let listed = tools.cloud.list(&filter).await;
            let running = listed
                .iter()
                .flatten()
                .filter(|instance| watched.contains(&instance.id))
                .filter(|instance| instance.state == InstanceState::Running);
            let addresses = addresses::look_up(tools.cloud, running).await;
            Look { listed, addresses }
        })
    }

    pub(super) fn looked(&mut self, Look { listed, addresses }: Look) {
        self.plan_look();
        self.yield_nodes();
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => return self.blind(&error),
        };
        let addresses = addresses.unwrap_or_else(|error| {
            let text = format!("the addresses of instances could not be had: {error}");
            self.passed.warnings.insert(text);
            BTreeMap::new()
        });
        let mut by_node: BTreeMap<NodeName, Vec<Instance>> = BTreeMap::new();
        for mut instance in listed {
            if !self.site.identity.owns(&instance) {
                continue;
            }
            instance.address = instance.address.or_else(|| addresses.get(&instance.id).copied());
            if let Some(node) = self.site.identity.node_of(&instance) {
                by_node.entry(node).or_default().push(instance);
            }
        }
        self.unfound.clear();
        let nodes: Vec<NodeName> = self.works.keys().cloned().collect();
        for node in nodes {
            let shown = by_node.remove(&node).unwrap_or_default();
            self.judge(&node, &shown);
        }
    }

    /// A look that did not succeed: the next may, unless the cloud does not know us any more.
    fn blind(&mut self, error: &Error) {
        let hopeless = match error.kind() {
            ErrorKind::Unauthenticated | ErrorKind::Forbidden => true,
            ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Invalid
            | ErrorKind::Quota
            | ErrorKind::Capacity
            | ErrorKind::Throttled
            | ErrorKind::Unavailable
            | ErrorKind::Ambiguous
            | ErrorKind::Protocol
            | ErrorKind::Unsupported => false,
        };
        self.passed.warnings.insert(format!("a look at the cloud did not succeed: {error}"));
        if hopeless {
            let failure = Failure::of(error, None, None);
            let waiting = self.works.values().filter(|work| work.needs_look());
            for node in waiting.map(|work| work.node.clone()).collect::<Vec<_>>() {
                self.fail(&node, failure.clone());
            }
        }
    }

    fn judge(&mut self, node: &NodeName, shown: &[Instance]) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        match &work.phase {
            Phase::Watch(id) => {
                let id = id.clone();
                match shown.iter().find(|instance| instance.id == id) {
                    Some(instance) => self.seen(node, instance),
                    None => self.not_seen(node, &id),
                }
            }
            Phase::AwaitGone { .. } => self.judge_leaving(node, shown),
            Phase::Doubt { .. } => self.judge_doubt(node, shown),
            Phase::Remove { .. } | Phase::Launch | Phase::Start(_) | Phase::Over(_) => {}
        }
    }

    /// An instance that is on its way up, as it is now.
    pub(super) fn seen(&mut self, node: &NodeName, instance: &Instance) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        (work.missed, work.seen) = (0, true);
        if instance.state == InstanceState::Failed {
            work.life = Life::Dead;
        } else if instance.state == InstanceState::Running && work.life == Life::Fresh {
            work.life = Life::Ran;
        }
        match (&instance.state, instance.address) {
            (InstanceState::Running, Some(address)) => self.up(node, &instance.id, address),
            (InstanceState::Failed, _) => self.lost(node, instance),
            (InstanceState::Terminating | InstanceState::Terminated, _) => {
                self.lost(node, instance);
            }
            (InstanceState::Stopped, _) => self.stopped(node, &instance.id),
            (
                InstanceState::Pending
                | InstanceState::Running
                | InstanceState::Stopping
                | InstanceState::Other(_),
                _,
            ) => {}
        }
    }

    /// Stopped while it was started: the first looks may show what was before, and a start that came while
    /// it was still stopping is asked for again.
    fn stopped(&mut self, node: &NodeName, id: &InstanceId) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        if (1..MOST_STARTS).contains(&work.unstarted) {
            work.goes(Phase::Start(id.clone()));
            return;
        }
        work.stalled += 1;
        if work.stalled > MISSED_NEW {
            let text = "the instance stopped while it was started";
            self.fail(node, Failure::new(Cause::Conflict, text));
        }
    }

    /// It runs and has an address: Slurm is told.
    pub(super) fn up(&mut self, node: &NodeName, id: &InstanceId, address: IpAddr) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.address = Some(address);
        work.goes(Phase::Over(Outcome::Up));
        if !work.tells {
            return;
        }
        work.telling = true;
        let mut told = NodeAddress::new(node.clone(), address);
        told.instance_id = Some(id.as_str().to_owned());
        self.desk.tell_address(told);
    }

    /// It will never run: what the launch itself would have been refused with counts.
    fn lost(&mut self, node: &NodeName, instance: &Instance) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let place = work.place().cloned();
        let Some(fault) = &instance.fault else {
            let failure = if instance.state == InstanceState::Failed {
                Failure::new(Cause::Unavailable, "launch: the instance failed")
            } else {
                // By another's hand: theirs to launch again.
                work.forgets_instance(self.tools.now());
                Failure::new(Cause::Conflict, "the instance was removed while it was started")
            };
            return self.fail(node, failure);
        };
        let failure = Failure::of_fault(fault, place.as_ref(), node);
        self.tools.note_node(EventKind::LaunchFailed, node, &failure.text);
        let has_next = work.wanted().is_some_and(|wanted| wanted.places.len() > work.place + 1);
        let full = matches!(fault.kind, ErrorKind::Capacity | ErrorKind::Quota);
        if let Some(place) = place.filter(|_| full) {
            self.cool(&place.pool(), failure.cause);
        }
        if !full || !has_next {
            return self.fail(node, failure);
        }
        if let Some(work) = self.works.get_mut(node) {
            work.instance = None;
            work.goes(remove(vec![instance.id.clone()], Then::Launch));
        }
        self.elsewhere(node, failure);
    }

    fn not_seen(&mut self, node: &NodeName, id: &InstanceId) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.missed += 1;
        let patience = if work.seen { MISSED } else { MISSED_NEW };
        if work.missed >= patience {
            work.missed = 0;
            self.ask_for(node, id.clone());
        }
    }

    /// What became of one that listings do not show.
    pub(super) fn found(
        &mut self,
        node: &NodeName,
        id: &InstanceId,
        result: Result<Instance, Error>,
    ) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let identity = &self.site.identity;
        let ours =
            |one: &Instance| identity.owns(one) && identity.node_of(one).as_ref() == Some(node);
        if matches!(&result, Ok(instance) if !ours(instance)) {
            return self.not_ours(node, id);
        }
        let gone = match &result {
            Ok(instance) => !instance.state.is_live(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        let leaving = matches!(&result, Ok(instance) if instance.state.is_leaving());
        match &mut work.phase {
            // It may be there all the same: a cloud also says so of what it does not show.
            Phase::Doubt { .. } if leaving => self.found_leaving(node, id, gone),
            Phase::Doubt { .. } if gone => work.disowns(id),
            Phase::Doubt { .. } => {
                if let Ok(instance) = result {
                    self.judge_doubt(node, &[instance]);
                }
            }
            Phase::Watch(watched) if watched == id => match result {
                Ok(instance) => self.seen(node, &instance),
                Err(_) if gone => {
                    work.disowns(id);
                    let text = "the instance disappeared while it was started";
                    self.fail(node, Failure::new(Cause::NotFound, text));
                }
                Err(_) => {}
            },
            Phase::AwaitGone { ids, .. } if gone => {
                ids.remove(id);
                work.notes_gone(id, self.tools.now());
                self.all_gone(node);
            }
            Phase::Watch(_)
            | Phase::AwaitGone { .. }
            | Phase::Remove { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Over(_) => {}
        }
    }

    /// An instance that we knew, and that has another's tags by now: it is theirs.
    fn not_ours(&mut self, node: &NodeName, id: &InstanceId) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        work.disowns(id);
        match &mut work.phase {
            Phase::Watch(watched) if watched == id => {
                let text = "the instance is not ours any more";
                self.fail(node, Failure::new(Cause::Conflict, text));
            }
            Phase::AwaitGone { ids, .. } => {
                ids.remove(id);
                self.all_gone(node);
            }
            Phase::Watch(_)
            | Phase::Doubt { .. }
            | Phase::Remove { .. }
            | Phase::Launch
            | Phase::Start(_)
            | Phase::Over(_) => {}
        }
    }

    /// Instances on their way out: gone when the cloud says so, not when it says nothing.
    fn judge_leaving(&mut self, node: &NodeName, shown: &[Instance]) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        let Phase::AwaitGone { ids, until, then } = &mut work.phase else {
            return;
        };
        let is_other = |one: &&Instance| {
            !one.state.is_leaving()
                && !ids.contains(&one.id)
                && !work.record.is_terminated(&one.id, self.tools.now())
        };
        // A launch from before, or another's, has come to light: no other one is needed.
        if *then == Then::Launch && shown.iter().any(|one| is_other(&one)) {
            let others: Vec<Instance> = shown.iter().filter(is_other).cloned().collect();
            return self.judge_doubt(node, &others);
        }
        let late = Instant::now() >= *until;
        let gone = |id: &InstanceId| {
            shown.iter().any(|instance| instance.id == *id && !instance.state.is_live())
        };
        let went: Vec<InstanceId> = ids.extract_if(.., |id| gone(id)).collect();
        let hidden: Vec<InstanceId> = ids
            .iter()
            .filter(|id| !shown.iter().any(|instance| instance.id == **id))
            .cloned()
            .collect();
        let none_left = ids.is_empty();
        for id in went {
            work.notes_gone(&id, self.tools.now());
        }
        if none_left {
            self.all_gone(node);
        } else if late {
            let text = "an instance on its way out did not go";
            self.fail(node, Failure::new(Cause::Timeout, text));
        } else {
            for id in hidden {
                self.ask_for(node, id);
            }
        }
    }

    fn all_gone(&mut self, node: &NodeName) {
        let Some(work) = self.works.get_mut(node) else {
            return;
        };
        if let Phase::AwaitGone { ids, then, .. } = &work.phase
            && ids.is_empty()
        {
            let then = *then;
            work.goes_on(then, self.tools);
        }
    }
}
