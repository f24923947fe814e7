//! The cloud's other side: faults, capacity, limits, clock and records; in process and as HTTP.

use crate::answer::{Answer, Outcome, Refusal};
use crate::clock::{FURTHEST, MOST_SKEW, Moment, is_speed};
use crate::error::Error;
use crate::fault::Rule;
use crate::federation::LONGEST_SESSION;
use crate::instance::Instance;
use crate::limits;
use crate::record::Recorded;
use crate::settings::{Capacity, Limit};
use crate::shared::{Shared, lock};
use crate::state::State;
use crate::throttle::{Buckets, Throttle};
use hyper::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// Sets and reads what clients cannot.
#[derive(Clone, Debug)]
pub struct Admin {
    shared: Arc<Shared>,
}

impl Admin {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Adds a fault rule and gives its number; refuses one that could never happen.
    pub fn add_fault(&self, rule: Rule) -> Result<u64, Error> {
        rule.check()?;
        Ok(lock(&self.shared.faults).add(rule))
    }

    /// Takes every fault rule away.
    pub fn clear_faults(&self) {
        lock(&self.shared.faults).clear();
    }

    /// The rules in force, by number.
    #[must_use]
    pub fn faults(&self) -> Vec<(u64, Rule)> {
        lock(&self.shared.faults).list().to_vec()
    }

    /// Says how many instances fit, in place of everything said before.
    pub fn set_capacity(&self, capacity: Vec<Capacity>) -> Result<(), Error> {
        self.shared.with(|world| {
            world.settings.check_capacity(&capacity)?;
            world.capacity = capacity;
            Ok(())
        })
    }

    /// Sets one service limit.
    pub fn set_limit(&self, limit: Limit) -> Result<(), Error> {
        self.shared.with(|world| {
            world.settings.check_limit(&limit)?;
            limits::set(&mut world.limits, limit);
            Ok(())
        })
    }

    /// Says what service limits there are, in place of everything said before.
    pub fn set_limits(&self, limits: Vec<Limit>) -> Result<(), Error> {
        self.shared.with(|world| {
            limits.iter().try_for_each(|limit| world.settings.check_limit(limit))?;
            world.limits = limits;
            Ok(())
        })
    }

    /// Takes every service limit away.
    pub fn clear_limits(&self) {
        self.shared.with(|world| world.limits.clear());
    }

    /// Says how many requests are taken, in place of everything said before.
    pub fn set_throttle(&self, throttle: Vec<Throttle>) -> Result<(), Error> {
        throttle.iter().try_for_each(Throttle::check)?;
        *lock(&self.shared.buckets) = Buckets::new(throttle);
        Ok(())
    }

    /// Says how late every answer is; the work is done at once.
    pub fn set_latency(&self, latency: Duration) {
        *lock(&self.shared.latency) = latency;
    }

    /// Says how many times as fast as ours the cloud's clock runs; nought stops it.
    pub fn set_speed(&self, speed: f64) {
        self.shared.with(|world| {
            world.clock.set_speed(speed);
            world.wake();
        });
    }

    /// Moves the cloud's clock forward; what was due until then happens at once.
    pub fn advance(&self, by: Duration) {
        self.shared.with(|world| {
            world.clock.advance(by);
            world.catch_up();
            world.wake();
        });
    }

    /// Puts the clock that dates are checked against this many seconds off.
    pub fn set_skew(&self, seconds: i64) {
        self.shared.with(|world| world.clock.set_skew(seconds));
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.records).after(0)
    }

    /// How many requests there were of each operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.records).counts().clone()
    }

    /// The most requests that were under way at a time.
    #[must_use]
    pub fn most_in_flight(&self) -> u64 {
        lock(&self.shared.records).most_in_flight()
    }

    /// How many requests had a token that was used before with another request.
    #[must_use]
    pub fn token_mismatches(&self) -> u64 {
        self.shared.with(|world| world.token_mismatches)
    }

    /// Forgets the requests and their counts.
    pub fn clear_requests(&self) {
        lock(&self.shared.records).clear();
    }

    /// Every instance there is, in the order of launch.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.shared.with(|world| {
            let mut records: Vec<_> = world.instances.values().collect();
            records.sort_by_key(|record| record.number);
            records.into_iter().map(|record| record.instance.clone()).collect()
        })
    }

    /// How often an instance has booted.
    #[must_use]
    pub fn boots(&self, id: &str) -> Option<u64> {
        self.shared.with(|world| Some(world.instances.get(id)?.boots))
    }

    /// The address that an instance has or will have.
    #[must_use]
    pub fn address(&self, id: &str) -> Option<Ipv4Addr> {
        self.shared.with(|world| Some(world.instances.get(id)?.vnic.address))
    }

    /// Puts an instance into a state, as if by another's hand; false if there is none of this id.
    #[expect(clippy::must_use_candidate, reason = "a test knows its instances")]
    pub fn set_state(&self, id: &str, state: State) -> bool {
        self.shared.with(|world| world.force(id, state))
    }

    /// Ends every session; the next request with a session token is refused.
    #[expect(clippy::must_use_candidate, reason = "how many there were matters to few")]
    pub fn end_sessions(&self) -> usize {
        lock(&self.shared.federation).end_sessions()
    }

    /// Says how long new session tokens are good for.
    pub fn set_session_lifetime(&self, lifetime: Duration) {
        lock(&self.shared.federation).set_lifetime(lifetime);
    }
}

/// What can be said about the clock.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClockWish {
    speed: Option<f64>,
    advance_seconds: Option<f64>,
    skew_seconds: Option<i64>,
}

/// Answers `/admin/…`. Nothing of it is signed, recorded, throttled or faulty.
pub(crate) fn answer(shared: &Arc<Shared>, method: &Method, path: &str, body: &[u8]) -> Answer {
    let admin = Admin::new(Arc::clone(shared));
    let path = path.trim_start_matches("/admin/").trim_end_matches('/');
    admin.route(method, path, body).unwrap_or_else(|refusal| refusal.answer())
}

/// What cannot have an effect is the fault of whoever asks for it.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::invalid(error.to_string())
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::unparsable(error.to_string()))
}

impl Admin {
    /// One line per thing that can be asked of `/admin/`.
    fn route(&self, method: &Method, path: &str, body: &[u8]) -> Outcome {
        let (what, id) = path.split_once('/').unwrap_or((path, ""));
        match (method.as_str(), what, id) {
            ("GET", "faults", "") => Ok(self.show_faults()),
            ("GET", "requests", "") => Ok(Answer::json(&self.requests())),
            ("GET", "counts", "") => Ok(self.show_counts()),
            ("GET", "capacity", "") => Ok(self.look(|world| json!(world.capacity))),
            ("GET", "limits", "") => Ok(self.look(|world| json!(world.limits))),
            ("GET", "throttle", "") => Ok(Answer::json(&lock(&self.shared.buckets).bounds())),
            ("GET", "latency", "") => Ok(Answer::json(&self.latency_millis())),
            ("GET", "clock", "") => Ok(self.show_clock()),
            ("GET", "instances", "") => Ok(Answer::json(&self.instances())),
            ("GET", "instances", id) => self.show_instance(id),
            ("POST", "faults", "") => {
                Ok(Answer::json(&json!({"id": self.add_fault(read(body)?)?})))
            }
            ("DELETE", "sessions", "") => Ok(Answer::json(&self.end_sessions())),
            ("PUT", "clock", "") => self.put_clock(body),
            (method, what, id) => {
                self.change((method, what, id), body)?;
                Ok(Answer::empty())
            }
        }
    }

    /// What can be changed without an answer.
    fn change(&self, ask: (&str, &str, &str), body: &[u8]) -> Result<(), Refusal> {
        match ask {
            ("DELETE", "faults", "") => self.clear_faults(),
            ("DELETE", "faults", id) => self.remove_fault(id)?,
            ("DELETE", "requests", "") => self.clear_requests(),
            ("PUT", "capacity", "") => self.set_capacity(read(body)?)?,
            ("PUT", "limits", "") => self.set_limits(read(body)?)?,
            ("PUT", "throttle", "") => self.set_throttle(read(body)?)?,
            ("PUT", "latency", "") => self.set_latency(Duration::from_millis(read(body)?)),
            ("PUT", "instances", id) => self.put_state(id, body)?,
            ("PUT", "sessions", "") => self.put_sessions(body)?,
            (method, what, id) => {
                return Err(Refusal::not_found(
                    "admin operation",
                    &format!("{method} {what}/{id}"),
                ));
            }
        }
        Ok(())
    }

    fn look(&self, view: impl FnOnce(&crate::world::World) -> Value) -> Answer {
        Answer::json(&self.shared.with(|world| view(world)))
    }

    fn show_faults(&self) -> Answer {
        let rows = self.faults().into_iter().map(|(id, rule)| json!({"id": id, "rule": rule}));
        Answer::json(&rows.collect::<Vec<_>>())
    }

    fn remove_fault(&self, id: &str) -> Result<(), Refusal> {
        let number = id.parse().map_err(|_| Refusal::not_found("fault", id))?;
        if lock(&self.shared.faults).remove(number) {
            return Ok(());
        }
        Err(Refusal::not_found("fault", id))
    }

    fn show_counts(&self) -> Answer {
        Answer::json(&json!({
            "operations": self.counts(),
            "most_in_flight": self.most_in_flight(),
            "token_mismatches": self.token_mismatches(),
        }))
    }

    fn latency_millis(&self) -> u64 {
        u64::try_from(lock(&self.shared.latency).as_millis()).unwrap_or(u64::MAX)
    }

    fn show_clock(&self) -> Answer {
        self.look(|world| {
            let now: Moment = world.clock.now();
            json!({
                "now_millis": now,
                "calendar": world.clock.stamp(),
                "speed": world.clock.speed(),
                "skew_seconds": world.clock.skew(),
            })
        })
    }

    fn put_clock(&self, body: &[u8]) -> Outcome {
        let wish: ClockWish = read(body)?;
        let advance = wish.advance_seconds.map(Duration::try_from_secs_f64).transpose();
        let advance = advance.map_err(|error| Refusal::invalid(error.to_string()))?;
        if !wish.speed.is_none_or(is_speed) {
            return Err(Refusal::invalid("speed has to be 0, or from 0.001 to 1000000"));
        }
        if advance.is_some_and(|by| by > FURTHEST) {
            return Err(Refusal::invalid("advance_seconds has to be within 100 years"));
        }
        if wish.skew_seconds.is_some_and(|skew| !(-MOST_SKEW..=MOST_SKEW).contains(&skew)) {
            return Err(Refusal::invalid("skew_seconds has to be within 10 years"));
        }
        if let Some(speed) = wish.speed {
            self.set_speed(speed);
        }
        if let Some(by) = advance {
            self.advance(by);
        }
        if let Some(seconds) = wish.skew_seconds {
            self.set_skew(seconds);
        }
        Ok(self.show_clock())
    }

    fn put_sessions(&self, body: &[u8]) -> Result<(), Refusal> {
        let lifetime = Duration::from_secs(read(body)?);
        if lifetime > LONGEST_SESSION {
            return Err(Refusal::invalid("a session lasts at most 10 years"));
        }
        self.set_session_lifetime(lifetime);
        Ok(())
    }

    fn show_instance(&self, id: &str) -> Outcome {
        let view = self.shared.with(|world| {
            let record = world.instances.get(id)?;
            Some(json!({
                "instance": record.instance,
                "address": record.vnic.address,
                "boots": record.boots,
                "bootVolume": record.boot_volume,
            }))
        });
        view.map(|view| Answer::json(&view)).ok_or_else(|| Refusal::not_found("instance", id))
    }

    fn put_state(&self, id: &str, body: &[u8]) -> Result<(), Refusal> {
        if self.set_state(id, read(body)?) {
            return Ok(());
        }
        Err(Refusal::not_found("instance", id))
    }
}
