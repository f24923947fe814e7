//! A launch, in the first of a node's places that has room, until its instance is up.

use super::ambiguous_launch::{Asker, IfNotFound};
use super::cooldown::Entry;
use super::failure::Failure;
use super::node::NodeWork;
use super::until_up::Came;
use crate::cause::Cause;
use crate::plan::Clear;
use crate::site::{Place, Wanted};
use cloud_core::{Error, ErrorKind, Instance, InstanceId, LaunchToken};

/// How often a launch may be ambiguous before the node is given up.
const MOST_AMBIGUOUS: u32 = 3;

/// How often a launch may turn out to be a repeat of one whose instance is gone.
const MOST_GENERATIONS: u32 = 24;

/// What is to be launched, and where there may be room yet.
struct Order<'w> {
    wanted: &'w Wanted,
    places: &'w [Place],
    /// How often it was not known what a launch had done.
    ambiguous: u32,
}

impl Order<'_> {
    fn next_place(&mut self) {
        self.places = self.places.split_first().map_or(&[], |(_, rest)| rest);
    }
}

/// What a launch has brought: an instance, and as it is now if it was found.
struct Launched {
    id: InstanceId,
    found: Option<Instance>,
}

impl From<Instance> for Launched {
    fn from(found: Instance) -> Self {
        Self { id: found.id.clone(), found: Some(found) }
    }
}

impl NodeWork<'_> {
    /// Launches when the way is clear, and sees the instance come up; elsewhere if it fails for lack of room.
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
            let failure = match self.come_up_in(&id, shown, order.places).await? {
                Came::Up => return Ok(()),
                Came::NoRoom(failure) => failure,
            };
            order.next_place();
            self.failure = Some(failure);
            self.instance = None;
            found = self.clear_the_way(vec![Clear::Terminate(id)]).await?;
        }
    }

    /// Asks for an instance until one is there, or there is no place left to ask in.
    async fn launch(&mut self, order: &mut Order<'_>) -> Result<Launched, Failure> {
        let mut tries = 0;
        loop {
            let Some(place) = order.places.first() else {
                let nowhere = || Failure::new(Cause::Refused, "no place to launch in");
                return Err(self.failure.clone().unwrap_or_else(nowhere));
            };
            let pool = place.pool();
            let permit = self.permit().await;
            let probes_changed = self.shared.probes_changed.notified();
            match self.shared.enter(&pool, &self.name) {
                Entry::Launch => {}
                Entry::Wait => {
                    drop(permit);
                    probes_changed.await;
                    continue;
                }
                Entry::Cooling(_) if self.can_repeat() => {
                    // Others had no room there; but it may have made its machine before, which is not to be left for that.
                    drop(permit);
                    match self.resolve_launch(IfNotFound::Launch, Asker::Before).await? {
                        Some(found) => return Ok(found.into()),
                        None => continue,
                    }
                }
                Entry::Cooling(entry) => {
                    let failure = Failure::new(entry.cause, format!("{pool}: {entry}"));
                    self.failure.get_or_insert(failure);
                    order.next_place();
                    continue;
                }
            }
            let spec = self.shared.site.spec(order.wanted, place, self.record.generation);
            let repeats = self.can_repeat();
            if repeats && self.open_token() != spec.token.as_ref().map(LaunchToken::as_str) {
                // In another place, say: this one would come beside it.
                drop(permit);
                self.shared.end_probes(&self.name);
                match self.resolve_launch(IfNotFound::Launch, Asker::Before).await? {
                    Some(found) => return Ok(found.into()),
                    None => continue,
                }
            }
            let error = match self.request_launch(spec, repeats, permit).await {
                Ok(instance) => return Ok(Launched { id: instance.id, found: None }),
                Err(error) => error,
            };
            if matches!(error.kind(), ErrorKind::Throttled | ErrorKind::Unavailable)
                && self.pauses(&mut tries, &error).await
            {
                continue;
            }
            if let Some(found) = self.refused(order, &error, repeats).await? {
                return Ok(found.into());
            }
            tries = 0;
        }
    }

    /// What to do about a launch that was refused; none if it is to be asked for again. An instance, if it has
    /// made one after all.
    async fn refused(
        &mut self,
        order: &mut Order<'_>,
        error: &Error,
        repeats: bool,
    ) -> Result<Option<Instance>, Failure> {
        let place = order.places.first();
        let failure = Failure::of(error, place, Some(&self.name));
        let if_not_found = match error.kind() {
            ErrorKind::Capacity | ErrorKind::Quota => {
                if let Some(place) = place {
                    self.shared.end_probe(&place.pool());
                    self.shared.cool_down(&place.pool(), failure.cause);
                }
                if !repeats {
                    self.failure = Some(failure);
                    order.next_place();
                    return Ok(None);
                }
                IfNotFound::Launch
            }
            ErrorKind::Ambiguous => self.repeat_or_launch(),
            ErrorKind::Conflict if self.launches <= MOST_GENERATIONS => match error.code() {
                Some(LaunchToken::USED_UP) => {
                    // The instance that was made with the token is gone, and so is the token: the next launch has
                    // another, and might come beside a machine of whoever ended that one.
                    self.next_generation();
                    return self.resolve_launch(IfNotFound::Repeat, Asker::Us).await;
                }
                _ if repeats => IfNotFound::Launch,
                Some(_) | None => IfNotFound::LaunchWithNextToken,
            },
            ErrorKind::Throttled
            | ErrorKind::Unavailable
            | ErrorKind::Conflict
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
