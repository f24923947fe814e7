//! What there is beside instances: shapes, subnets, networks and compute clusters.

use crate::answer::{Answer, Outcome, Refusal};
use crate::network::Addresses;
use crate::page::{Row, cut, page, turn};
use crate::query::{Call, Fields};
use crate::settings::{ShapeSize, Subnet};
use crate::world::{World, etag_of};
use serde_json::{Map, Value, json};

fn shape_view(shape: &ShapeSize) -> Value {
    let options = shape.flexible.map(|(ocpus, memory)| {
        (
            json!({"min": 1.0, "max": ocpus, "maxPerNumaNode": ocpus / 2.0}),
            json!({
                "minInGBs": 1.0,
                "maxInGBs": memory,
                "defaultPerOcpuInGBs": shape.memory,
                "minPerOcpuInGBs": ShapeSize::MEMORY_PER_OCPU.0,
                "maxPerOcpuInGBs": ShapeSize::MEMORY_PER_OCPU.1,
                "maxPerNumaNodeInGBs": memory / 2.0,
            }),
        )
    });
    let (ocpu_options, memory_options) = options.unzip();
    json!({
        "shape": shape.name,
        "ocpus": shape.ocpus,
        "memoryInGBs": shape.memory,
        "isFlexible": shape.flexible.is_some(),
        "ocpuOptions": ocpu_options,
        "memoryOptions": memory_options,
        "networkingBandwidthInGbps": 1.0,
        "maxVnicAttachments": 2,
        "gpus": shape.gpus,
        "gpuDescription": (shape.gpus > 0).then_some("simulated"),
        "localDisks": 0,
        "localDisksTotalSizeInGBs": null,
        "billingType": "PAID",
        "quotaNames": shape.limits,
        "isLiveMigrationSupported": true,
        "rdmaPorts": shape.rdma_ports,
        "rdmaBandwidthInGbps": shape.rdma_ports * 100,
        "baselineOcpuUtilizations": ["BASELINE_1_1"],
        "processorDescription": "simulated",
        "networkPorts": 1,
    })
}

/// `GET /20160918/shapes`.
pub(crate) fn shapes(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    if let Some(domain) = call.query.get("availabilityDomain") {
        world.check_domain(domain)?;
    }
    let shapes = world.settings.shapes.iter().enumerate();
    let shapes = shapes.filter(|(_, shape)| call.query.allows("shape", &shape.name));
    let rows =
        shapes.map(|(n, shape)| Row { view: shape_view(shape), key: format!("{n:06}") }).collect();
    page(rows, &call.query, world.settings.page_size, false)
}

fn subnet_view(world: &World, subnet: &Subnet) -> Value {
    json!({
        "id": subnet.id,
        "availabilityDomain": null,
        "cidrBlock": subnet.cidr,
        "compartmentId": world.settings.compartments.first(),
        "definedTags": {},
        "freeformTags": subnet.freeform_tags,
        "displayName": subnet.name,
        "dnsLabel": "sub",
        "lifecycleState": "AVAILABLE",
        "prohibitPublicIpOnVnic": true,
        "routeTableId": "ocid1.routetable.oc1.phx.rt1",
        "securityListIds": [],
        "subnetDomainName": "sub.vcn.oraclevcn.com",
        "timeCreated": "2026-01-01T00:00:00.000Z",
        "vcnId": subnet.vcn,
        "virtualRouterIp": world.addresses.get(&subnet.id).map(Addresses::router),
        "virtualRouterMac": "00:00:17:00:00:01",
    })
}

/// `GET /20160918/subnets`.
pub(crate) fn subnets(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let rows = world.subnets_of(compartment).filter(|subnet| {
        call.query.allows("vcnId", &subnet.vcn) && call.query.allows("displayName", &subnet.name)
    });
    let rows = rows
        .map(|subnet| Row { view: subnet_view(world, subnet), key: subnet.id.clone() })
        .collect();
    page(rows, &call.query, world.settings.page_size, false)
}

/// `GET /20160918/subnets/{id}`.
pub(crate) fn subnet(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let subnet = world.settings.subnets.iter().find(|subnet| subnet.id == id);
    let subnet = subnet.ok_or_else(|| Refusal::not_found("subnet", id))?;
    Ok(Answer::json(&subnet_view(world, subnet)).header("etag", "subnet"))
}

fn vcn_view(world: &World, subnet: &Subnet) -> Value {
    json!({
        "id": subnet.vcn,
        "cidrBlock": subnet.cidr,
        "cidrBlocks": [subnet.cidr],
        "compartmentId": world.settings.compartments.first(),
        "displayName": "vcn",
        "dnsLabel": "vcn",
        "vcnDomainName": "vcn.oraclevcn.com",
        "lifecycleState": "AVAILABLE",
        "freeformTags": subnet.freeform_tags,
        "definedTags": {},
        "timeCreated": "2026-01-01T00:00:00.000Z",
    })
}

/// `GET /20160918/vcns`.
pub(crate) fn vcns(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let mut rows: Vec<Row<Value>> = Vec::new();
    for subnet in world.subnets_of(compartment) {
        if rows.iter().all(|row| row.key != subnet.vcn) {
            rows.push(Row { view: vcn_view(world, subnet), key: subnet.vcn.clone() });
        }
    }
    page(rows, &call.query, world.settings.page_size, false)
}

/// `GET /20160918/vcns/{id}`.
pub(crate) fn vcn(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let subnet = world.settings.subnets.iter().find(|subnet| subnet.vcn == id);
    let subnet = subnet.ok_or_else(|| Refusal::not_found("vcn", id))?;
    Ok(Answer::json(&vcn_view(world, subnet)).header("etag", "vcn"))
}

impl World {
    /// The subnets of a compartment: all are in the first.
    fn subnets_of(&self, compartment: &str) -> impl Iterator<Item = &Subnet> {
        let here = self.settings.compartments.first().is_some_and(|first| first == compartment);
        self.settings.subnets.iter().filter(move |_| here)
    }

    /// A compute cluster of this id, from the settings.
    pub(crate) fn add_compute_cluster(&mut self, id: &str) {
        let view = json!({
            "id": id,
            "availabilityDomain": self.settings.availability_domains.first(),
            "compartmentId": self.settings.compartments.first(),
            "displayName": "cluster",
            "lifecycleState": "ACTIVE",
            "timeCreated": self.clock.stamp(),
            "freeformTags": {},
            "definedTags": {},
        });
        self.compute_clusters.insert(id.to_owned(), view.as_object().cloned().unwrap_or_default());
    }
}

/// `POST /20160918/computeClusters`.
pub(crate) fn create_compute_cluster(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let compartment = body.required("compartmentId")?;
    world.check_compartment(&compartment)?;
    let domain = body.required("availabilityDomain")?;
    world.check_domain(&domain)?;
    let tags = |tags: Option<&Map<String, Value>>| Value::Object(tags.cloned().unwrap_or_default());
    let (freeform, defined) = (tags(body.freeform_tags()?), tags(body.defined_tags()?));
    let name = body.text("displayName")?.unwrap_or_else(|| "computecluster".to_owned());
    let id = world.new_id("computecluster");
    world.add_compute_cluster(&id);
    let cluster = world.compute_clusters.entry(id).or_default();
    cluster.extend([
        ("availabilityDomain".to_owned(), json!(domain)),
        ("compartmentId".to_owned(), json!(compartment)),
        ("displayName".to_owned(), json!(name)),
        ("freeformTags".to_owned(), freeform),
        ("definedTags".to_owned(), defined),
    ]);
    Ok(Answer::json(&*cluster).header("etag", etag_of(cluster)))
}

fn is(view: &Map<String, Value>, call: &Call<'_>, field: &str) -> bool {
    call.query.allows(field, view.get(field).and_then(Value::as_str).unwrap_or_default())
}

/// `GET /20160918/computeClusters`, whose list is an object with `items`.
pub(crate) fn compute_clusters(world: &mut World, call: &Call<'_>) -> Outcome {
    world.check_compartment(call.query.require("compartmentId")?)?;
    let wanted = world.compute_clusters.iter().filter(|(_, cluster)| {
        ["compartmentId", "availabilityDomain", "displayName"]
            .into_iter()
            .all(|field| is(cluster, call, field))
    });
    let rows = wanted.map(|(id, cluster)| Row { view: cluster, key: id.clone() }).collect();
    let (items, next) = cut(rows, &call.query, world.settings.page_size, false)?;
    Ok(turn(Answer::json(&json!({"items": items})), next))
}

/// `GET /20160918/computeClusters/{id}`.
pub(crate) fn compute_cluster(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let cluster = world.compute_clusters.get(id);
    let cluster = cluster.ok_or_else(|| Refusal::not_found("compute cluster", id))?;
    Ok(Answer::json(cluster).header("etag", etag_of(cluster)))
}

/// `DELETE /20160918/computeClusters/{id}`.
pub(crate) fn delete_compute_cluster(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let cluster = world.compute_clusters.get(id);
    let cluster = cluster.ok_or_else(|| Refusal::not_found("compute cluster", id))?;
    call.check_match(&etag_of(cluster))?;
    let used = world
        .instances
        .values()
        .any(|record| record.state().is_live() && record.compute_cluster.as_deref() == Some(id));
    if used {
        return Err(Refusal::incorrect_state("the compute cluster has instances"));
    }
    world.compute_clusters.remove(id);
    Ok(Answer::empty())
}
