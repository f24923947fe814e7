//! Identity: availability and fault domains, compartments, regions.

use crate::answer::{Answer, Outcome, Refusal};
use crate::query::Call;
use crate::world::World;
use serde_json::{Value, json};

/// `GET /20160918/availabilityDomains`.
pub(crate) fn availability_domains(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let names = world.settings.availability_domains.iter();
    let rows: Vec<Value> = (1..)
        .zip(names)
        .map(|(n, name)| {
            let id = format!("ocid1.availabilitydomain.oc1..{n}");
            json!({"name": name, "id": id, "compartmentId": compartment})
        })
        .collect();
    Ok(Answer::json(&rows))
}

/// `GET /20160918/faultDomains`.
pub(crate) fn fault_domains(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let domain = call.query.require("availabilityDomain")?;
    world.check_domain(domain)?;
    let row = |n: u32| {
        json!({
            "name": format!("FAULT-DOMAIN-{n}"),
            "id": format!("ocid1.faultdomain.oc1..{n}"),
            "compartmentId": compartment,
            "availabilityDomain": domain,
        })
    };
    Ok(Answer::json(&(1..=3).map(row).collect::<Vec<_>>()))
}

fn compartment_view(world: &World, id: &str) -> Value {
    json!({
        "id": id,
        "compartmentId": world.settings.tenancy,
        "name": id.rsplit('.').next(),
        "description": "simulated",
        "lifecycleState": "ACTIVE",
        "isAccessible": true,
        "timeCreated": "2026-01-01T00:00:00.000Z",
        "freeformTags": {},
        "definedTags": {},
    })
}

/// `GET /20160918/compartments`.
pub(crate) fn compartments(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    let ids = world.settings.compartments.iter();
    Ok(Answer::json(&ids.map(|id| compartment_view(world, id)).collect::<Vec<_>>()))
}

/// `GET /20160918/compartments/{id}`.
pub(crate) fn compartment(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    world.check_compartment(id)?;
    Ok(Answer::json(&compartment_view(world, id)).header("etag", "compartment"))
}

/// `GET /20160918/tenancies/{id}`.
pub(crate) fn tenancy(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    if id != world.settings.tenancy {
        return Err(Refusal::not_found("tenancy", id));
    }
    Ok(Answer::json(&json!({
        "id": id,
        "name": "simulated",
        "description": "simulated",
        "homeRegionKey": world.settings.region_key.to_uppercase(),
        "freeformTags": {},
        "definedTags": {},
    })))
}

/// `GET /20160918/tenancies/{id}/regionSubscriptions`.
pub(crate) fn region_subscriptions(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    if id != world.settings.tenancy {
        return Err(Refusal::not_found("tenancy", id));
    }
    Ok(Answer::json(&[json!({
        "regionKey": world.settings.region_key.to_uppercase(),
        "regionName": world.settings.region,
        "status": "READY",
        "isHomeRegion": true,
    })]))
}

/// `GET /20160918/regions`.
#[expect(clippy::unnecessary_wraps, reason = "as every operation")]
pub(crate) fn regions(world: &mut World, _: &Call<'_>) -> Outcome {
    Ok(Answer::json(&[json!({
        "key": world.settings.region_key.to_uppercase(),
        "name": world.settings.region,
    })]))
}
