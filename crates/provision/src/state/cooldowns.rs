//! Stores cool-downs as JSON.

use super::{State, StateFile, change_soon};
use crate::cause::Cause;
use crate::cooldown::{Cooldown, Cooldowns};
use crate::site::Pool;
use cloud_core::{ShapeName, Zone};
use hostlist::NodeName;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    pools: Vec<StoredPool>,
    #[serde(default)]
    nodes: Vec<StoredNode>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bad: Vec<StoredBad>,
}

/// A pool that yielded a machine that failed its health check, and when.
#[derive(Serialize, Deserialize)]
struct StoredBad {
    shape: String,
    zone: Option<String>,
    at: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredPool {
    shape: String,
    zone: Option<String>,
    #[serde(flatten)]
    entry: Entry,
}

#[derive(Serialize, Deserialize)]
struct StoredNode {
    node: String,
    #[serde(flatten)]
    entry: Entry,
}

/// Times in milliseconds since 1970.
#[derive(Serialize, Deserialize)]
struct Entry {
    cause: String,
    opened: u64,
    until: u64,
    probed: Option<u64>,
    #[serde(default)]
    since: Option<u64>,
}

impl Entry {
    fn of(cooldown: &Cooldown) -> Self {
        Self {
            cause: cooldown.cause.as_str().to_owned(),
            opened: millis(cooldown.opened),
            until: millis(cooldown.until),
            probed: cooldown.probed.map(millis),
            since: Some(millis(cooldown.since)),
        }
    }

    fn cooldown(&self) -> Option<Cooldown> {
        Some(Cooldown {
            cause: Cause::from_word(&self.cause)?,
            opened: time(self.opened),
            until: time(self.until),
            probed: self.probed.map(time),
            since: time(self.since.unwrap_or(self.opened)),
        })
    }
}

/// Reads cool-downs. Unreadable ones are dropped.
pub(crate) fn read(text: Option<&str>) -> Cooldowns {
    let stored: Stored = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let mut all = Cooldowns::new();
    for pool in stored.pools {
        if let Some(entry) = pool.entry.cooldown() {
            let zone = pool.zone.map(Zone::new);
            all.restore_pool(Pool { shape: ShapeName::new(pool.shape), zone }, entry);
        }
    }
    for bad in stored.bad {
        let pool = Pool { shape: ShapeName::new(bad.shape), zone: bad.zone.map(Zone::new) };
        all.note_bad(pool, time(bad.at));
    }
    for node in stored.nodes {
        if let (Ok(name), Some(entry)) = (NodeName::new(&node.node), node.entry.cooldown()) {
            all.restore_node(name, entry);
        }
    }
    all
}

fn write(all: &Cooldowns) -> String {
    let pools = all.pools().map(|(pool, entry)| StoredPool {
        shape: pool.shape.as_str().to_owned(),
        zone: pool.zone.as_ref().map(|zone| zone.as_str().to_owned()),
        entry: Entry::of(entry),
    });
    let nodes = all
        .nodes()
        .map(|(node, entry)| StoredNode { node: node.to_string(), entry: Entry::of(entry) });
    let bad = all.bad().map(|(pool, at)| StoredBad {
        shape: pool.shape.as_str().to_owned(),
        zone: pool.zone.as_ref().map(|zone| zone.as_str().to_owned()),
        at: millis(at),
    });
    let stored = Stored { pools: pools.collect(), nodes: nodes.collect(), bad: bad.collect() };
    serde_json::to_string(&stored).unwrap_or_default()
}

/// The cool-downs as last stored.
pub(crate) fn load(state: &dyn State) -> Cooldowns {
    read(state.load(StateFile::Cooldowns).ok().flatten().as_deref())
}

/// Changes the stored cool-downs; false if they could not be stored.
pub(crate) fn change(state: &dyn State, change: impl Fn(&mut Cooldowns)) -> bool {
    let mut work = |text: Option<&str>| {
        let mut all = read(text);
        change(&mut all);
        write(&all)
    };
    change_soon(state, StateFile::Cooldowns, &mut work).unwrap_or(false)
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn time(millis: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_reads_back() {
        let mut all = Cooldowns::new();
        let pool = Pool { shape: ShapeName::new("a"), zone: Some(Zone::new("1")) };
        let minute = Duration::from_mins(1);
        all.close(pool.clone(), Cause::Quota, time(5), minute);
        all.probe(&pool, time(6), minute);
        all.rest(NodeName::new("n1").unwrap(), Cause::Timeout, time(7), minute);
        all.note_bad(pool, time(8));
        assert_eq!(read(Some(&write(&all))), all);
    }

    #[test]
    fn what_cannot_be_read_is_forgotten() {
        for text in [None, Some(""), Some("{"), Some("[]"), Some("{\"pools\":3}")] {
            assert_eq!(read(text), Cooldowns::new(), "{text:?}");
        }
        let odd = r#"{"nodes":[{"node":"a/b","cause":"quota","opened":0,"until":1,"probed":null},
            {"node":"n1","cause":"weather","opened":0,"until":1,"probed":null}]}"#;
        assert_eq!(read(Some(odd)), Cooldowns::new());
    }
}
