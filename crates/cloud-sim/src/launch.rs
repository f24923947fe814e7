//! Launching: what a request has to be, whether there is room, and the new instance.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::{Failure, Instance, Record, Vnic};
use crate::journal::Table;
use crate::lifecycle::Event;
use crate::query::{Call, Fields};
use crate::state::State;
use crate::wish::Wish;
use crate::work_request::Work;
use crate::world::{World, etag};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// What a retry token was used for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TokenUse {
    pub(crate) digest: String,
    pub(crate) instance: String,
    pub(crate) work: String,
}

/// `POST /20160918/instances`.
pub(crate) fn launch(world: &mut World, call: &Call<'_>) -> Outcome {
    let token = token(call)?;
    if let Some(token) = &token
        && let Some(used) = world.tokens.get(token)
    {
        return repeat(world, used, call);
    }
    let body = call.object()?;
    let wish = Wish::read(world, &body)?;
    world.check_limits(&wish)?;
    let failure = doom(world, call, &wish)?;
    let record = build(world, &body, wish, failure)?;
    let (id, work) = (record.id().to_owned(), record.work.clone().unwrap_or_default());
    if let Some(token) = token {
        let use_of = TokenUse { digest: digest(call.body), instance: id.clone(), work };
        world.tokens.insert(token.clone(), use_of);
        world.touch(Table::Tokens, &token);
        world.schedule(world.settings.timing.keep_token, Event::ForgetToken(token));
    }
    let answer = shown(&record);
    world.instances.insert(id.clone(), record);
    world.touch(Table::Instances, &id);
    world.begin(&id);
    Ok(answer)
}

/// The retry token, made the caller's own.
fn token(call: &Call<'_>) -> Result<Option<String>, Refusal> {
    let Some(token) = call.header("opc-retry-token") else {
        return Ok(None);
    };
    if token.is_empty() || token.chars().count() > 64 {
        return Err(Refusal::invalid("opc-retry-token has to be of 1 to 64 characters"));
    }
    Ok(Some(format!("{} {token}", call.caller)))
}

fn digest(body: &[u8]) -> String {
    STANDARD.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, body))
}

/// A launch whose token was used before: the same instance again, or a refusal.
fn repeat(world: &World, used: &TokenUse, call: &Call<'_>) -> Outcome {
    let alive = world.instances.get(&used.instance).filter(|record| record.state().is_live());
    match alive {
        Some(record) if used.digest == digest(call.body) => {
            let mut again = record.clone();
            again.work = Some(used.work.clone());
            Ok(shown(&again))
        }
        Some(_) | None => Err(Refusal::new(
            StatusCode::CONFLICT,
            "InvalidatedRetryToken",
            "The provided retry token was used in an earlier request that resulted in a system \
             update, but a subsequent operation invalidated the token.",
        )),
    }
}

/// An instance as answers show it, with its etag and work request.
pub(crate) fn shown(record: &Record) -> Answer {
    let answer = Answer::json(&record.instance).header("etag", &record.etag);
    match &record.work {
        Some(work) => answer.header("opc-work-request-id", work),
        None => answer,
    }
}

/// Whether the launch will fail after it was accepted; refuses it if there is no room at all.
fn doom(world: &World, call: &Call<'_>, wish: &Wish) -> Result<Option<Failure>, Refusal> {
    if let Some(failure) = &call.fail_later {
        return Ok(Some(failure.clone()));
    }
    let Some(full) = world.full(&wish.domain, &wish.shape.name) else {
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
    body: &Map<String, Value>,
    wish: Wish,
    failure: Option<Failure>,
) -> Result<Record, Refusal> {
    let id = world.new_id("instance");
    let number = world.next_number();
    let vnic = world.new_vnic(&wish, number)?;
    let work = world.open_work(&Work {
        operation: "LaunchInstance",
        compartment: &wish.compartment,
        action: "CREATED",
        kind: "instance",
        id: &id,
    });
    let instance = instance(world, id, body, &wish)?;
    Ok(plan(world, instance, vnic, Seed { wish, number, work, failure }))
}

/// What a record needs beside the instance and its VNIC.
struct Seed {
    wish: Wish,
    number: u64,
    work: String,
    failure: Option<Failure>,
}

fn plan(world: &mut World, instance: Instance, vnic: Vnic, seed: Seed) -> Record {
    let timing = world.settings.timing;
    let step = match seed.failure {
        None => (State::Running, timing.provision),
        Some(_) => (State::Terminated, timing.fail),
    };
    let boot_volume = match &seed.wish.boot_volume {
        Some(id) => id.clone(),
        None => world.new_boot_volume(&instance),
    };
    Record {
        instance,
        vnic,
        etag: etag(),
        number: seed.number,
        ocpus: seed.wish.ocpus,
        memory: seed.wish.memory,
        plan: VecDeque::from([step]),
        version: 0,
        work: Some(seed.work),
        failure: seed.failure,
        boots: 0,
        boot_volume,
    }
}

fn instance(
    world: &World,
    id: String,
    body: &Map<String, Value>,
    wish: &Wish,
) -> Result<Instance, Refusal> {
    let object = |name: &str| Ok(body.object(name)?.unwrap_or_default());
    let merged = |name: &str, usual: Value| -> Result<Value, Refusal> {
        let mut all = usual.as_object().cloned().unwrap_or_default();
        all.extend(body.object(name)?.unwrap_or_default());
        Ok(Value::Object(all))
    };
    let stamp = world.clock.stamp();
    let name = body
        .text("displayName")?
        .unwrap_or_else(|| format!("instance{}", stamp.replace(['-', ':', '.', 'T', 'Z'], "")));
    Ok(Instance {
        id,
        availability_domain: wish.domain.clone(),
        compartment_id: wish.compartment.clone(),
        display_name: name,
        fault_domain: wish.fault_domain.clone(),
        freeform_tags: object("freeformTags")?,
        defined_tags: object("definedTags")?,
        system_tags: Map::new(),
        extended_metadata: object("extendedMetadata")?,
        metadata: object("metadata")?,
        region: world.settings.region_key.clone(),
        shape: wish.shape.name.clone(),
        shape_config: wish.shape_config(),
        source_details: wish.source.clone(),
        image_id: wish.image.clone(),
        time_created: stamp,
        launch_mode: "PARAVIRTUALIZED".to_owned(),
        launch_options: merged("launchOptions", usual_launch_options())?,
        instance_options: merged(
            "instanceOptions",
            json!({"areLegacyImdsEndpointsDisabled": false}),
        )?,
        availability_config: merged(
            "availabilityConfig",
            json!({"isLiveMigrationPreferred": null, "recoveryAction": "RESTORE_INSTANCE"}),
        )?,
        agent_config: merged("agentConfig", usual_agent())?,
        preemptible_instance_config: body.object("preemptibleInstanceConfig")?.map(Value::Object),
        compute_cluster_id: body.text("computeClusterId")?,
        capacity_reservation_id: body.text("capacityReservationId")?,
        dedicated_vm_host_id: body.text("dedicatedVmHostId")?,
        ipxe_script: body.text("ipxeScript")?,
        platform_config: body.object("platformConfig")?.map(Value::Object),
        time_maintenance_reboot_due: None,
        is_cross_numa_node: false,
        lifecycle_state: State::Provisioning,
    })
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
