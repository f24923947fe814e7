//! The cloud's other side as HTTP.

use crate::admin::Admin;
use crate::answer::{Answer, Outcome, Refusal};
use crate::clock::{Change, Speed};
use crate::error::Error;
use crate::instance::Record;
use crate::launch::launch;
use crate::query::{self, Call, Query};
use crate::shared::{Shared, lock};
use hyper::HeaderMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What can be said about the clock.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClockWish {
    speed: Option<f64>,
    advance_seconds: Option<f64>,
    skew_seconds: Option<i64>,
}

/// Answers `/admin/…`: method, path and query. Nothing of it is signed, recorded, throttled or
/// faulty.
pub(crate) fn answer(shared: &Arc<Shared>, ask: (&str, &str, &Query), body: &[u8]) -> Answer {
    let admin = Admin::new(Arc::clone(shared));
    let (method, path, query) = ask;
    let path = path.trim_start_matches("/admin/").trim_end_matches('/');
    let answer = admin.route((method, path, query), body);
    answer.unwrap_or_else(|refusal| refusal.answer())
}

/// What cannot have an effect is the fault of whoever asks for it.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match &error {
            Error::NoInstance { id } => Self::not_found("instance", id),
            Error::Terminated { .. } => Self::incorrect_state(error.to_string()),
            Error::NoEffect { .. }
            | Error::Speed { .. }
            | Error::Beyond { .. }
            | Error::Timing { .. }
            | Error::Subnet { .. }
            | Error::Key { .. }
            | Error::Script { .. }
            | Error::Taken { .. }
            | Error::File { .. }
            | Error::System { .. }
            | Error::Listen { .. } => Self::invalid(error.to_string()),
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::unparsable(error.to_string()))
}

impl Admin {
    /// One line per thing that can be asked of `/admin/`.
    fn route(&self, (method, path, query): (&str, &str, &Query), body: &[u8]) -> Outcome {
        let (what, id) = path.split_once('/').unwrap_or((path, ""));
        match (method, what, id) {
            ("GET", "faults", "") => Ok(self.show_faults()),
            ("GET", "requests", "") => self.show_requests(query),
            ("GET", "counts", "") => Ok(self.show_counts()),
            ("GET", "capacity", "") => Ok(self.look(|world| json!(world.capacity))),
            ("GET", "limits", "") => Ok(self.look(|world| json!(world.limits))),
            ("GET", "throttle", "") => Ok(Answer::json(&lock(&self.shared.buckets).bounds())),
            ("GET", "latency", "") => Ok(Answer::json(&self.latency_millis())),
            ("GET", "clock", "") => Ok(self.show_clock()),
            ("GET", "instances", "") => Ok(self.show_instances()),
            ("GET", "instances", id) => self.show_instance(id),
            ("POST", "faults", "") => {
                Ok(Answer::json(&json!({"id": self.add_fault(read(body)?)?})))
            }
            ("POST", "instances", "") => self.launch(body),
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
            ("PUT", "notices", id) => self.announce(id, &read(body)?)?,
            ("PUT", "instances", id) => self.set_state(id, read(body)?)?,
            ("PUT", "sessions", "") => {
                self.set_session_lifetime(Duration::from_secs(read(body)?))?;
            }
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

    /// Those that are kept, or of them those after the one of a number.
    fn show_requests(&self, query: &Query) -> Outcome {
        let after = query.get("after").map_or(Ok(0), str::parse);
        let after = after.map_err(|_| Refusal::invalid("after has to be a number of a request"))?;
        // Let go of before they are written as JSON: all requests have to be noted there.
        let requests = lock(&self.shared.records).after(after);
        Ok(Answer::json(&requests))
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
            json!({
                "now_millis": world.now(),
                "calendar": world.clock.stamp(),
                "speed": world.clock.speed().factor(),
                "skew_seconds": world.clock.dates().skew(),
            })
        })
    }

    fn put_clock(&self, body: &[u8]) -> Outcome {
        let request: ClockWish = read(body)?;
        let advance = request.advance_seconds.map(Duration::try_from_secs_f64).transpose();
        let advance = advance.map_err(|error| Refusal::invalid(error.to_string()))?;
        let speed = request.speed.map(Speed::new).transpose()?;
        self.set_clock(Change { speed, advance, skew: request.skew_seconds })?;
        Ok(self.show_clock())
    }

    fn show_instances(&self) -> Answer {
        // While others wait, nothing is written that can be written after.
        let mut records: Vec<Record> =
            self.shared.with(|world| world.instances.values().cloned().collect());
        records.sort_unstable_by_key(|record| record.number);
        Answer::json(&records.iter().map(show).collect::<Vec<_>>())
    }

    fn show_instance(&self, id: &str) -> Outcome {
        let record = self.shared.with(|world| world.instances.get(id).cloned());
        let record = record.ok_or_else(|| Refusal::not_found("instance", id))?;
        Ok(Answer::json(&show(&record)))
    }

    /// Launches as a client would, by another's hand.
    fn launch(&self, body: &[u8]) -> Outcome {
        let call = Call {
            path: Vec::new(),
            query: Query::default(),
            target: "",
            headers: &HeaderMap::new(),
            body,
            object: query::object(body),
            caller: "",
            later: None,
        };
        self.shared.with(|world| launch(world, &call))
    }
}

/// An instance, with what its owner cannot see at once.
fn show(record: &Record) -> Value {
    json!({
        "instance": record.instance,
        "address": record.vnic.address,
        "boots": record.boots,
        "bootVolume": record.boot_volume,
    })
}
