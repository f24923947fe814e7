//! Lists of instances: in order and by name without a look at those that are not shown.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::Record;
use crate::page::{Window, by_name, descending, not_ours, token};
use crate::query::{Call, Query};
use crate::state::State;
use crate::world::World;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// Where an instance stands in a list by name, and for one name also in a list by time.
type Place = (String, u64);

/// Name, number and id of an instance.
type Row<'a> = (&'a str, u64, &'a String);

type Ids<'a> = Box<dyn Iterator<Item = &'a String> + 'a>;

/// The instances in the order of lists, with their answers as they were last written.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_time: BTreeMap<u64, String>,
    by_name: BTreeMap<Place, String>,
    /// The place and the VNIC of each instance.
    places: HashMap<String, (Place, String)>,
    /// The instance of each VNIC.
    vnics: HashMap<String, String>,
    written: HashMap<String, Bytes>,
    /// Instances that have changed since they were looked at here.
    changed: Vec<String>,
}

impl Index {
    /// Notes that an instance has changed, is new or is gone.
    pub(crate) fn touch(&mut self, id: &str) {
        if self.changed.last().is_none_or(|last| last != id) {
            self.changed.push(id.to_owned());
        }
    }

    /// The instance that has this VNIC, or had it.
    pub(crate) fn holder(&self, vnic: &str) -> Option<&String> {
        self.vnics.get(vnic)
    }

    fn put(&mut self, id: &str, record: Option<&Record>) {
        self.written.remove(id);
        let place = record.map(|record| (&record.instance.display_name, record.number));
        let known = self.places.get(id).map(|((name, number), _)| (name, *number));
        if known == place {
            return;
        }
        if let Some((old, vnic)) = self.places.remove(id) {
            self.by_time.remove(&old.1);
            self.by_name.remove(&old);
            self.vnics.remove(&vnic);
        }
        if let Some(Record { instance, vnic, number, .. }) = record {
            let place = (instance.display_name.clone(), *number);
            self.by_time.insert(*number, id.to_owned());
            self.by_name.insert(place.clone(), id.to_owned());
            self.vnics.insert(vnic.id.clone(), id.to_owned());
            self.places.insert(id.to_owned(), (place, vnic.id.clone()));
        }
    }
}

impl World {
    /// Brings the order of lists, and what is used, up to date.
    pub(crate) fn reindex(&mut self) {
        let shapes = &self.settings.shapes;
        for id in std::mem::take(&mut self.index.changed) {
            let record = self.instances.get(&id);
            self.index.put(&id, record);
            let shape = record
                .and_then(|record| shapes.iter().find(|shape| shape.name == record.instance.shape));
            self.usage.put(&id, record, shape);
        }
    }

    /// An instance as JSON, written once for all answers until it changes.
    pub(crate) fn written(&mut self, id: &str) -> Bytes {
        if let Some(bytes) = self.index.written.get(id) {
            return bytes.clone();
        }
        let record = self.instances.get(id);
        // What we serialise has string keys only, so this does not fail.
        let json = record.and_then(|record| serde_json::to_vec(&record.instance).ok());
        let bytes = Bytes::from(json.unwrap_or_default());
        self.index.written.insert(id.to_owned(), bytes.clone());
        bytes
    }
}

/// `GET /20160918/instances`.
pub(crate) fn list(world: &mut World, call: &Call<'_>) -> Outcome {
    let query = &call.query;
    let compartment = query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    check_filters(world, query)?;
    let by_name = by_name(query)?;
    let descending = descending(query, !by_name)?;
    let window = Window::read(query, world.settings.page_size)?;
    let after = window.after.as_deref().map(place).transpose()?;
    let order = Order { by_name, descending, after };
    let ids = order.walk(&world.index, query.get("displayName"));
    let records = ids.filter_map(|id| world.instances.get(id));
    let shown = records.filter(|record| wanted(record, compartment, query));
    let mut shown: Vec<(String, String)> = shown
        .take(window.size + 1)
        .map(|record| (record.id().to_owned(), key(record, by_name)))
        .collect();
    let more = shown.len() > window.size;
    shown.truncate(window.size);
    let rows: Vec<Bytes> = shown.iter().map(|(id, _)| world.written(id)).collect();
    let answer = Answer::rows(&rows);
    Ok(match shown.last() {
        Some((_, key)) if more => answer.header("opc-next-page", token(query, key)),
        Some(_) | None => answer,
    })
}

/// Refuses what no instance can have.
fn check_filters(world: &World, query: &Query) -> Result<(), Refusal> {
    query.get("availabilityDomain").map_or(Ok(()), |domain| world.check_domain(domain))?;
    let known = |state: &str| state == "MOVING" || State::of_word(state).is_some();
    match query.get("lifecycleState").filter(|state| !known(state)) {
        Some(state) => Err(Refusal::invalid(format!("lifecycleState {state} is not known"))),
        None => Ok(()),
    }
}

fn wanted(record: &Record, compartment: &str, query: &Query) -> bool {
    let instance = &record.instance;
    let cluster = record.compute_cluster.as_deref().unwrap_or_default();
    let reservation = instance.capacity_reservation_id.as_deref().unwrap_or_default();
    instance.compartment_id == compartment
        && query.allows("availabilityDomain", &instance.availability_domain)
        && query.allows("displayName", &instance.display_name)
        && query.allows("lifecycleState", instance.lifecycle_state.word())
        && query.allows("computeClusterId", cluster)
        && query.allows("capacityReservationId", reservation)
}

/// What names an instance's place in a page's token.
fn key(record: &Record, by_name: bool) -> String {
    let name = if by_name { record.instance.display_name.as_str() } else { "" };
    format!("{name}\u{0}{:020}", record.number)
}

/// The place that such a text names.
fn place(key: &str) -> Result<Place, Refusal> {
    let (name, number) = key.rsplit_once('\u{0}').ok_or_else(not_ours)?;
    Ok((name.to_owned(), number.parse().map_err(|_| not_ours())?))
}

/// How a list goes through the instances.
struct Order {
    by_name: bool,
    descending: bool,
    /// Where the page before ended.
    after: Option<Place>,
}

impl Order {
    /// Those of one name, or all, from where the page before ended.
    fn walk<'a>(&'a self, index: &'a Index, name: Option<&str>) -> Ids<'a> {
        if let Some(name) = name {
            let of = |number: u64| (name.to_owned(), number);
            let range = index.by_name.range(of(0)..=of(u64::MAX));
            return self.turned(range.map(|((name, number), id)| (name.as_str(), *number, id)));
        }
        if self.by_name {
            let all = index.by_name.iter();
            return self.turned(all.map(|((name, number), id)| (name.as_str(), *number, id)));
        }
        let after = self.after.as_ref().map(|(_, number)| *number);
        let bounds = match (after, self.descending) {
            (None, _) => (Bound::Unbounded, Bound::Unbounded),
            (Some(last), true) => (Bound::Unbounded, Bound::Excluded(last)),
            (Some(last), false) => (Bound::Excluded(last), Bound::Unbounded),
        };
        self.turned(index.by_time.range(bounds).map(|(number, id)| ("", *number, id)))
    }

    fn turned<'a>(&'a self, walk: impl DoubleEndedIterator<Item = Row<'a>> + 'a) -> Ids<'a> {
        if self.descending {
            let seen = |row: &Row<'a>| !self.is_left(Ordering::Less, row);
            return Box::new(walk.rev().skip_while(seen).map(|(_, _, id)| id));
        }
        let seen = |row: &Row<'a>| !self.is_left(Ordering::Greater, row);
        Box::new(walk.skip_while(seen).map(|(_, _, id)| id))
    }

    /// True if a place lies on this side of where the page before ended.
    fn is_left(&self, side: Ordering, (name, number, _): &Row<'_>) -> bool {
        let Some((last_name, last)) = &self.after else {
            return true;
        };
        let name = if self.by_name { *name } else { "" };
        (name, number).cmp(&(last_name.as_str(), last)) == side
    }
}
