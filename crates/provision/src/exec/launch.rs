//! Launches an instance in the first of a node's places that has capacity, and waits until it is up.

use super::ambiguous_launch::{Asker, IfNotFound};
use super::cooldown::Entry;
use super::node::{NodeWork, Permit};
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::Clear;
use crate::retry::Retry;
use crate::site::{Place, Wanted};
use cloud_core::{Error, ErrorKind, Instance, InstanceId, InstanceSpec, LaunchToken};

/// How often a launch may be ambiguous before the node is given up.
const MOST_AMBIGUOUS: u32 = 3;

/// How many launches a node may have before a conflict over its token is final.
const MOST_LAUNCHES: u32 = 8;

/// What to launch, and the places that are left to try.
struct Order<'w> {
    wanted: &'w Wanted,
    places: &'w [Place],
    /// How many launches of this node were ambiguous.
    ambiguous: u32,
}

impl Order<'_> {
    fn next_place(&mut self) {
        self.places = self.places.split_first().map_or(&[], |(_, rest)| rest);
    }
}

/// Whether a launch may be requested in a place.
enum May<'a> {
    Launch(Box<InstanceSpec>, Permit<'a>),
    /// Only after an earlier, unanswered launch has been resolved.
    OnlyAfterSearch,
    NotHere(Failure),
}

/// The instance that a launch created; `found` if a listing showed it.
struct Launched {
    id: InstanceId,
    found: Option<Instance>,
}

impl From<Instance> for Launched {
    fn from(found: Instance) -> Self {
        Self { id: found.id.clone(), found: Some(found) }
    }
}

impl<'a> NodeWork<'a> {
    /// Launches once nothing is in the way, and waits until the instance is up. If it fails for lack of
    /// capacity, the next place is tried.
    pub(super) async fn launch_and_watch(
        &mut self,
        wanted: &Wanted,
        in_the_way: Vec<Clear>,
    ) -> Result<(), Failure> {
        let mut order = Order { wanted, places: &wanted.places, ambiguous: 0 };
        let mut found = self.clear_the_way(in_the_way).await?;
        loop {
            let Launched { id, found: shown } = match found {
                Some(instance) => instance.into(),
                None => self.launch(&mut order).await?,
            };
            let Err(failure) = self.until_up(&id, shown, order.places.first()).await else {
                return Ok(());
            };
            order.next_place();
            if !failure.is_for_lack_of_room() || order.places.is_empty() {
                return Err(failure);
            }
            self.failure = Some(failure);
            self.instance = None;
            found = self.clear_the_way(vec![Clear::Terminate(id)]).await?;
        }
    }

    /// Requests an instance in one place after the other, until one is created or no place is left.
    async fn launch(&mut self, order: &mut Order<'_>) -> Result<Launched, Failure> {
        let mut retry = Retry::default();
        loop {
            let Some(place) = order.places.first() else {
                let nowhere = || Failure::new(Cause::Refused, "no place to launch in");
                return Err(self.failure.clone().unwrap_or_else(nowhere));
            };
            let may = self.may_launch(order.wanted, place).await;
            let found = match may {
                May::Launch(spec, permit) => {
                    let repeats = self.can_repeat();
                    self.place = place.recorded();
                    let error = match self.request_launch(*spec, repeats, permit).await {
                        Ok(instance) => {
                            self.last_refusal = None;
                            return Ok(Launched { id: instance.id, found: None });
                        }
                        Err(error) => error,
                    };
                    self.last_refusal = Some(Failure::of(&error, Some(place), self.names()));
                    if is_passing(&error) && retry.wait(&error).await {
                        continue;
                    }
                    retry = Retry::default();
                    self.refused(order, &error, repeats).await?
                }
                May::OnlyAfterSearch => {
                    self.resolve_launch(IfNotFound::Launch, Asker::Before).await?
                }
                May::NotHere(failure) => {
                    self.failure.get_or_insert(failure);
                    order.next_place();
                    None
                }
            };
            if let Some(found) = found {
                return Ok(found.into());
            }
        }
    }

    /// Waits until a launch in this place may be requested.
    async fn may_launch(&self, wanted: &Wanted, place: &Place) -> May<'a> {
        let pool = place.pool();
        let (entry, permit) = loop {
            let permit = self.permit().await;
            let probes_changed = self.shared.probes_changed.notified();
            match self.shared.enter(place, &self.name) {
                Entry::Wait => {
                    drop(permit);
                    probes_changed.await;
                }
                entry @ (Entry::Launch | Entry::Cooling(_)) => break (entry, permit),
            }
        };
        match entry {
            // The pool cools down, but an earlier launch of this node may have succeeded there: look first.
            Entry::Cooling(_) if self.can_repeat() => return May::OnlyAfterSearch,
            Entry::Cooling(entry) => {
                return May::NotHere(Failure::new(entry.cause, format!("{pool}: {entry}")));
            }
            Entry::Launch | Entry::Wait => {}
        }
        let spec = self.shared.site.spec(wanted, place, self.record.generation);
        if self.can_repeat() && self.open_token() != spec.token.as_ref().map(LaunchToken::as_str) {
            // The unanswered launch is another one, e.g. in another place: this one could create a second instance.
            self.shared.end_probes(&self.name);
            return May::OnlyAfterSearch;
        }
        May::Launch(Box::new(spec), permit)
    }

    /// Handles a refused launch. Returns the instance if there is one after all, or none if the launch
    /// loop should go on.
    async fn refused(
        &mut self,
        order: &mut Order<'_>,
        error: &Error,
        repeats: bool,
    ) -> Result<Option<Instance>, Failure> {
        let place = order.places.first();
        let failure = Failure::of(error, place, self.names());
        let if_not_found = match error.kind() {
            ErrorKind::Capacity | ErrorKind::Quota => {
                self.shared.refused_by(place, failure.cause);
                if !repeats {
                    self.failure = Some(failure);
                    order.next_place();
                    return Ok(None);
                }
                IfNotFound::Launch
            }
            ErrorKind::Ambiguous => self.repeat_or_launch(),
            ErrorKind::TokenUsedUp if self.launches <= MOST_LAUNCHES => {
                // The instance of this token is gone, and the token cannot be used again. Whoever terminated
                // it may have launched another, so look before using the next token.
                self.next_generation();
                return self.resolve_launch(IfNotFound::Repeat, Asker::Us).await;
            }
            ErrorKind::Conflict if self.launches <= MOST_LAUNCHES && repeats => IfNotFound::Launch,
            ErrorKind::Conflict if self.launches <= MOST_LAUNCHES => {
                IfNotFound::LaunchWithNextToken
            }
            ErrorKind::Throttled
            | ErrorKind::Unavailable
            | ErrorKind::Conflict
            | ErrorKind::TokenUsedUp
            | ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::Protocol
            | ErrorKind::Unsupported => return Err(failure),
        };
        order.ambiguous += 1;
        if order.ambiguous > MOST_AMBIGUOUS {
            return Err(failure);
        }
        self.failure = Some(failure);
        self.resolve_launch(if_not_found, Asker::Us).await
    }
}

/// True if the launch had no effect and can simply be repeated.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Throttled | ErrorKind::Unavailable)
}
