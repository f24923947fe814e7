//! Service limits and room for instances.

use crate::answer::{Answer, Outcome, Refusal};
use crate::launch_request::LaunchRequest;
use crate::page::{Row, page};
use crate::query::{Call, Fields};
use crate::settings::{Capacity, Limit, ShapeSize};
use crate::usage::{real, weight};
use crate::world::World;
use hyper::StatusCode;
use serde_json::{Map, Value, json};

impl World {
    /// The value of a limit in an availability domain: the narrowest entry counts, the last first.
    fn limit(&self, name: &str, domain: &str) -> Option<u64> {
        let of = |place: Option<&str>| {
            let named = self.limits.iter().rev().filter(|limit| limit.name == name);
            named.into_iter().find(|limit| limit.availability_domain.as_deref() == place)
        };
        of(Some(domain)).or_else(|| of(None)).map(|limit| limit.value)
    }

    /// Refuses a launch beyond a service limit.
    pub(crate) fn check_limits(&self, request: &LaunchRequest) -> Result<(), Refusal> {
        let exceeded: Vec<&str> = request
            .shape
            .limits
            .iter()
            .filter(|name| {
                let more = weight(name, request.ocpus, request.memory);
                let value = self.limit(name, &request.domain);
                value.is_some_and(|value| {
                    self.usage.of_limit(name, &request.domain) + more > real(value)
                })
            })
            .map(String::as_str)
            .collect();
        if exceeded.is_empty() {
            return Ok(());
        }
        let message = format!(
            "The following service limits were exceeded: {}. Request a service limit increase \
             from the service limits page in the console.",
            exceeded.join(", ")
        );
        Err(Refusal::new(StatusCode::BAD_REQUEST, "LimitExceeded", message))
    }

    /// The bound that leaves no room for one more instance, if there is one.
    pub(crate) fn full(&self, domain: &str, shape: &str) -> Option<&Capacity> {
        self.capacity
            .iter()
            .find(|capacity| self.room_under(capacity, domain, shape).is_some_and(|room| room == 0))
    }

    /// How many more instances a bound allows; `None` if it does not concern them.
    fn room_under(&self, capacity: &Capacity, domain: &str, shape: &str) -> Option<u64> {
        let concerns =
            |bound: &Option<String>, value: &str| bound.as_ref().is_none_or(|bound| bound == value);
        if !concerns(&capacity.availability_domain, domain) || !concerns(&capacity.shape, shape) {
            return None;
        }
        let taken =
            self.usage.rooms(capacity.availability_domain.as_deref(), capacity.shape.as_deref());
        Some(capacity.instances.saturating_sub(taken))
    }

    /// How many more instances of a shape fit; `None` for any number.
    fn room(&self, domain: &str, shape: &str) -> Option<u64> {
        let bounds = self.capacity.iter();
        bounds.filter_map(|capacity| self.room_under(capacity, domain, shape)).min()
    }
}

/// A float that holds a count.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` from a float saturates, and there is no other conversion"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

/// A row of a list of limits, by what it shows.
fn row(view: Value) -> Row<Value> {
    Row { key: view.to_string(), view }
}

fn check_service(name: &str) -> Result<(), Refusal> {
    if name == "compute" { Ok(()) } else { Err(Refusal::not_found("service", name)) }
}

/// Refuses a compartment where OCI takes the tenancy only.
fn check_tenancy(world: &World, compartment: &str) -> Result<(), Refusal> {
    if compartment == world.settings.tenancy {
        return Ok(());
    }
    Err(Refusal::invalid("compartmentId has to be the tenancy"))
}

/// `GET /20190729/limitValues`.
pub(crate) fn values(world: &mut World, call: &Call<'_>) -> Outcome {
    let query = &call.query;
    check_tenancy(world, query.require("compartmentId")?)?;
    check_service(query.require("serviceName")?)?;
    let mut names: Vec<&str> = world.limits.iter().map(|limit| limit.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut rows = Vec::new();
    for name in names.into_iter().filter(|name| query.allows("name", name)) {
        for domain in &world.settings.availability_domains {
            if !query.allows("availabilityDomain", domain) || !query.allows("scopeType", "AD") {
                continue;
            }
            // A limit of one domain says nothing of the others.
            let Some(value) = world.limit(name, domain) else {
                continue;
            };
            rows.push(row(json!({
                "name": name,
                "scopeType": "AD",
                "availabilityDomain": domain,
                "value": value,
            })));
        }
    }
    page(rows, query, world.settings.page_size, false)
}

/// `GET /20190729/services/{service}/limits/{limit}/resourceAvailability`.
pub(crate) fn availability(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    check_service(call.segment(0))?;
    let (name, domain) = (call.segment(1), call.query.require("availabilityDomain")?);
    world.check_domain(domain)?;
    let value = world.limit(name, domain).ok_or_else(|| Refusal::not_found("limit", name))?;
    let used = world.usage.of_limit(name, domain);
    let left = (real(value) - used).max(0.0);
    Ok(Answer::json(&json!({
        "used": whole(used),
        "available": whole(left),
        "fractionalUsage": used,
        "fractionalAvailability": left,
        "effectiveQuotaValue": real(value),
    })))
}

/// `GET /20190729/services`.
pub(crate) fn services(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    Ok(Answer::json(&[json!({"name": "compute", "description": "Compute"})]))
}

/// `GET /20190729/limitDefinitions`.
pub(crate) fn definitions(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    let mut names: Vec<&String> = world.limits.iter().map(|limit| &limit.name).collect();
    names.sort_unstable();
    names.dedup();
    let rows = names.into_iter().filter(|name| call.query.allows("name", name)).map(|name| {
        row(json!({
            "name": name,
            "serviceName": "compute",
            "description": name,
            "scopeType": "AD",
            "areQuotasSupported": true,
            "isResourceAvailabilitySupported": true,
            "isDeprecated": false,
            "isEligibleForLimitIncrease": true,
            "isDynamic": false,
        }))
    });
    page(rows.collect(), &call.query, world.settings.page_size, false)
}

/// `POST /20160918/computeCapacityReports`.
pub(crate) fn capacity_report(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let compartment = body.required("compartmentId")?;
    check_tenancy(world, &compartment)?;
    let domain = body.required("availabilityDomain")?;
    world.check_domain(&domain)?;
    let asked = body.get("shapeAvailabilities").and_then(Value::as_array).cloned();
    let asked = asked.ok_or_else(|| Refusal::missing("shapeAvailabilities"))?;
    let mut rows = Vec::new();
    for row in asked {
        let row = row.as_object().cloned().unwrap_or_default();
        rows.push(report(world, &domain, row)?);
    }
    Ok(Answer::json(&json!({
        "compartmentId": compartment,
        "availabilityDomain": domain,
        "shapeAvailabilities": rows,
        "timeCreated": world.clock.stamp(),
    })))
}

fn report(world: &World, domain: &str, mut row: Map<String, Value>) -> Result<Value, Refusal> {
    let name = row.required("instanceShape")?;
    let known: Option<&ShapeSize> = world.shape(&name);
    let (status, count) = match (known, world.room(domain, &name)) {
        (None, _) => ("HARDWARE_NOT_SUPPORTED", json!(0)),
        (Some(_), Some(0)) => ("OUT_OF_HOST_CAPACITY", json!(0)),
        (Some(_), Some(room)) => ("AVAILABLE", json!(room)),
        (Some(_), None) => ("AVAILABLE", Value::Null),
    };
    row.insert("availabilityStatus".to_owned(), json!(status));
    row.insert("availableCount".to_owned(), count);
    Ok(Value::Object(row))
}

/// Sets a limit, in place of an earlier one of the same name and place.
pub(crate) fn set(limits: &mut Vec<Limit>, new: Limit) {
    limits.retain(|limit| {
        limit.name != new.name || limit.availability_domain != new.availability_domain
    });
    limits.push(new);
}
