//! The work on one node: what is known about it, what is recorded about it, and its requests to the cloud.

use super::shared::{Shared, Signals};
use crate::cause::Cause;
use crate::failure::{Failure, Names};
use crate::report::{NodeReport, Outcome};
use crate::state::{Event, EventKind, Launch, NodeLock, NodeRecord};
use cloud_core::{Error, ErrorKind, Instance, InstanceId, InstanceSpec, LaunchToken};
use futures_util::future::LocalBoxFuture;
use hostlist::NodeName;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::SystemTime;
use tokio::sync::SemaphorePermit;
use tokio::time::Instant;

/// What is known about the instance that a start works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum History {
    /// It existed before: jobs may run on it.
    Unknown,
    /// Launched by this run, and not yet seen running.
    Launched,
    /// Launched by this run, and seen running: it may have registered.
    Ran,
    /// It failed: nothing runs on it.
    Failed,
}

/// How an instance ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Terminate,
    /// Shut down and kept.
    Stop,
}

/// A termination or a stop that was requested.
type Ended = (InstanceId, End, Result<(), Error>);

/// A launch that has ended.
struct Launched {
    /// It repeats a launch without an answer. That one may still be under way: a refusal says nothing about it.
    repeats: bool,
    result: Result<Instance, Error>,
}

/// Permission to have one request under way.
pub(super) type Permit<'a> = Option<SemaphorePermit<'a>>;

/// The work on one node.
pub(super) struct NodeWork<'a> {
    pub(super) name: NodeName,
    pub(super) shared: &'a Shared<'a>,
    pub(super) signals: Rc<Signals>,
    lock: Option<Box<dyn NodeLock>>,
    pub(super) record: NodeRecord,
    pub(super) history: History,
    /// The last launch had no answer, and was searched for as long as it may take to show up. It stays on
    /// record until the next launch: another process searches again.
    pub(super) presumed_lost: bool,
    /// Requests live here, because the work on a node may be interrupted: their answers are always awaited.
    launching: Option<LocalBoxFuture<'a, Launched>>,
    ending: Option<LocalBoxFuture<'a, Ended>>,
    /// Where the last launch was asked for.
    pub(super) place: history::RecordedPlace,
    starting: Option<LocalBoxFuture<'a, Result<(), Error>>>,
    pub(super) instance: Option<InstanceId>,
    pub(super) address: Option<IpAddr>,
    /// Where the machine is in Slurm's topology, if Slurm is to know.
    pub(super) switch: Option<String>,
    pub(super) failure: Option<Failure>,
    /// What the cloud said last against what the node needs; none once it has agreed.
    pub(super) last_refusal: Option<Failure>,
    /// An instance was terminated or stopped.
    pub(super) has_ended: bool,
    pub(super) launches: u32,
    /// When the instance was first seen running.
    pub(super) running: Option<SystemTime>,
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
            ending: None,
            place: history::RecordedPlace::default(),
            starting: None,
            instance: None,
            address: None,
            switch: None,
            failure: None,
            last_refusal: None,
            has_ended: false,
            launches: 0,
            running: None,
            begun: Instant::now(),
            launched: None,
        }
    }

    /// Requests a launch. The launch is recorded before.
    pub(super) async fn request_launch(
        &mut self,
        spec: InstanceSpec,
        repeats: bool,
        permit: Permit<'a>,
    ) -> Result<Instance, Error> {
        self.launches += 1;
        self.launched.get_or_insert_with(Instant::now);
        self.note_launch(spec.token.as_ref());
        let shared = self.shared;
        let request = self.launching.insert(Box::pin(async move {
            Launched { repeats, result: shared.launch(spec, permit).await }
        }));
        let launched = request.await;
        self.note_launched(launched)
    }

    /// Why the node did not come up when the work on it was stopped. At the deadline, what the cloud said last counts, or
    /// that it said nothing: that the time is over tells nobody what to do.
    pub(super) fn stopped_by(&mut self, stop: Failure) -> Failure {
        if stop.cause != Cause::Timeout {
            return stop;
        }
        let unanswered = self.launching.is_some().then(|| {
            let words = Cause::Ambiguous.words();
            let text = format!("launch: {words} ({}): no answer in time", self.place);
            Failure::new(Cause::Ambiguous, text)
        });
        let said = self.last_refusal.take().or(unanswered);
        said.or_else(|| self.shared.listing.error()).unwrap_or(stop)
    }

    /// Requests the end of an instance.
    pub(super) async fn request_end(
        &mut self,
        id: &InstanceId,
        end: End,
        permit: Permit<'a>,
    ) -> Result<(), Error> {
        let (cloud, id) = (self.shared.tools.cloud, id.clone());
        let request = self.ending.insert(Box::pin(async move {
            let _permit = permit;
            let result = match end {
                End::Terminate => cloud.terminate(&id).await,
                End::Stop => cloud.stop(&id).await,
            };
            (id, end, result)
        }));
        let ended = request.await;
        self.note_ended(ended)
    }

    /// What differs in the cloud's messages about this node and about others that failed alike.
    pub(super) fn names(&self) -> Names<'_> {
        self.shared.names(Some(&self.name))
    }

    /// Requests the start of a stopped instance.
    pub(super) async fn request_start(
        &mut self,
        id: &InstanceId,
        permit: Permit<'a>,
    ) -> Result<(), Error> {
        let (cloud, asked) = (self.shared.tools.cloud, id.clone());
        let request = self.starting.insert(Box::pin(async move {
            let _permit = permit;
            cloud.start(&asked).await
        }));
        let started = request.await;
        self.starting = None;
        if started.is_ok() {
            self.note_in_place(EventKind::Started, id);
        }
        started
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

    /// Waits for the request that was under way when the work on the node was interrupted.
    pub(super) async fn finish_request(&mut self) {
        if let Some(request) = &mut self.launching {
            let launched = request.await;
            let _ = self.note_launched(launched);
        }
        if let Some(request) = &mut self.ending {
            let ended = request.await;
            let _ = self.note_ended(ended);
        }
        if let Some(request) = self.starting.take() {
            // Whoever goes on with the node sees what it did.
            let _ = request.await;
        }
    }

    fn note_launched(&mut self, launched: Launched) -> Result<Instance, Error> {
        self.launching = None;
        match &launched.result {
            Ok(instance) => {
                self.shared.open_probes(&self.name);
                self.note_in_place(EventKind::Launched, &instance.id);
                self.note_instance(&instance.id);
                self.history = History::Launched;
            }
            Err(error) => {
                let place = self.place.clone();
                self.note_refused(Cause::from(error.kind()), &error.to_string(), place);
                // It had no effect, so there is nothing to search for, unless it repeats a launch without an answer.
                if error.kind() != ErrorKind::Ambiguous && !launched.repeats {
                    self.forget_launch();
                }
            }
        }
        launched.result
    }

    /// Notes that the cloud has refused a launch, at once or later.
    pub(super) fn note_refused(&self, cause: Cause, detail: &str, place: history::RecordedPlace) {
        let event = self.event(EventKind::LaunchFailed).because(detail).caused_by(cause.as_str());
        self.note_for_jobs(event.in_place(place));
    }

    /// An event about the node.
    pub(super) fn event(&self, kind: EventKind) -> Event {
        self.shared.tools.event(kind).of(&self.name)
    }

    /// Logs what happened to an instance of the node.
    pub(super) fn note(&self, kind: EventKind, id: &InstanceId) {
        self.shared.tools.note(&self.event(kind).with(id.as_str()));
    }

    /// Logs what happened to an instance, with its place and the jobs that it is for.
    pub(super) fn note_in_place(&self, kind: EventKind, id: &InstanceId) {
        self.note_for_jobs(self.event(kind).with(id.as_str()).in_place(self.place.clone()));
    }

    fn note_for_jobs(&self, event: Event) {
        self.shared.tools.note(&event.for_jobs(self.shared.jobs_of(&self.name)));
    }

    fn note_ended(&mut self, (id, end, result): Ended) -> Result<(), Error> {
        self.ending = None;
        result?;
        let kind = match end {
            End::Terminate => {
                self.note_termination(&id);
                EventKind::Terminated
            }
            End::Stop => EventKind::Stopped,
        };
        self.has_ended = true;
        let event = self.event(kind).with(id.as_str());
        self.shared.tools.note(&match self.shared.given_up {
            Some(cause) => event.because(cause.words()).caused_by(cause.as_str()),
            None => event,
        });
        Ok(())
    }

    /// Records that a launch is about to be requested.
    fn note_launch(&mut self, token: Option<&LaunchToken>) {
        self.record.launch = Some(Launch::asked(self.shared.tools.now()).with_token(token));
        self.presumed_lost = false;
        self.keep();
    }

    /// Records the instance that a launch created.
    pub(super) fn note_instance(&mut self, id: &InstanceId) {
        self.instance = Some(id.clone());
        self.record.launch = Some(Launch::answered(self.shared.tools.now(), id));
        self.keep();
    }

    /// Works with an existing instance from now on.
    pub(super) fn adopt(&mut self, id: &InstanceId) {
        if self.record.instance().as_ref() == Some(id) {
            self.instance = Some(id.clone());
        } else {
            self.note_instance(id);
        }
    }

    /// True if a launch is on record and its instance may exist.
    pub(super) fn has_open_launch(&self) -> bool {
        self.record.is_open()
    }

    /// Records that an instance was terminated.
    pub(super) fn note_termination(&mut self, id: &InstanceId) {
        self.record.terminate(id, self.shared.tools.now());
        self.keep();
    }

    /// Records that an instance is gone. If it was the one of our last launch, nothing is ambiguous any more.
    pub(super) fn note_gone(&mut self, id: &InstanceId) {
        if self.record.instance().as_ref() == Some(id) {
            self.note_termination(id);
        }
    }

    /// Records that the launch created nothing.
    pub(super) fn forget_launch(&mut self) {
        self.record.launch = None;
        self.keep();
    }

    /// Records that an instance does not exist, or is not ours any more.
    pub(super) fn disown(&mut self, id: &InstanceId) {
        if self.instance.as_ref() == Some(id) {
            self.instance = None;
        }
        self.record.forget(id);
        self.keep();
    }

    /// The next launch is another one, and not a repeat.
    pub(super) fn next_generation(&mut self) {
        self.record.skip_generation(self.shared.tools.now());
        self.keep();
    }

    fn keep(&mut self) {
        if let Some(lock) = &mut self.lock {
            // The record is one safeguard among several: a run goes on without it.
            let _ = lock.keep(&self.record);
        }
    }

    /// The lock, for the next stage.
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
