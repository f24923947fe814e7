//! The pace that clouds have taken, as text.

use super::{State, StateFile, change_soon};
use crate::time::is_ahead;
use cloud_core::pace::{Experience, LaneExperience};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

/// What is remembered, by endpoint.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Stored(BTreeMap<String, StoredLanes>);

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct StoredLanes {
    #[serde(default)]
    writes: Option<StoredLane>,
    #[serde(default)]
    reads: Option<StoredLane>,
}

/// One lane, and when it was learned, in milliseconds since 1970.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct StoredLane {
    window: f64,
    limit: Option<f64>,
    at: u64,
}

impl StoredLane {
    fn new(known: LaneExperience, now: SystemTime) -> Self {
        let at = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
        let at = u64::try_from(at).unwrap_or(u64::MAX);
        Self { window: known.window, limit: known.limit, at }
    }

    /// What is left of it; nothing of what a clock that was ahead has written.
    fn now(self, now: SystemTime) -> LaneExperience {
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(self.at));
        let Some(at) = at.filter(|at| !is_ahead(*at, now)) else {
            return LaneExperience::default();
        };
        let known = LaneExperience { window: self.window, limit: self.limit };
        known.after(now.duration_since(at).unwrap_or_default())
    }
}

pub(super) fn read(text: Option<&str>) -> Stored {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// What earlier processes have learned about this endpoint, as far as it still counts.
#[must_use]
pub fn load(state: &dyn State, endpoint: &str, now: SystemTime) -> Experience {
    let stored = read(state.load(StateFile::Pace).ok().flatten().as_deref());
    let lanes = stored.0.get(endpoint).copied().unwrap_or_default();
    let lane = |lane: Option<StoredLane>| lane.map(|lane| lane.now(now)).unwrap_or_default();
    Experience { writes: lane(lanes.writes), reads: lane(lanes.reads) }
}

/// Keeps what this process has learned about an endpoint; a lane that it has not learned about stays as it is. False if it
/// could not be stored.
pub fn keep(
    state: &dyn State,
    endpoint: &str,
    now: SystemTime,
    (writes, reads): (Option<LaneExperience>, Option<LaneExperience>),
) -> bool {
    if writes.is_none() && reads.is_none() {
        return true;
    }
    let mut work = |text: Option<&str>| {
        let mut stored = read(text);
        let lanes = stored.0.entry(endpoint.to_owned()).or_default();
        let lane = |known: LaneExperience| StoredLane::new(known, now);
        lanes.writes = writes.map(lane).or(lanes.writes);
        lanes.reads = reads.map(lane).or(lanes.reads);
        serde_json::to_string(&stored).unwrap_or_default()
    };
    change_soon(state, StateFile::Pace, &mut work).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::MemoryState;

    const LIMITED: LaneExperience = LaneExperience { window: 32.0, limit: Some(20.0) };

    fn at(minutes: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_mins(minutes)
    }

    #[test]
    fn a_pace_is_remembered_by_endpoint_and_decays_within_an_hour() {
        let state = MemoryState::new();
        assert!(keep(&state, "a", at(100), (Some(LIMITED), None)));
        assert_eq!(load(&state, "a", at(100)).writes, LIMITED);
        assert_eq!(load(&state, "a", at(130)).writes.limit, Some(40.0));
        assert_eq!(load(&state, "a", at(160)), Experience::default());
        assert_eq!(load(&state, "b", at(100)), Experience::default());
        assert_eq!(load(&state, "a", at(0)), Experience::default(), "written by a clock ahead");
    }

    #[test]
    fn what_one_process_learns_of_looks_leaves_the_launches_of_another() {
        let state = MemoryState::new();
        keep(&state, "a", at(100), (Some(LIMITED), None));
        let reads = LaneExperience { window: 9.0, limit: None };
        keep(&state, "a", at(100), (None, Some(reads)));
        assert_eq!(load(&state, "a", at(100)), Experience { writes: LIMITED, reads });
    }

    #[test]
    fn what_cannot_be_read_is_forgotten() {
        for text in ["", "{", "[]", r#"{"a": 1}"#, r#"{"a": {"writes": {"window": "x"}}}"#] {
            let state = MemoryState::new();
            change_soon(&state, StateFile::Pace, &mut |_| text.to_owned()).unwrap();
            assert_eq!(load(&state, "a", at(0)), Experience::default(), "{text}");
        }
    }
}
