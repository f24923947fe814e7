//! The metadata service, version 2, on the same port as everything else.

use crate::answer::{Answer, Refusal};
use crate::federation::{Asked, MANAGEMENT_INSTANCE, Part};
use crate::network::Addresses;
use crate::state::State;
use crate::world::World;
use hyper::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};

/// What a path asks of the metadata service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ask<'a> {
    /// Which instance asks; `None` if only its address tells.
    instance: Option<&'a str>,
    /// The rest of the path, such as `instance/region`.
    what: &'a str,
}

/// Reads `/opc/v2/…`, or `/machines/{instance}/opc/v2/…`, by which machines on one host are
/// told apart; `None` for paths of other services.
pub(crate) fn ask(path: &str) -> Option<Ask<'_>> {
    if let Some(what) = path.strip_prefix("/opc/v2/") {
        return Some(Ask { instance: None, what: what.trim_end_matches('/') });
    }
    let (instance, rest) = path.strip_prefix("/machines/")?.split_once('/')?;
    let what = rest.strip_prefix("opc/v2/")?;
    Some(Ask { instance: Some(instance), what: what.trim_end_matches('/') })
}

/// The instance that has an address, or the management node where none has it.
///
/// Machines on the host itself all have the same address, and name themselves in the path.
fn at(world: &World, peer: IpAddr) -> &str {
    let mut records = world.instances.iter();
    let found = records.find(|(_, record)| {
        IpAddr::from(record.vnic.address) == peer && record.state() != State::Terminated
    });
    found.filter(|_| peer != Ipv4Addr::LOCALHOST).map_or(MANAGEMENT_INSTANCE, |(id, _)| id)
}

/// What was asked for.
pub(crate) enum Found {
    /// The answer.
    Answer(Answer),
    /// A part of the instance's identity, which the federation has to give.
    Identity(Asked),
}

/// Answers, if the caller says `Authorization: Bearer Oracle`.
pub(crate) fn answer(
    world: &World,
    ask: &Ask<'_>,
    peer: IpAddr,
    headers: &HeaderMap,
) -> Result<Found, Refusal> {
    let authorized = headers.get("authorization").is_some_and(|value| value == "Bearer Oracle");
    if !authorized {
        let message = "the metadata service wants the header Authorization: Bearer Oracle";
        return Err(Refusal::new(StatusCode::FORBIDDEN, "NotAuthorized", message));
    }
    let instance = ask.instance.unwrap_or_else(|| at(world, peer));
    let document =
        document(world, instance).ok_or_else(|| Refusal::not_found("instance", instance))?;
    let missing = || Refusal::not_found("metadata", ask.what);
    let identity = |part| Ok(Found::Identity(Asked { instance: instance.to_owned(), part }));
    match ask.what.split_once('/') {
        Some(("identity", "cert.pem")) => identity(Part::Certificate),
        Some(("identity", "key.pem")) => identity(Part::Key),
        Some(("identity", "intermediate.pem")) => identity(Part::Intermediate),
        Some(("instance", inside)) => {
            let value = document.pointer(&format!("/{inside}")).ok_or_else(missing)?;
            Ok(Found::Answer(shown(value)))
        }
        None if ask.what == "instance" => Ok(Found::Answer(Answer::json(&document))),
        None if ask.what == "host" => Ok(Found::Answer(Answer::json(&host(world, instance)))),
        None if ask.what == "vnics" => Ok(Found::Answer(Answer::json(&vnics(world, instance)))),
        Some(_) | None => Err(missing()),
    }
}

/// Texts are given as they are, anything else as JSON.
fn shown(value: &Value) -> Answer {
    match value {
        Value::String(text) => Answer::text(text.clone()),
        other => Answer::json(other),
    }
}

/// What the service knows about an instance.
fn document(world: &World, id: &str) -> Option<Value> {
    let settings = &world.settings;
    let region = json!({
        "realmKey": "oc1",
        "realmDomainComponent": settings.realm_domain,
        "regionKey": settings.region_key.to_uppercase(),
        "regionIdentifier": settings.region,
    });
    let general = |instance: Value| {
        let mut all = instance.as_object().cloned().unwrap_or_default();
        all.insert("canonicalRegionName".to_owned(), json!(settings.region));
        all.insert("region".to_owned(), json!(settings.region_key));
        all.insert("regionInfo".to_owned(), region.clone());
        all.insert("tenantId".to_owned(), json!(settings.tenancy));
        let domain = all.get("availabilityDomain").and_then(Value::as_str).map(short_name);
        all.insert("ociAdName".to_owned(), json!(domain));
        Value::Object(all)
    };
    if let Some(record) = world.instances.get(id) {
        let mut view = serde_json::to_value(&record.instance).ok()?;
        let fields = view.as_object_mut()?;
        let state = if record.preempted { State::Terminating } else { record.state() };
        fields.insert("state".to_owned(), json!(spelled(state)));
        fields.insert("image".to_owned(), json!(record.instance.image_id));
        fields.insert("hostname".to_owned(), json!(record.vnic.label));
        return Some(general(view));
    }
    (id == MANAGEMENT_INSTANCE).then(|| general(management(world)))
}

/// An availability domain as machines are told: `phx-ad-1` for `Uocm:PHX-AD-1`.
fn short_name(domain: &str) -> String {
    domain.rsplit(':').next().unwrap_or(domain).to_lowercase()
}

/// A state as the metadata service spells it: `Running`, and not `RUNNING`.
fn spelled(state: State) -> String {
    let (first, rest) = state.word().split_at_checked(1).unwrap_or_default();
    format!("{first}{}", rest.to_lowercase())
}

/// The head node, which is not one of the cloud's instances.
fn management(world: &World) -> Value {
    json!({
        "id": MANAGEMENT_INSTANCE,
        "displayName": "mgmt",
        "hostname": "mgmt",
        "availabilityDomain": world.settings.availability_domains.first(),
        "faultDomain": "FAULT-DOMAIN-1",
        "compartmentId": world.settings.compartments.first(),
        "shape": "VM.Standard2.1",
        "metadata": {},
        "state": spelled(State::Running),
    })
}

/// Where the machine is: a rack for every fault domain of an availability domain, and a network block for the domain.
fn host(world: &World, id: &str) -> Value {
    let record = world.instances.get(id);
    let domain = record.map(|record| short_name(&record.instance.availability_domain));
    let block = domain.unwrap_or_else(|| "phx-ad-1".to_owned());
    let fault_domain = record.map_or("FAULT-DOMAIN-1", |record| &record.instance.fault_domain);
    let rack = format!("{block}-{}", fault_domain.to_lowercase());
    json!({"id": format!("host-{rack}"), "rackId": rack, "networkBlockId": block, "buildingId": "1"})
}

fn vnics(world: &World, id: &str) -> Vec<Value> {
    let record = world.instances.get(id).into_iter();
    record
        .map(|record| {
            json!({
                "vnicId": record.vnic.id,
                "privateIp": record.vnic.address,
                "macAddr": record.vnic.mac,
                "vlanTag": 0,
                "virtualRouterIp": world.addresses.get(&record.vnic.subnet).map(Addresses::router),
                "subnetCidrBlock": cidr(world, &record.vnic.subnet),
            })
        })
        .collect()
}

fn cidr<'a>(world: &'a World, subnet: &str) -> Option<&'a str> {
    let mut subnets = world.settings.subnets.iter();
    subnets.find(|it| it.id == subnet).map(|it| it.cidr.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let mgmt = |what| Some(Ask { instance: None, what });
        for (path, expected) in [
            ("/opc/v2/instance/", mgmt("instance")),
            ("/opc/v2/instance/region", mgmt("instance/region")),
            ("/opc/v1/instance/", None),
            ("/machines/abc/opc/v2/vnics/", Some(Ask { instance: Some("abc"), what: "vnics" })),
            ("/machines/abc", None),
            ("/20160918/instances", None),
        ] {
            assert_eq!(ask(path), expected, "{path}");
        }
    }
}
