//! An instance on its way up, until it runs and has an address.

use super::failure::Failure;
use super::listing::{LookedUp, Seen, Wait, Waiter};
use super::node::{History, NodeWork};
use super::retry::Retry;
use crate::cause::Cause;
use crate::site::Place;
use crate::state::EventKind;
use cloud_core::{ErrorKind, Instance, InstanceId, InstanceState};

/// Listings in a row that miss an instance before it is asked for by itself: one that was listed
/// before, and one that was not yet.
const MISSED: u32 = 2;
const MISSED_NEW: u32 = 4;

/// How often a stopped instance is told to start.
const MOST_STARTS: u32 = 3;

/// How an instance that was to come up has done.
pub(super) enum Came {
    Up,
    /// There was no room for it, but there may be elsewhere.
    NoRoom(Failure),
}

/// How an instance stands that was waited for.
enum Stands {
    Up,
    Stopped,
    /// It will never run.
    Lost(Box<Instance>),
}

impl NodeWork<'_> {
    /// Waits until an instance is up that is there.
    pub(super) async fn until_up(&mut self, id: &InstanceId) -> Result<(), Failure> {
        match self.come_up_in(id, None, &[]).await? {
            Came::Up => Ok(()),
            Came::NoRoom(failure) => Err(failure),
        }
    }

    /// Waits until an instance is up that was launched in the first of these places.
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

    /// Starts a stopped instance, and waits until it is up. A start that came while it was still stopping, or may not
    /// have arrived, is asked for again.
    pub(super) async fn start_stopped(&mut self, id: &InstanceId) -> Result<(), Failure> {
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

    /// Asks for a start; false if the next listings have to tell whether it is one.
    async fn start(&mut self, id: &InstanceId) -> Result<bool, Failure> {
        let mut retry = Retry::default();
        loop {
            let permit = self.permit().await;
            let started = self.shared.tools.cloud.start(id).await;
            drop(permit);
            let Err(error) = started else {
                return Ok(true);
            };
            let failure = Failure::of(&error, None, Some(&self.name));
            match error.kind() {
                // Started by another hand, or not yet stopped.
                ErrorKind::Ambiguous | ErrorKind::Conflict => return Ok(false),
                ErrorKind::Throttled | ErrorKind::Unavailable => {
                    if !retry.wait(&error).await {
                        return Err(failure);
                    }
                }
                ErrorKind::Unauthenticated
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

    /// Waits until an instance runs and has an address, or will not; or until it is seen stopped, if that counts
    /// at once.
    async fn watch(
        &mut self,
        id: &InstanceId,
        mut shown: Option<Instance>,
        until_stopped: bool,
    ) -> Result<Stands, Failure> {
        let mut waiter = Waiter::new(self.shared, &self.name, Wait::Up(id));
        let (mut listed, mut missed, mut stalled) = (false, 0, 0);
        loop {
            let instance = match shown.take() {
                Some(instance) => Some(instance),
                None => self.next_sight(id, &mut waiter).await?,
            };
            let Some(instance) = instance else {
                missed += 1;
                if missed >= if listed { MISSED } else { MISSED_NEW } {
                    missed = 0;
                    waiter.look_up(id);
                }
                continue;
            };
            (missed, listed) = (0, true);
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
                // The first listings may show what was before.
                InstanceState::Stopped => stalled += 1,
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

    /// The instance as it is next seen; none if a listing does not show it.
    async fn next_sight(
        &mut self,
        id: &InstanceId,
        waiter: &mut Waiter<'_>,
    ) -> Result<Option<Instance>, Failure> {
        loop {
            let gone = match waiter.next().await? {
                Seen::Listed(all) => return Ok(all.into_iter().find(|one| one.id == *id)),
                Seen::LookedUp(_, LookedUp::Instance(instance)) => return Ok(Some(*instance)),
                Seen::LookedUp(_, LookedUp::Unknown) => continue,
                Seen::LookedUp(_, LookedUp::Missing) => {
                    Failure::new(Cause::NotFound, "the instance disappeared while it was started")
                }
                Seen::LookedUp(_, LookedUp::NotOurs) => {
                    Failure::new(Cause::Conflict, "the instance is not ours any more")
                }
            };
            self.disown(id);
            return Err(gone);
        }
    }

    /// It will never run: what the launch itself would have been refused with counts.
    fn lost(&mut self, instance: &Instance, places: &[Place]) -> Result<Came, Failure> {
        if instance.state == InstanceState::Failed {
            self.history = History::Failed;
        }
        let Some(fault) = &instance.fault else {
            if instance.state == InstanceState::Failed {
                return Err(Failure::new(Cause::Unavailable, "launch: the instance failed"));
            }
            // By another's hand: theirs to launch again.
            if let Some(id) = self.instance.take() {
                self.note_termination(&id);
            }
            let text = "the instance was removed while it was started";
            return Err(Failure::new(Cause::Conflict, text));
        };
        let failure = Failure::of_fault(fault, places.first(), &self.name);
        self.shared.tools.note_node(EventKind::LaunchFailed, &self.name, &failure.text);
        if !matches!(fault.kind, ErrorKind::Capacity | ErrorKind::Quota) {
            return Err(failure);
        }
        if let Some(place) = places.first() {
            self.shared.cool_down(&place.pool(), failure.cause);
        }
        if places.len() > 1 { Ok(Came::NoRoom(failure)) } else { Err(failure) }
    }
}
