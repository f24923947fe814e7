//! Waits until an instance runs and has an address.

use super::listing::{LookedUp, Seen, Wait, Waiter};
use super::node::{History, NodeWork};
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::Clear;
use crate::retry::Retry;
use crate::site::{Place, Wanted};
use cloud_core::{ErrorKind, Instance, InstanceId, InstanceState};
use std::time::Duration;
use tokio::time::Instant;

/// Consecutive listings without an instance before it is looked up by id: for one that was listed
/// before, and for one that never was.
const MISSED: u32 = 2;
const MISSED_NEW: u32 = 4;

/// Listings that come sooner after one another count as one: what they do not show may only be late.
const APART: Duration = Duration::from_millis(1500);

/// How often a start of a stopped instance is requested.
const MOST_STARTS: u32 = 3;

/// The state in which a watched instance was found.
enum Watched {
    Up,
    Stopped,
    /// It will never run.
    Lost(Box<Instance>),
}

impl NodeWork<'_> {
    /// Waits until an instance is up. One that was launched in a place for which the cloud turns out to have no capacity
    /// closes the pool of that place.
    pub(super) async fn until_up(
        &mut self,
        id: &InstanceId,
        shown: Option<Instance>,
        place: Option<&Place>,
    ) -> Result<(), Failure> {
        match self.watch(id, shown, false).await? {
            Watched::Up | Watched::Stopped => Ok(()),
            Watched::Lost(instance) => Err(self.lost(&instance, place)),
        }
    }

    /// Starts a stopped instance. One that was kept warm and does not start is replaced.
    pub(super) async fn start_or_launch(
        &mut self,
        id: InstanceId,
        otherwise: Option<Box<Wanted>>,
    ) -> Result<(), Failure> {
        if let Some(place) = otherwise.as_ref().and_then(|wanted| wanted.places.first()) {
            self.place = place.recorded();
        }
        let Err(failure) = self.start_stopped(&id).await else {
            return Ok(());
        };
        let Some(wanted) = otherwise else {
            return Err(failure);
        };
        self.failure = Some(failure);
        self.instance = None;
        self.launch_and_watch(&wanted, vec![Clear::Terminate(id)]).await
    }

    /// Starts a stopped instance, and waits until it is up. Requests the start again if the first one was
    /// ambiguous or came while the instance was still stopping.
    async fn start_stopped(&mut self, id: &InstanceId) -> Result<(), Failure> {
        let mut unheard = 0;
        loop {
            unheard = if self.start(id).await? { 0 } else { unheard + 1 };
            match self.watch(id, None, (1..MOST_STARTS).contains(&unheard)).await? {
                Watched::Up => return Ok(()),
                Watched::Stopped => {}
                Watched::Lost(instance) => return Err(self.lost(&instance, None)),
            }
        }
    }

    /// Requests a start; false if only the next listings show whether it had an effect.
    async fn start(&mut self, id: &InstanceId) -> Result<bool, Failure> {
        let mut retry = Retry::default();
        loop {
            let permit = self.permit().await;
            let Err(error) = self.request_start(id, permit).await else {
                self.last_refusal = None;
                return Ok(true);
            };
            let failure = Failure::of(&error, None, self.names());
            self.last_refusal = Some(failure.clone());
            match error.kind() {
                // Already started by somebody else, or still stopping.
                ErrorKind::Ambiguous | ErrorKind::Conflict => return Ok(false),
                ErrorKind::Throttled | ErrorKind::Unavailable => {
                    if !retry.wait(&error).await {
                        return Err(failure);
                    }
                }
                ErrorKind::Unauthenticated
                | ErrorKind::TokenUsedUp
                | ErrorKind::Forbidden
                | ErrorKind::NotFound
                | ErrorKind::Invalid
                | ErrorKind::Quota
                | ErrorKind::Capacity
                | ErrorKind::Protocol
                | ErrorKind::Unsupported => return Err(failure),
            }
        }
    }

    /// Waits until an instance is up or lost; with `until_stopped`, also until it is seen stopped.
    async fn watch(
        &mut self,
        id: &InstanceId,
        mut shown: Option<Instance>,
        until_stopped: bool,
    ) -> Result<Watched, Failure> {
        let mut waiter = Waiter::new(self.shared, &self.name, self.wait_for(id));
        let (mut listed, mut missed, mut stalled) = (false, 0, 0);
        let mut counted: Option<Instant> = None;
        loop {
            let stays_stopped = stalled > MISSED_NEW;
            let hidden = stays_stopped || missed >= if listed { MISSED } else { MISSED_NEW };
            let (instance, looked_up) = match shown.take() {
                Some(instance) => (Some(instance), false),
                None => self.shown_next(id, &mut waiter, hidden).await?,
            };
            let counts = counted.is_none_or(|last| last.elapsed() >= APART);
            if counts {
                counted = Some(Instant::now());
            }
            let Some(instance) = instance else {
                missed = if hidden { 0 } else { missed + u32::from(counts) };
                continue;
            };
            (missed, listed) = (0, true);
            if instance.state == InstanceState::Running {
                self.running.get_or_insert_with(|| self.shared.tools.now());
            }
            match instance.state {
                InstanceState::Running if instance.address.is_some() => {
                    self.address = instance.address;
                    self.note_place(&instance);
                    return Ok(Watched::Up);
                }
                InstanceState::Running if self.history == History::Launched => {
                    self.history = History::Ran;
                }
                InstanceState::Failed | InstanceState::Terminating | InstanceState::Terminated => {
                    return Ok(Watched::Lost(Box::new(instance)));
                }
                InstanceState::Stopped if until_stopped => return Ok(Watched::Stopped),
                InstanceState::Stopped if stays_stopped && looked_up => {
                    let text = "the instance stopped while it was started";
                    return Err(Failure::new(Cause::Conflict, text));
                }
                // Listings may still show the state before the start: a lookup by id decides.
                InstanceState::Stopped => stalled += u32::from(counts),
                InstanceState::Pending
                | InstanceState::Running
                | InstanceState::Stopping
                | InstanceState::Other(_) => {}
            }
        }
    }

    fn wait_for(&self, id: &InstanceId) -> Wait {
        match self.history {
            History::Launched => Wait::Launched(id.clone()),
            History::Unknown | History::Ran | History::Failed => Wait::Up(id.clone()),
        }
    }

    /// The instance as the next listing shows it, or as looked up by its id if it is hidden from listings, and which of
    /// the two. None if it is not shown.
    async fn shown_next(
        &mut self,
        id: &InstanceId,
        waiter: &mut Waiter<'_>,
        hidden: bool,
    ) -> Result<(Option<Instance>, bool), Failure> {
        let found = match waiter.next(hidden.then(|| id.clone())).await? {
            Seen::Listed(all) => return Ok((all.into_iter().find(|one| one.id == *id), false)),
            Seen::LookedUp(_, found) => found,
        };
        let gone = match found {
            LookedUp::Instance(instance) => return Ok((Some(*instance), true)),
            LookedUp::Unknown => return Ok((None, true)),
            LookedUp::Missing => {
                Failure::new(Cause::NotFound, "the instance disappeared while it was started")
            }
            LookedUp::NotOurs => Failure::new(Cause::Conflict, "the instance is not ours any more"),
        };
        self.disown(id);
        Err(gone)
    }

    /// Why an instance will never run. Its fault counts like a refusal of the launch in that place.
    fn lost(&mut self, instance: &Instance, place: Option<&Place>) -> Failure {
        if instance.state == InstanceState::Failed {
            self.history = History::Failed;
        }
        let Some(fault) = &instance.fault else {
            if instance.state == InstanceState::Failed {
                return Failure::new(Cause::Unavailable, "launch: the instance failed");
            }
            // Somebody else terminated it.
            if let Some(id) = self.instance.take() {
                self.note_termination(&id);
            }
            return Failure::new(Cause::Conflict, "the instance was removed while it was started");
        };
        let failure = Failure::of_fault(fault, place, self.names());
        let recorded = place.map(Place::recorded).unwrap_or_default();
        self.note_refused(failure.cause, &failure.text, recorded);
        if let Some(place) = place.filter(|_| failure.is_for_lack_of_room()) {
            self.shared.cool_down(place, failure.cause);
        }
        failure
    }
}
