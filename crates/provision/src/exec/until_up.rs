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

/// How waiting for an instance ended.
pub(super) enum Came {
    Up,
    /// No capacity here, but other places are left.
    NoRoom(Failure),
}

/// The state in which a watched instance was found.
enum Stands {
    Up,
    Stopped,
    /// It will never run.
    Lost(Box<Instance>),
}

impl NodeWork<'_> {
    /// Waits until an existing instance is up.
    pub(super) async fn until_up(&mut self, id: &InstanceId) -> Result<(), Failure> {
        match self.come_up_in(id, None, &[]).await? {
            Came::Up => Ok(()),
            Came::NoRoom(failure) => Err(failure),
        }
    }

    /// Waits until an instance that was launched in the first of these places is up.
    pub(super) async fn come_up_in(
        &mut self,
        id: &InstanceId,
        shown: Option<Instance>,
        places: &[Place],
    ) -> Result<Came, Failure> {
        match self.watch(id, shown, false).await? {
            Stands::Lost(instance) => self.lost(&instance, places),
            Stands::Up | Stands::Stopped => Ok(Came::Up),
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
                Stands::Up => return Ok(()),
                Stands::Stopped => {}
                Stands::Lost(instance) => {
                    return match self.lost(&instance, &[])? {
                        Came::Up => Ok(()),
                        Came::NoRoom(failure) => Err(failure),
                    };
                }
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
    ) -> Result<Stands, Failure> {
        let mut waiter = Waiter::new(self.shared, &self.name, self.wait_for(id));
        let (mut listed, mut missed, mut stalled) = (false, 0, 0);
        let mut counted: Option<Instant> = None;
        loop {
            let hidden = missed >= if listed { MISSED } else { MISSED_NEW };
            let instance = match shown.take() {
                Some(instance) => Some(instance),
                None => self.next_sight(id, &mut waiter, hidden).await?,
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
                self.shared.seen_running(&self.name);
            }
            match instance.state {
                InstanceState::Running if instance.address.is_some() => {
                    self.address = instance.address;
                    return Ok(Stands::Up);
                }
                InstanceState::Running if self.history == History::Launched => {
                    self.history = History::Ran;
                }
                InstanceState::Failed | InstanceState::Terminating | InstanceState::Terminated => {
                    return Ok(Stands::Lost(Box::new(instance)));
                }
                InstanceState::Stopped if until_stopped => return Ok(Stands::Stopped),
                // The first listings may still show the state before the start.
                InstanceState::Stopped => stalled += u32::from(counts),
                InstanceState::Pending
                | InstanceState::Running
                | InstanceState::Stopping
                | InstanceState::Other(_) => {}
            }
            if stalled > MISSED_NEW {
                let text = "the instance stopped while it was started";
                return Err(Failure::new(Cause::Conflict, text));
            }
        }
    }

    fn wait_for(&self, id: &InstanceId) -> Wait {
        match self.history {
            History::Launched => Wait::Launched(id.clone()),
            History::Unknown | History::Ran | History::Failed => Wait::Up(id.clone()),
        }
    }

    /// The instance as the next listing shows it, or as looked up by its id if it is hidden from listings. None
    /// if it is not shown.
    async fn next_sight(
        &mut self,
        id: &InstanceId,
        waiter: &mut Waiter<'_>,
        hidden: bool,
    ) -> Result<Option<Instance>, Failure> {
        let seen =
            if hidden { waiter.look_up(id).await? } else { Seen::Listed(waiter.listed().await?) };
        let gone = match seen {
            Seen::Listed(all) => return Ok(all.into_iter().find(|one| one.id == *id)),
            Seen::LookedUp(LookedUp::Instance(instance)) => return Ok(Some(*instance)),
            Seen::LookedUp(LookedUp::Unknown) => return Ok(None),
            Seen::LookedUp(LookedUp::Missing) => {
                Failure::new(Cause::NotFound, "the instance disappeared while it was started")
            }
            Seen::LookedUp(LookedUp::NotOurs) => {
                Failure::new(Cause::Conflict, "the instance is not ours any more")
            }
        };
        self.disown(id);
        Err(gone)
    }

    /// Handles an instance that will never run. Its fault counts like a refusal of the launch.
    fn lost(&mut self, instance: &Instance, places: &[Place]) -> Result<Came, Failure> {
        if instance.state == InstanceState::Failed {
            self.history = History::Failed;
        }
        let Some(fault) = &instance.fault else {
            if instance.state == InstanceState::Failed {
                return Err(Failure::new(Cause::Unavailable, "launch: the instance failed"));
            }
            // Somebody else terminated it.
            if let Some(id) = self.instance.take() {
                self.note_termination(&id);
            }
            let text = "the instance was removed while it was started";
            return Err(Failure::new(Cause::Conflict, text));
        };
        let failure = Failure::of_fault(fault, places.first(), self.names());
        let place = places.first().map(Place::recorded).unwrap_or_default();
        self.note_refused(failure.cause, &failure.text, place);
        if !matches!(fault.kind, ErrorKind::Capacity | ErrorKind::Quota) {
            return Err(failure);
        }
        if let Some(place) = places.first() {
            self.shared.cool_down(place, failure.cause);
        }
        if places.len() > 1 { Ok(Came::NoRoom(failure)) } else { Err(failure) }
    }
}
