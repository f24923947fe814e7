//! What happens by itself: instances that boot, stop and end, and records that are forgotten.

use crate::error::Error;
use crate::instance::{Failure, Step};
use crate::machine::{Machine, Order};
use crate::state::{Attachment, State};
use crate::world::{World, etag};
use std::collections::VecDeque;

/// Something that is going to happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// The next step of an instance's plan, unless it has a newer plan.
    Step { id: String, version: u64 },
    /// The VNIC attachment of an instance goes on.
    Vnic { id: String, to: Attachment },
    /// A terminated instance is forgotten.
    Forget(String),
    /// A retry token is forgotten.
    ForgetToken(String),
    /// A work request that has ended is forgotten.
    ForgetWork(String),
    /// An image is ready.
    Image(String),
}

/// A way through the states: the first at once.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) first: State,
    pub(crate) then: VecDeque<Step>,
    /// Why it ends where it began, if it does.
    pub(crate) failure: Option<Failure>,
}

impl Path {
    pub(crate) fn new(first: State, then: impl Into<VecDeque<Step>>) -> Self {
        Self { first, then: then.into(), failure: None }
    }

    /// Lets the path fail, if there is a failure: the instance then ends in the state that it was in.
    pub(crate) fn failing(mut self, failure: Option<Failure>, was: State) -> Self {
        if let (Some(_), Some((last, _))) = (&failure, self.then.back_mut()) {
            *last = was;
        }
        Self { failure, ..self }
    }
}

impl World {
    /// Carries out one event.
    pub(crate) fn happen(&mut self, event: Event) {
        match event {
            Event::Step { id, version } => self.step(&id, version),
            Event::Vnic { id, to } => self.move_vnic(&id, to),
            Event::Forget(id) => self.forget(id),
            Event::ForgetToken(token) => drop(self.tokens.remove(&token)),
            Event::ForgetWork(id) => drop(self.work_requests.remove(&id)),
            Event::Image(id) => self.finish_image(&id),
        }
    }

    /// Forgets an instance, if it has ended.
    fn forget(&mut self, id: String) {
        if self.instances.get(&id).is_none_or(|record| record.state() != State::Terminated) {
            return;
        }
        self.instances.remove(&id);
        self.index.touch(&id);
        self.order(Order::Forget(id.clone()));
        self.forgotten.push(id);
    }

    /// Starts the life of a new instance.
    pub(crate) fn begin(&mut self, id: &str) {
        self.schedule_step(id);
        if self.instances.get(id).is_some_and(|record| !record.doomed) {
            self.schedule_vnic(id);
        }
    }

    fn schedule_vnic(&mut self, id: &str) {
        let late = self.settings.timing.vnic;
        let event = |to| Event::Vnic { id: id.to_owned(), to };
        self.schedule(late / 2.0, event(Attachment::Attaching));
        self.schedule(late, event(Attachment::Attached));
    }

    /// Gives an instance a new plan, whose first step is taken at once, and a work request.
    pub(crate) fn set_plan(&mut self, id: &str, path: Path, work: &str) {
        let Path { first, then, failure: new } = path;
        let Some(record) = self.instances.get_mut(id) else {
            return;
        };
        record.version += 1;
        record.plan = then;
        let done = record.plan.is_empty();
        let failure = record.failure.take();
        record.failure = new.clone().filter(|_| !done);
        if let Some(old) = record.work.replace(work.to_owned()) {
            self.cut_short(&old, failure);
        }
        self.enter(id, first);
        self.schedule_step(id);
        if done {
            self.close_work(work, new);
        }
    }

    /// Ends the work request of what will not be finished. One that was to fail has failed.
    pub(crate) fn cut_short(&mut self, work: &str, failure: Option<Failure>) {
        match failure {
            Some(failure) => self.close_work(work, Some(failure)),
            None => self.cancel_work(work),
        }
    }

    /// Puts an instance into a state at once, and ends its plan there. What has ended has nothing
    /// left to come back with: its address, its room and its boot volume may be another's.
    pub(crate) fn force(&mut self, id: &str, state: State) -> Result<(), Error> {
        let record = self.instances.get_mut(id);
        let record = record.ok_or_else(|| Error::NoInstance { id: id.to_owned() })?;
        if record.state() == State::Terminated && state != State::Terminated {
            return Err(Error::Terminated { id: id.to_owned() });
        }
        record.version += 1;
        record.plan.clear();
        let failure = record.failure.take();
        let saved = record.doomed && state.is_live();
        record.doomed &= !saved;
        if let Some(work) = record.work.take() {
            self.cut_short(&work, failure);
        }
        self.enter(id, state);
        if saved {
            self.schedule_vnic(id);
            if let Some(volume) = self.instances.get(id).map(|record| record.boot_volume.clone()) {
                self.take_boot_volume(&volume);
            }
        }
        Ok(())
    }

    fn schedule_step(&mut self, id: &str) {
        let Some(record) = self.instances.get(id) else {
            return;
        };
        let Some((_, seconds)) = record.plan.front() else {
            return;
        };
        let event = Event::Step { id: id.to_owned(), version: record.version };
        self.schedule(*seconds, event);
    }

    fn step(&mut self, id: &str, version: u64) {
        let Some(record) = self.instances.get_mut(id) else {
            return;
        };
        if record.version != version {
            return;
        }
        let Some((state, _)) = record.plan.pop_front() else {
            return;
        };
        let last = record.plan.is_empty();
        let failure = if last { record.failure.take() } else { None };
        let work = record.work.clone();
        self.enter(id, state);
        if !last {
            self.schedule_step(id);
            return;
        }
        if let Some(work) = work {
            self.close_work(&work, failure);
        }
    }

    /// Puts an instance into a state, with all that goes with it.
    pub(crate) fn enter(&mut self, id: &str, state: State) {
        let Some(record) = self.instances.get_mut(id) else {
            return;
        };
        let was = record.state();
        record.instance.lifecycle_state = state;
        if was != state {
            record.etag = etag();
        }
        if state.is_on() && !was.is_on() {
            record.boots += 1;
        }
        let order: Option<fn(Machine) -> Order> = match (was.is_on(), state.is_on()) {
            (false, true) => Some(Order::Up),
            (true, false) => Some(Order::Down),
            (true, true) | (false, false) => None,
        };
        if let (Some(order), Some(machines)) = (order, &self.machines) {
            // Their keeper is gone only when the cloud is.
            let _ = machines.send(order(Machine::of(record)));
        }
        // What has ended before has nothing left, and others may have got it.
        if state == State::Terminated && was != State::Terminated {
            self.release(id);
            self.schedule(self.settings.timing.keep_terminated, Event::Forget(id.to_owned()));
        }
        self.index.touch(id);
    }
}
