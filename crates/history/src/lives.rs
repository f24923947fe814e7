//! Folds events into lives of nodes.

use crate::event::{Event, EventKind};
use crate::life::{End, Ending, Failure, Life, RecordedPlace, Work};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum duration of a run, in milliseconds.
const LONGEST_RUN: u64 = 86_400_000;

/// A cool-down of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    /// The start, in milliseconds since 1970.
    pub at: u64,
    /// The pool.
    pub place: RecordedPlace,
    /// The code of the cause; none in lines of older versions.
    pub cause: Option<String>,
    /// The reason.
    pub reason: String,
}

/// The lives of all nodes and the cool-downs of pools: a fold over events in the order of the log.
///
/// A life that has not ended is open. [`lives`](Self::lives) has open lives, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lives {
    /// The lives, ordered by their start.
    pub lives: Vec<Life>,
    /// Pools that cooled down.
    pub coolings: Vec<Cooling>,
    /// Whose jobs are, as far as the log says: user and account.
    pub owners: BTreeMap<u32, (String, Option<String>)>,
    /// Start of each run that has not ended, which is when its nodes were requested.
    runs: BTreeMap<String, u64>,
    /// Index of the open life of each node.
    open: BTreeMap<String, usize>,
    /// Index of the life of each instance that has not ended.
    instances: BTreeMap<String, usize>,
}

impl Lives {
    /// Folds events into lives.
    #[must_use]
    pub fn of<'e>(events: impl IntoIterator<Item = &'e Event>) -> Self {
        let mut lives = Self::default();
        for event in events {
            lives.add(event);
        }
        lives
    }

    /// Adds the next event of the log.
    pub fn add(&mut self, event: &Event) {
        match event.event {
            EventKind::Begun => {
                self.runs.insert(event.run.clone(), event.at);
            }
            EventKind::Ended => {
                self.runs.remove(&event.run);
            }
            EventKind::Launched | EventKind::Adopted | EventKind::Started => self.launched(event),
            EventKind::LaunchFailed => {
                self.change(event, |life| life.refusals.push(refusal(event)));
            }
            EventKind::Up => self.change(event, |life| {
                life.running = life.running.or(event.since);
                life.up = life.up.or(Some(event.at));
            }),
            EventKind::Registered => self.change(event, |life| {
                life.registered = life.registered.or(event.since).or(Some(event.at));
            }),
            EventKind::Busy => self.change(event, |life| begin_work(life, event)),
            EventKind::Idle => self.change(event, |life| end_work(life, event)),
            EventKind::Terminated | EventKind::Stopped => self.terminated(event),
            EventKind::ReturnedToSlurm => self.returned(event),
            EventKind::Rebuilt => self.change(event, |life| life.rebuilt.push(event.at)),
            EventKind::Cooling => self.coolings.push(Cooling {
                at: event.at,
                place: event.place(),
                cause: event.cause.clone(),
                reason: event.detail.clone().unwrap_or_default(),
            }),
            EventKind::Owner => {
                let owner = event.user.clone().map(|user| (user, event.account.clone()));
                self.owners
                    .extend(event.jobs.iter().filter_map(|job| Some((*job, owner.clone()?))));
            }
            EventKind::Waiting | EventKind::Returned | EventKind::Unknown => {}
        }
    }

    /// The open life of a node.
    #[must_use]
    pub fn open(&self, node: &str) -> Option<&Life> {
        self.open.get(node).and_then(|index| self.lives.get(*index))
    }

    /// Lives that have not ended.
    pub fn all_open(&self) -> impl Iterator<Item = &Life> {
        self.open.values().filter_map(|index| self.lives.get(*index))
    }

    /// Removes and returns the lives that have ended, which bounds the memory.
    pub fn take_ended(&mut self) -> Vec<Life> {
        let (ended, going_on) =
            std::mem::take(&mut self.lives).into_iter().partition(|life: &Life| life.end.is_some());
        self.lives = going_on;
        self.owners.clear();
        // A killed run has no end in the log.
        let newest = self.runs.values().max().copied().unwrap_or_default();
        self.runs.retain(|_, begun| newest.saturating_sub(*begun) < LONGEST_RUN);
        self.open.clear();
        self.instances.clear();
        for (index, life) in self.lives.iter().enumerate() {
            self.open.extend(life.node.clone().map(|node| (node, index)));
            self.instances.extend(life.instance.clone().map(|instance| (instance, index)));
        }
        ended
    }

    /// Handles an accepted launch or an adopted machine.
    fn launched(&mut self, event: &Event) {
        let (Some(node), Some(instance)) = (&event.node, instance(event)) else {
            return;
        };
        let has_another = |life: &Life| life.instance.as_ref().is_some_and(|it| *it != instance);
        if self.open(node).is_some_and(has_another) {
            self.end_unseen(node, event.at);
        }
        let index = self.open_or_begin(node, event);
        if let Some(life) = self.lives.get_mut(index) {
            // Another start works on it.
            life.returned = None;
            if life.instance.is_none() {
                life.launched = Some(event.at);
                life.place = event.place();
                life.instance = Some(instance.clone());
            }
            add_jobs(&mut life.jobs, &event.jobs);
        }
        self.instances.insert(instance, index);
    }

    /// Ends the life of a machine whose end is not in the log, because the node has another one.
    fn end_unseen(&mut self, node: &str, at: u64) {
        let open = self.open.remove(node);
        if let Some(life) = open.and_then(|index| self.lives.get_mut(index)) {
            life.end = Some(End { at, how: Ending::Unseen, reason: None, cause: None });
        }
    }

    fn terminated(&mut self, event: &Event) {
        let by_instance = instance(event).and_then(|id| self.instances.remove(&id));
        let index = by_instance.or_else(|| {
            let open = event.node.as_ref().and_then(|node| self.open.get(node))?;
            // The open life of the node is that of another machine, which continues.
            let life = self.lives.get(*open)?;
            (life.instance.is_none() || event.instance.is_none()).then_some(*open)
        });
        let index = index.unwrap_or_else(|| {
            self.lives.push(Life {
                node: event.node.clone(),
                instance: event.instance.clone(),
                ..Life::default()
            });
            self.lives.len() - 1
        });
        let Some(life) = self.lives.get_mut(index) else { return };
        // Of two terminations, the first one counts.
        let known = life.end.take().filter(|known| known.how != Ending::Unseen);
        let end = known.unwrap_or_else(|| ending(life, event));
        close_work(life, end.at);
        life.end = Some(end);
        if let Some(node) = &life.node
            && self.open.get(node) == Some(&index)
        {
            self.open.remove(node);
        }
    }

    /// Ends the life of a node without a machine. One with a machine ends when that is terminated.
    fn returned(&mut self, event: &Event) {
        let Some(node) = &event.node else { return };
        let index = self.open_or_begin(node, event);
        let Some(life) = self.lives.get_mut(index) else { return };
        add_jobs(&mut life.jobs, &event.jobs);
        life.returned = Some(refusal(event));
        if life.instance.is_none() {
            life.end = Some(ending(life, event));
            self.open.remove(node);
        }
    }

    fn change(&mut self, event: &Event, change: impl FnOnce(&mut Life)) {
        let Some(node) = &event.node else { return };
        if event.event == EventKind::Idle && !self.open.contains_key(node) {
            return;
        }
        let index = self.open_or_begin(node, event);
        if let Some(life) = self.lives.get_mut(index) {
            add_jobs(
                &mut life.jobs,
                if event.event == EventKind::Busy { &[] } else { &event.jobs },
            );
            change(life);
        }
    }

    /// The open life of the node, or a new one.
    fn open_or_begin(&mut self, node: &str, event: &Event) -> usize {
        if let Some(index) = self.open.get(node) {
            return *index;
        }
        let starts = matches!(
            event.event,
            EventKind::Launched
                | EventKind::Adopted
                | EventKind::Started
                | EventKind::LaunchFailed
                | EventKind::ReturnedToSlurm
        );
        let begun = self.runs.get(&event.run).copied().filter(|begun| *begun <= event.at);
        let asked = if starts { begun.or(Some(event.at)) } else { None };
        let index = self.lives.len();
        self.lives.push(Life { node: Some(node.to_owned()), asked, ..Life::default() });
        self.open.insert(node.to_owned(), index);
        index
    }
}

/// The instance of an event. Older versions wrote that of an adopted machine into the detail.
fn instance(event: &Event) -> Option<String> {
    let detail = || event.detail.clone().filter(|_| event.event == EventKind::Adopted);
    event.instance.clone().or_else(detail)
}

fn refusal(event: &Event) -> Failure {
    Failure {
        at: event.at,
        cause: event.cause.clone(),
        reason: event.detail.clone().unwrap_or_default(),
        place: event.place(),
    }
}

/// The kind of end: a node that never came up has failed. One whose address Slurm got may still never register.
fn ending(life: &Life, event: &Event) -> End {
    let is_used = life.registered.is_some() || !life.work.is_empty();
    // A machine that is terminated for a cause was given up.
    let given_up = event.cause.is_some().then(|| refusal(event));
    let returned = given_up.or_else(|| life.returned.clone());
    let why = match life.up {
        Some(_) => returned.filter(|_| !is_used),
        None => returned.or_else(|| life.refusals.last().cloned()),
    };
    let how = if why.is_some() { Ending::Failed } else { Ending::Terminated };
    let (reason, cause) = why.map(|why| (Some(why.reason), why.cause)).unwrap_or_default();
    End { at: event.at, how, reason, cause }
}

fn begin_work(life: &mut Life, event: &Event) {
    let from = event.since.unwrap_or(event.at);
    match life.work.last_mut().filter(|work| work.to.is_none()) {
        Some(work) if work.jobs == event.jobs => return,
        Some(work) => work.to = Some(from),
        None => {}
    }
    life.work.push(Work { from, to: None, jobs: event.jobs.clone() });
}

/// Ends a period of work. If its start is not in the log, it started when the node registered.
fn end_work(life: &mut Life, event: &Event) {
    let to = event.since.unwrap_or(event.at);
    match (life.work.last_mut(), life.registered) {
        (Some(work), _) => work.to = work.to.or(Some(to)),
        (None, Some(from)) if from < to => {
            life.work.push(Work { from, to: Some(to), jobs: life.jobs.clone() });
        }
        (None, Some(_) | None) => {}
    }
}

fn close_work(life: &mut Life, at: u64) {
    if let Some(work) = life.work.last_mut() {
        work.to = work.to.or(Some(at));
    }
}

fn add_jobs(jobs: &mut Vec<u32>, more: &[u32]) {
    for job in more {
        if !jobs.contains(job) {
            jobs.push(*job);
        }
    }
}
