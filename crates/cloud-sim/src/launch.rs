//! Launching: what a request has to be, whether there is room, and the new instance.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::{Failure, Instance, Record, Vnic};
use crate::launch_request::LaunchRequest;
use crate::query::{Call, Fields};
use crate::state::State;
use crate::work_request::Work;
use crate::world::{World, etag};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// `POST /20160918/instances`.
pub(crate) fn launch(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let request = LaunchRequest::read(world, body)?;
    world.check_limits(&request)?;
    let failure = doom(world, &request)?;
    let record = build(world, call, request, failure)?;
    let answer = shown(&record);
    let id = record.id().to_owned();
    world.instances.insert(id.clone(), record);
    world.index.touch(&id);
    world.begin(&id);
    Ok(answer)
}

/// An instance as answers show it, with its etag and work request.
pub(crate) fn shown(record: &Record) -> Answer {
    let answer = Answer::json(&record.instance).header("etag", &record.etag);
    let answer = Answer { instance: Some(record.id().to_owned()), ..answer };
    match &record.work {
        Some(work) => answer.header("opc-work-request-id", work),
        None => answer,
    }
}

/// Whether the launch will fail for want of room; refuses it if it is not even accepted.
fn doom(world: &World, request: &LaunchRequest) -> Result<Option<Failure>, Refusal> {
    let Some(full) = world.full(&request.domain, &request.shape.name) else {
        return Ok(None);
    };
    let refusal = Refusal::out_of_capacity();
    if full.fails_later {
        return Ok(Some(Failure { code: refusal.code, message: refusal.message }));
    }
    Err(refusal)
}

fn build(
    world: &mut World,
    call: &Call<'_>,
    request: LaunchRequest,
    failure: Option<Failure>,
) -> Result<Record, Refusal> {
    // All that can be refused comes first: the address, and after it what is never refused.
    let instance = instance(world, call.object()?, &request)?;
    let number = world.next_number();
    let taken_label = world.taken_label(&request);
    let mut instance = instance;
    if world.settings.spread_fault_domains && !call.object()?.contains_key("faultDomain") {
        instance.fault_domain = format!("FAULT-DOMAIN-{}", number % 3 + 1);
    }
    let vnic = world.new_vnic(&request, number)?;
    let compute_cluster = call.object()?.text("computeClusterId")?;
    let failure = failure.or(taken_label).or_else(|| call.failure());
    let work = world.open_work(&Work {
        operation: "LaunchInstance",
        compartment: &request.compartment,
        action: "CREATED",
        kind: "instance",
        id: &instance.id,
    });
    Ok(plan(world, instance, vnic, Seed { request, number, work, failure, compute_cluster }))
}

/// What a record needs beside the instance and its VNIC.
struct Seed {
    request: LaunchRequest,
    number: u64,
    work: String,
    failure: Option<Failure>,
    compute_cluster: Option<String>,
}

fn plan(world: &mut World, instance: Instance, vnic: Vnic, seed: Seed) -> Record {
    let timing = world.settings.timing;
    let step = match seed.failure {
        None => (State::Running, timing.provision),
        Some(_) => (State::Terminated, timing.fail),
    };
    let boot_volume = match &seed.request.boot_volume {
        // A launch that fails leaves the volume as it was: nothing was ever booted from it.
        Some(id) if seed.failure.is_some() => id.clone(),
        Some(id) => world.take_boot_volume(id),
        None => world.new_boot_volume(&instance),
    };
    Record {
        instance,
        vnic,
        etag: etag(),
        number: seed.number,
        ocpus: seed.request.ocpus,
        memory: seed.request.memory,
        plan: VecDeque::from([step]),
        version: 0,
        work: Some(seed.work),
        doomed: seed.failure.is_some(),
        failure: seed.failure,
        boots: 0,
        boot_volume,
        preempted: false,
        compute_cluster: seed.compute_cluster,
    }
}

/// Fields of a launch's body, as the instance shows them.
struct Given<'a>(&'a Map<String, Value>);

impl Given<'_> {
    fn object(&self, name: &str) -> Result<Map<String, Value>, Refusal> {
        Ok(self.0.object(name)?.cloned().unwrap_or_default())
    }

    /// The usual fields with those that are given over them.
    fn over(&self, name: &str, mut usual: Value) -> Result<Value, Refusal> {
        if let (Value::Object(all), Some(given)) = (&mut usual, self.0.object(name)?) {
            all.extend(given.clone());
        }
        Ok(usual)
    }

    fn name(&self, stamp: &str) -> Result<String, Refusal> {
        let digits = || stamp.chars().filter(char::is_ascii_digit).collect::<String>();
        Ok(self.0.text("displayName")?.unwrap_or_else(|| format!("instance{}", digits())))
    }
}

fn instance(
    world: &World,
    body: &Map<String, Value>,
    request: &LaunchRequest,
) -> Result<Instance, Refusal> {
    let given = Given(body);
    let stamp = world.clock.stamp();
    Ok(Instance {
        id: world.new_id("instance"),
        availability_domain: request.domain.clone(),
        compartment_id: request.compartment.clone(),
        display_name: given.name(&stamp)?,
        fault_domain: request.fault_domain.clone(),
        freeform_tags: body.freeform_tags()?.cloned().unwrap_or_default(),
        defined_tags: body.defined_tags()?.cloned().unwrap_or_default(),
        system_tags: Map::new(),
        extended_metadata: given.object("extendedMetadata")?,
        metadata: given.object("metadata")?,
        region: world.settings.region_key.clone(),
        shape: request.shape.name.clone(),
        shape_config: request.shape_config(),
        source_details: request.source.clone(),
        image_id: request.image.clone(),
        time_created: stamp,
        launch_mode: "PARAVIRTUALIZED".to_owned(),
        launch_options: given.over("launchOptions", usual_launch_options())?,
        instance_options: given.over("instanceOptions", usual_options())?,
        availability_config: given.over("availabilityConfig", usual_availability())?,
        agent_config: given.over("agentConfig", usual_agent())?,
        preemptible_instance_config: body
            .object("preemptibleInstanceConfig")?
            .cloned()
            .map(Value::Object),
        capacity_reservation_id: body.text("capacityReservationId")?,
        dedicated_vm_host_id: body.text("dedicatedVmHostId")?,
        ipxe_script: body.text("ipxeScript")?,
        platform_config: body.object("platformConfig")?.cloned().map(Value::Object),
        time_maintenance_reboot_due: None,
        is_cross_numa_node: false,
        lifecycle_state: State::Provisioning,
    })
}

fn usual_options() -> Value {
    json!({"areLegacyImdsEndpointsDisabled": false})
}

fn usual_availability() -> Value {
    json!({"isLiveMigrationPreferred": null, "recoveryAction": "RESTORE_INSTANCE"})
}

fn usual_launch_options() -> Value {
    json!({
        "bootVolumeType": "PARAVIRTUALIZED",
        "firmware": "UEFI_64",
        "networkType": "PARAVIRTUALIZED",
        "remoteDataVolumeType": "PARAVIRTUALIZED",
        "isPvEncryptionInTransitEnabled": false,
        "isConsistentVolumeNamingEnabled": true,
    })
}

fn usual_agent() -> Value {
    json!({
        "isMonitoringDisabled": false,
        "isManagementDisabled": false,
        "areAllPluginsDisabled": false,
        "pluginsConfig": null,
    })
}
