//! One node in the hands of the executor: what is known and written down of it, and its requests.

use super::shared::{Shared, Signals};
use crate::cause::Cause;
use crate::failure::{Failure, Names};
use crate::report::{NodeReport, Outcome};
use crate::state::{EventKind, Launch, NodeLock, NodeRecord};
use cloud_core::{Error, ErrorKind, Instance, InstanceId, InstanceSpec, LaunchToken};
use futures_util::future::LocalBoxFuture;
use hostlist::NodeName;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

/// What is known of the instance that a start has in hand, and of what runs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    /// It was there before: jobs may run on it.
    Unknown,
    /// Launched by this run, and not yet seen running.
    Launched,
    /// Launched by this run, and seen running: it may have registered.
    Ran,
    /// It failed: nothing runs on it.
    Failed,
}

/// A launch that has ended.
struct Launched {
    /// It repeats a launch without an answer, which may be under way yet: a refusal says nothing of that one.
    repeats: bool,
    result: Result<Instance, Error>,
}

/// Leave to have one request under way.
pub(super) type Permit<'a> = Option<SemaphorePermit<'a>>;

/// One node in the hands of the executor.
pub(super) struct NodeWork<'a> {
    pub(super) name: NodeName,
    pub(super) shared: &'a Shared<'a>,
    pub(super) signals: Rc<Signals>,
    lock: Option<Box<dyn NodeLock>>,
    pub(super) record: NodeRecord,
    pub(super) history: History,
    /// The last launch, if it had no answer, was looked for as long as it may take to show up. It stays
    /// on record until the next replaces it: who comes after us looks again.
    pub(super) presumed_lost: bool,
    /// Requests live here and not in the story of the node, which may be broken off: what they have
    /// done is always heard.
    launching: Option<LocalBoxFuture<'a, Launched>>,
    terminating: Option<LocalBoxFuture<'a, (InstanceId, Result<(), Error>)>>,
    /// Where the last launch was asked for.
    pub(super) place: history::Place,
    pub(super) instance: Option<InstanceId>,
    pub(super) address: Option<IpAddr>,
    pub(super) failure: Option<Failure>,
    /// An instance was told to go.
    pub(super) has_terminated: bool,
    pub(super) launches: u32,
    begun: Instant,
    launched: Option<Instant>,
}

impl<'a> NodeWork<'a> {
    pub(super) fn new(
        name: NodeName,
        lock: Option<Box<dyn NodeLock>>,
        shared: &'a Shared<'a>,
    ) -> Self {
        Self {
            signals: shared.signals(&name),
            name,
            shared,
            record: lock.as_ref().map(|lock| lock.record()).unwrap_or_default(),
            lock,
            history: History::Unknown,
            presumed_lost: false,
            launching: None,
            terminating: None,
            place: history::Place::default(),
            instance: None,
            address: None,
            failure: None,
            has_terminated: false,
            launches: 0,
            begun: Instant::now(),
            launched: None,
        }
    }

    /// Launches an instance, as the permit allows; what is asked for is written down before.
    pub(super) async fn request_launch(
        &mut self,
        spec: InstanceSpec,
        repeats: bool,
        permit: Permit<'a>,
    ) -> Result<Instance, Error> {
        self.launches += 1;
        self.launched.get_or_insert_with(Instant::now);
        self.note_launch(spec.token.as_ref());
        let cloud = self.shared.tools.cloud;
        let request = self.launching.insert(Box::pin(async move {
            let _permit = permit;
            Launched { repeats, result: cloud.launch(&spec).await }
        }));
        let launched = request.await;
        self.note_launched(launched)
    }

    /// Tells an instance to go, as the permit allows.
    pub(super) async fn request_termination(
        &mut self,
        id: &InstanceId,
        permit: Permit<'a>,
    ) -> Result<(), Error> {
        let (cloud, id) = (self.shared.tools.cloud, id.clone());
        let request = self.terminating.insert(Box::pin(async move {
            let _permit = permit;
            let result = cloud.terminate(&id).await;
            (id, result)
        }));
        let terminated = request.await;
        self.note_terminated(terminated)
    }

    /// What differs in the cloud's messages about this node and about others that failed alike.
    pub(super) fn names(&self) -> Names<'_> {
        self.shared.names(Some(&self.name))
    }

    /// Waits until one more request may be under way, and until it is known whether the node is released.
    pub(super) async fn permit(&self) -> Permit<'a> {
        loop {
            self.signals.not_held().await;
            let permit = self.shared.permit().await;
            if !self.signals.is_held() {
                return permit;
            }
        }
    }

    /// Waits for the request that was under way when the story of the node was broken off.
    pub(super) async fn finish_request(&mut self) {
        if let Some(request) = &mut self.launching {
            let launched = request.await;
            let _ = self.note_launched(launched);
        }
        if let Some(request) = &mut self.terminating {
            let terminated = request.await;
            let _ = self.note_terminated(terminated);
        }
    }

    fn note_launched(&mut self, launched: Launched) -> Result<Instance, Error> {
        self.launching = None;
        let tools = self.shared.tools;
        match &launched.result {
            Ok(instance) => {
                self.shared.open_probes(&self.name);
                let event = tools.event(EventKind::Launched).of(&self.name);
                let event = event.with(instance.id.as_str()).in_place(self.place.clone());
                tools.note(&event.for_jobs(self.shared.jobs_of(&self.name)));
                self.note_instance(&instance.id);
                self.history = History::Launched;
            }
            Err(error) => {
                let place = self.place.clone();
                self.note_refused(Cause::from(error.kind()), &error.to_string(), place);
                // What had no effect leaves no launch to look for, but for the one that it repeats.
                if error.kind() != ErrorKind::Ambiguous && !launched.repeats {
                    self.forget_launch();
                }
            }
        }
        launched.result
    }

    /// Notes that the cloud has refused a launch, at once or later.
    pub(super) fn note_refused(&self, cause: Cause, detail: &str, place: history::Place) {
        let tools = self.shared.tools;
        let event = tools.event(EventKind::LaunchFailed).of(&self.name).because(detail);
        let event = event.caused_by(cause.code()).in_place(place);
        tools.note(&event.for_jobs(self.shared.jobs_of(&self.name)));
    }

    fn note_terminated(
        &mut self,
        (id, result): (InstanceId, Result<(), Error>),
    ) -> Result<(), Error> {
        self.terminating = None;
        result?;
        self.note_termination(&id);
        self.has_terminated = true;
        let tools = self.shared.tools;
        tools.note(&tools.event(EventKind::Terminated).of(&self.name).with(id.as_str()));
        Ok(())
    }

    /// Writes down that a launch is about to be asked for.
    fn note_launch(&mut self, token: Option<&LaunchToken>) {
        self.record.launch = Some(Launch::asked(self.shared.tools.now()).with_token(token));
        self.presumed_lost = false;
        self.keep();
    }

    /// Writes down what a launch has made, or was found to have made.
    pub(super) fn note_instance(&mut self, id: &InstanceId) {
        self.instance = Some(id.clone());
        self.record.launch = Some(Launch::answered(self.shared.tools.now(), id));
        self.keep();
    }

    /// Takes an instance that is there.
    pub(super) fn adopt(&mut self, id: &InstanceId) {
        if self.record.instance().as_ref() == Some(id) {
            self.instance = Some(id.clone());
        } else {
            self.note_instance(id);
        }
    }

    /// True if a launch was asked for and never answered.
    pub(super) fn has_open_launch(&self) -> bool {
        self.record.is_open()
    }

    /// Writes down that an instance was told to go.
    pub(super) fn note_termination(&mut self, id: &InstanceId) {
        self.record.terminate(id, self.shared.tools.now());
        self.keep();
    }

    /// Writes down that an instance is gone: where another has ended what our last launch made, nothing
    /// is ambiguous.
    pub(super) fn note_gone(&mut self, id: &InstanceId) {
        if self.record.instance().as_ref() == Some(id) {
            self.note_termination(id);
        }
    }

    /// Writes down that the launch made nothing.
    pub(super) fn forget_launch(&mut self) {
        self.record.launch = None;
        self.keep();
    }

    /// Writes down that an instance is not there, or not ours any more.
    pub(super) fn disown(&mut self, id: &InstanceId) {
        if self.instance.as_ref() == Some(id) {
            self.instance = None;
        }
        self.record.forget(id);
        self.keep();
    }

    /// The next launch is another one, and not a repeat.
    ///
    /// Generations run 0, 1, 3, 7 …, so a process that lost its record reaches an unused one in a few tries.
    pub(super) fn next_generation(&mut self) {
        self.record.generation = self.record.generation.saturating_mul(2).saturating_add(1);
        self.record.launch = None;
        self.keep();
    }

    fn keep(&mut self) {
        if let Some(lock) = &mut self.lock {
            // What cannot be written is only one of the nets that is missing.
            let _ = lock.keep(&self.record);
        }
    }

    /// The lock, for whoever goes on with the node.
    pub(super) fn into_lock(self) -> Option<Box<dyn NodeLock>> {
        self.lock
    }

    pub(super) fn report(&self, outcome: Outcome) -> NodeReport {
        let mut report = NodeReport::new(outcome);
        report.instance = self.instance.as_ref().map(|id| id.as_str().to_owned());
        report.launches = self.launches;
        report.launched_after = self.launched.map(|at| at.saturating_duration_since(self.begun));
        report.took = Instant::now().saturating_duration_since(self.begun);
        if let Some(failure) = &self.failure
            && !outcome.is_success()
        {
            report.cause = Some(failure.cause);
            report.reason = Some(failure.text.clone());
            report.request_id.clone_from(&failure.request_id);
        } else if let (Some(failure), Outcome::Nothing) = (&self.failure, outcome) {
            report.reason = Some(failure.text.clone());
        }
        report
    }
}
