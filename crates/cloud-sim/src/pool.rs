//! Instance configurations, and pools that launch by them.

use crate::answer::{Answer, Outcome, Refusal};
use crate::launch::launch;
use crate::query::{Call, Fields};
use crate::table::Table;
use crate::world::World;
use serde_json::{Map, Value, json};

/// The most instances of a pool: they are launched at once, while everybody else waits.
const MOST_SIZE: u64 = 1000;

/// How much of a host name is left when a number of any length is put behind it.
const LABEL: usize = 42;

/// `POST /20160918/instanceConfigurations`.
pub(crate) fn create_configuration(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let compartment = body.required("compartmentId")?;
    world.check_compartment(&compartment)?;
    if body.required("source")? != "NONE" {
        return Err(Refusal::invalid("only source NONE is simulated"));
    }
    let details = body.object("instanceDetails")?;
    let details = details.ok_or_else(|| Refusal::missing("instanceDetails"))?;
    if details.required("instanceType")? != "compute" {
        return Err(Refusal::invalid("instanceType has to be compute"));
    }
    let id = world.new_id("instanceconfiguration");
    let view = json!({
        "id": id,
        "compartmentId": compartment,
        "displayName": body.text("displayName")?,
        "instanceDetails": details,
        "timeCreated": world.clock.stamp(),
    });
    let answer = Answer::json(&view).header("etag", "ic");
    world.configurations.insert(id.clone(), view.as_object().cloned().unwrap_or_default());
    world.touch(Table::Configurations, &id);
    Ok(answer)
}

/// `GET /20160918/instanceConfigurations/{id}`.
pub(crate) fn configuration(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let found = world.configurations.get(id);
    let found = found.ok_or_else(|| Refusal::not_found("instance configuration", id))?;
    Ok(Answer::json(found).header("etag", "ic"))
}

/// `POST /20160918/instancePools`: launches as many instances as the pool has.
pub(crate) fn create_pool(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let compartment = body.required("compartmentId")?;
    world.check_compartment(&compartment)?;
    let by = body.required("instanceConfigurationId")?;
    let by_details = world.configurations.get(&by).and_then(|found| found.get("instanceDetails"));
    let details = by_details.and_then(|details| details.get("launchDetails")).cloned();
    let details = details.ok_or_else(|| Refusal::related("instance configuration", &by))?;
    let size = body.get("size").and_then(Value::as_u64);
    let size = size.ok_or_else(|| Refusal::missing("size"))?;
    if size > MOST_SIZE {
        return Err(Refusal::invalid(format!("size {size} is more than {MOST_SIZE}")));
    }
    let places = body.get("placementConfigurations").and_then(Value::as_array).cloned();
    let places = places.filter(|places| !places.is_empty());
    let places = places.ok_or_else(|| Refusal::missing("placementConfigurations"))?;
    let name = body.text("displayName")?;
    let id = world.new_id("instancepool");
    let launched = launch_all(world, call, &details, (size, &places))?;
    let view = json!({
        "id": id,
        "compartmentId": compartment,
        "displayName": name,
        "instanceConfigurationId": by,
        "lifecycleState": "PROVISIONING",
        "placementConfigurations": places,
        "size": size,
        "timeCreated": world.clock.stamp(),
    });
    let answer = Answer::json(&view).header("etag", "ip");
    let mut kept = view.as_object().cloned().unwrap_or_default();
    kept.insert("instances".to_owned(), json!(launched));
    world.pools.insert(id.clone(), kept);
    world.touch(Table::Pools, &id);
    Ok(answer)
}

/// Launches the instances of a pool, one place after another, and gives their ids. If the first
/// is refused there is no pool; if a later one is, the pool stays with those that it has.
fn launch_all(
    world: &mut World,
    call: &Call<'_>,
    details: &Value,
    (size, places): (u64, &[Value]),
) -> Result<Vec<Value>, Refusal> {
    let mut launched = Vec::new();
    for (_, place) in (0..size).zip(places.iter().cycle()) {
        match launch_one(world, call, details, place) {
            Ok(id) => launched.push(id),
            Err(refusal) if launched.is_empty() => return Err(refusal),
            Err(_) => break,
        }
    }
    Ok(launched)
}

/// Launches one instance of a pool and gives its id.
fn launch_one(
    world: &mut World,
    call: &Call<'_>,
    details: &Value,
    place: &Value,
) -> Result<Value, Refusal> {
    let mut body = details.as_object().cloned().unwrap_or_default();
    if let Some(domain) = place.get("availabilityDomain") {
        body.insert("availabilityDomain".to_owned(), domain.clone());
    }
    let mut card = body.object("createVnicDetails")?.cloned().unwrap_or_default();
    if let Some(subnet) = place.get("primarySubnetId") {
        card.insert("subnetId".to_owned(), subnet.clone());
    }
    // One name cannot be that of all.
    if let Some(label) = card.text("hostnameLabel")?.or(body.text("hostnameLabel")?) {
        let label: String = label.chars().take(LABEL).collect();
        let label = format!("{label}-{}", world.next_number());
        card.insert("hostnameLabel".to_owned(), json!(label));
    }
    body.insert("createVnicDetails".to_owned(), Value::Object(card));
    let call = Call {
        path: Vec::new(),
        query: call.query.clone(),
        target: call.target,
        headers: call.headers,
        body: call.body,
        object: Ok(body),
        caller: call.caller,
        later: None,
    };
    let answer = launch(world, &call)?;
    Ok(answer.instance.map_or(Value::Null, Value::String))
}

fn found<'a>(world: &'a World, id: &str) -> Result<&'a Map<String, Value>, Refusal> {
    world.pools.get(id).ok_or_else(|| Refusal::not_found("instance pool", id))
}

fn members<'a>(world: &'a World, pool: &Map<String, Value>) -> Vec<&'a crate::instance::Record> {
    let ids = pool.get("instances").and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(Value::as_str).filter_map(|id| world.instances.get(id)).collect()
}

/// `GET /20160918/instancePools/{id}`: RUNNING when all its instances are.
pub(crate) fn pool(world: &mut World, call: &Call<'_>) -> Outcome {
    let pool = found(world, call.segment(0))?;
    let members = members(world, pool);
    let size = pool.get("size").and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
    let booting = size.is_none_or(|size| members.len() < size)
        || members.iter().any(|record| !record.state().is_on());
    let mut view = pool.clone();
    view.remove("instances");
    let state = if booting { "PROVISIONING" } else { "RUNNING" };
    view.insert("lifecycleState".to_owned(), json!(state));
    Ok(Answer::json(&view).header("etag", "ip"))
}

/// `GET /20160918/instancePools/{id}/instances`.
pub(crate) fn pool_instances(world: &mut World, call: &Call<'_>) -> Outcome {
    let pool = found(world, call.segment(0))?;
    let rows: Vec<Value> = members(world, pool)
        .into_iter()
        .map(|record| {
            let instance = &record.instance;
            json!({
                "id": instance.id,
                "availabilityDomain": instance.availability_domain,
                "compartmentId": instance.compartment_id,
                "displayName": instance.display_name,
                "faultDomain": instance.fault_domain,
                "instanceConfigurationId": pool.get("instanceConfigurationId"),
                "region": instance.region,
                "shape": instance.shape,
                "state": instance.lifecycle_state.word(),
                "timeCreated": instance.time_created,
            })
        })
        .collect();
    Ok(Answer::json(&rows))
}
