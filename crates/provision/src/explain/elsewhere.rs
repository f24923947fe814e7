//! Where a cloud has room, when one of its pools has none.

use super::facts::{Facts, Learnt};
use super::gather::{Sources, in_time};
use crate::cause::Cause;
use crate::cooldown::{Cooldown, Cooldowns};
use crate::site::{Pool, Site};
use crate::world::Roster;
use cloud_core::{ErrorKind, Room, ShapeName, Zone};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};

/// What the cloud says of zones: whether it has a machine of the shape there.
pub type Rooms = BTreeMap<(ShapeName, Zone), Learnt<Option<Room>>>;

/// Most zones that the cloud is asked about: each is a request.
const MOST_ASKED: usize = 6;

/// Asks the cloud about the other zones of slurm.conf for each shape that a zone lacks.
pub(super) async fn rooms(sources: &Sources<'_>, cooldowns: &Cooldowns) -> Rooms {
    let Ok(cloud) = &sources.cloud else { return Rooms::new() };
    let lacks = |(_, cooldown): &(&Pool, &Cooldown)| {
        cooldown.lasts(sources.now) && matches!(cooldown.cause, Cause::Capacity | Cause::Quota)
    };
    let zones = zones(sources.site, sources.conf);
    let mut wanted: BTreeSet<(ShapeName, Zone)> = BTreeSet::new();
    for (pool, _) in cooldowns.pools().filter(lacks) {
        let others = zones.iter().filter(|zone| pool.zone.as_ref().is_some_and(|it| it != *zone));
        wanted.extend(others.map(|zone| (ordinary(pool), zone.clone())));
    }
    let asked = wanted.into_iter().take(MOST_ASKED).map(async |(shape, zone)| {
        let room = in_time(async {
            match cloud.room(&shape, &zone).await {
                Ok(room) => Ok(Some(room)),
                Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
                Err(error) => Err(error),
            }
        });
        let room = room.await;
        ((shape, zone), room)
    });
    join_all(asked).await.into_iter().collect()
}

/// The zones that nodes of slurm.conf may be in.
fn zones(site: &Site, conf: &Roster<'_>) -> BTreeSet<Zone> {
    let places = conf.config().nodes.iter().filter_map(|def| site.places(def));
    places.flatten().filter_map(|place| place.zone).collect()
}

/// The shape, whether its machines may be taken away or not.
fn ordinary(pool: &Pool) -> ShapeName {
    let shape = pool.shape.as_str();
    ShapeName::new(shape.strip_suffix(" preemptible").unwrap_or(shape))
}

/// What is known of the other zones of a pool that has said no; none if there are no others, or nobody could ask.
pub(super) fn elsewhere(pool: &Pool, facts: &Facts<'_>) -> Option<String> {
    let shape = ordinary(pool);
    let others = facts.rooms.iter().filter(|((other, zone), _)| {
        *other == shape && pool.zone.as_ref().is_some_and(|own| own != zone)
    });
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for ((_, zone), room) in others {
        match room {
            Ok(Some(Room::Machines(count))) => known.push(format!("{zone} has room for {count}")),
            Ok(Some(Room::Some)) => known.push(format!("{zone} has room")),
            Ok(Some(Room::None)) => known.push(format!("{zone} has none")),
            Ok(None) | Err(_) => unknown.push(zone.to_string()),
        }
    }
    let unknown = (!unknown.is_empty())
        .then(|| format!("Whether {} has room is not known.", unknown.join(" or ")));
    if known.is_empty() {
        return unknown;
    }
    let known = format!("By the cloud's own report, which counts no quotas, {}.", known.join(", "));
    Some(unknown.map_or(known.clone(), |unknown| format!("{known} {unknown}")))
}
