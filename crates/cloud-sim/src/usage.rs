//! How much of limits and of room is used, counted as instances come and go.

use crate::instance::Record;
use crate::settings::ShapeSize;
use std::collections::{BTreeMap, HashMap};

/// Thousandths: sums of them stay exact, and no limit has finer parts.
type Amount = u64;

/// An availability domain, and a limit or a shape.
type Key = (String, String);

/// What the instances take, by domain and limit and by domain and shape.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    limits: BTreeMap<Key, Amount>,
    rooms: BTreeMap<Key, u64>,
    /// What was counted for each instance.
    shares: HashMap<String, Share>,
}

/// What one instance takes.
#[derive(Debug)]
struct Share {
    domain: String,
    shape: String,
    limits: Vec<(String, Amount)>,
    /// False for what is going to fail for want of room: it has none.
    has_room: bool,
}

/// How much of a limit a machine takes.
pub(crate) fn weight(limit: &str, ocpus: f64, memory: f64) -> f64 {
    if limit.ends_with("-core-count") {
        ocpus
    } else if limit.ends_with("-memory-count") {
        memory
    } else {
        1.0
    }
}

impl Usage {
    /// Counts an instance as it is now.
    pub(crate) fn put(&mut self, id: &str, record: Option<&Record>, shape: Option<&ShapeSize>) {
        let record = record.filter(|record| record.state().holds_room());
        // Nothing else about an instance that counts here ever changes: what never had room gets
        // none by being told to end.
        let has_room = record.map(|record| !record.doomed);
        if self.shares.get(id).map(|share| share.has_room) == has_room {
            return;
        }
        let new = record.map(|record| Share::of(record, shape));
        if let Some(old) = self.shares.remove(id) {
            self.count(&old, u64::saturating_sub);
        }
        if let Some(new) = new {
            self.count(&new, u64::saturating_add);
            self.shares.insert(id.to_owned(), new);
        }
    }

    fn count(&mut self, share: &Share, change: fn(u64, u64) -> u64) {
        let key = |what: &str| (share.domain.clone(), what.to_owned());
        for (limit, amount) in &share.limits {
            let used = self.limits.entry(key(limit)).or_default();
            *used = change(*used, *amount);
        }
        let taken = self.rooms.entry(key(&share.shape)).or_default();
        *taken = change(*taken, u64::from(share.has_room));
    }

    /// How much of a limit is used in an availability domain.
    pub(crate) fn of_limit(&self, limit: &str, domain: &str) -> f64 {
        let key = (domain.to_owned(), limit.to_owned());
        self.limits.get(&key).copied().map_or(0.0, |amount| real(amount) / 1000.0)
    }

    /// How many instances have room in a domain, or any, and of a shape, or any.
    pub(crate) fn rooms(&self, domain: Option<&str>, shape: Option<&str>) -> u64 {
        let concerns = |wanted: Option<&str>, is: &str| wanted.is_none_or(|wanted| wanted == is);
        let of = self.rooms.iter().filter(|((in_domain, of_shape), _)| {
            concerns(domain, in_domain) && concerns(shape, of_shape)
        });
        of.map(|(_, count)| count).sum()
    }
}

impl Share {
    fn of(record: &Record, shape: Option<&ShapeSize>) -> Self {
        let limits = shape.map(|shape| shape.limits.as_slice()).unwrap_or_default();
        let amount = |limit: &String| {
            let amount = thousandths(weight(limit, record.ocpus, record.memory));
            (limit.clone(), amount)
        };
        Self {
            domain: record.instance.availability_domain.clone(),
            shape: record.instance.shape.clone(),
            limits: limits.iter().map(amount).collect(),
            has_room: !record.doomed,
        }
    }
}

/// A count as a float, which loses nothing below 2^53.
#[expect(
    clippy::as_conversions,
    clippy::cast_precision_loss,
    reason = "far above any limit that OCI has"
)]
pub(crate) fn real(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` from a float saturates, and there is no other conversion"
)]
fn thousandths(value: f64) -> Amount {
    (value * 1000.0).round() as u64
}
