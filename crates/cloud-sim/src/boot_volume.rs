//! Boot volumes: one per instance, and those that outlive theirs.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::{Instance, Record};
use crate::page::{Row, numbered, page};
use crate::query::Call;
use crate::state::State;
use crate::world::World;
use serde_json::{Map, Value, json};

/// A boot volume.
#[derive(Clone, Debug)]
pub(crate) struct BootVolume {
    /// As answers show it.
    view: Map<String, Value>,
    /// True if it stays when its instance ends.
    kept: bool,
}

impl World {
    /// A boot volume of this id, with or without an instance that it was made for.
    pub(crate) fn add_boot_volume(&mut self, id: &str, of: Option<&Instance>) {
        let first = self.settings.availability_domains.first().cloned();
        let compartment = self.settings.compartments.first().cloned();
        let size = of
            .and_then(|instance| instance.source_details.as_ref())
            .and_then(|source| source.get("bootVolumeSizeInGBs").and_then(Value::as_f64))
            .unwrap_or(47.0);
        let view = json!({
            "id": id,
            "availabilityDomain": of.map(|instance| instance.availability_domain.clone()).or(first),
            "compartmentId": of.map(|instance| instance.compartment_id.clone()).or(compartment),
            "displayName": of.map_or("boot volume".to_owned(), |instance| {
                format!("{} (Boot Volume)", instance.display_name)
            }),
            "imageId": of.and_then(|instance| instance.image_id.clone()),
            "lifecycleState": "AVAILABLE",
            "sizeInGBs": size,
            "sizeInMBs": size * 1024.0,
            "vpusPerGB": 10,
            "isHydrated": true,
            "freeformTags": {},
            "definedTags": {},
            "timeCreated": self.clock.stamp(),
        });
        let Value::Object(view) = view else {
            return;
        };
        self.boot_volumes.insert(id.to_owned(), BootVolume { view, kept: of.is_none() });
    }

    /// A new boot volume for an instance.
    pub(crate) fn new_boot_volume(&mut self, instance: &Instance) -> String {
        let id = self.new_id("bootvolume");
        self.add_boot_volume(&id, Some(instance));
        id
    }

    /// Gives an instance a boot volume that was there before; it ends with it unless it is kept
    /// once more.
    pub(crate) fn take_boot_volume(&mut self, id: &str) -> String {
        if let Some(volume) = self.boot_volumes.get_mut(id) {
            volume.kept = false;
        }
        id.to_owned()
    }

    /// Refuses a boot volume that is not there, or that an instance has.
    pub(crate) fn check_boot_volume(&self, id: &str) -> Result<(), Refusal> {
        if !self.boot_volumes.contains_key(id) {
            return Err(Refusal::related("boot volume", id));
        }
        let used = self
            .instances
            .values()
            .any(|record| record.state() != State::Terminated && record.boot_volume == id);
        if used {
            return Err(Refusal::incorrect_state(format!("boot volume {id} is in use")));
        }
        Ok(())
    }

    /// Lets the boot volume of an instance outlive it.
    pub(crate) fn keep_boot_volume(&mut self, record: &Record) {
        if let Some(volume) = self.boot_volumes.get_mut(&record.boot_volume) {
            volume.kept = true;
        }
    }

    /// Deletes the boot volume of an instance, unless it is to be kept.
    pub(crate) fn drop_boot_volume(&mut self, instance: &str) {
        let Some(id) = self.instances.get(instance).map(|record| record.boot_volume.clone()) else {
            return;
        };
        if self.boot_volumes.get(&id).is_none_or(|volume| !volume.kept) {
            self.boot_volumes.remove(&id);
        }
    }
}

/// `GET /20160918/bootVolumes`.
pub(crate) fn list(world: &mut World, call: &Call<'_>) -> Outcome {
    let is = |volume: &BootVolume, parameter: &str| {
        let value = volume.view.get(parameter).and_then(Value::as_str).unwrap_or_default();
        call.query.allows(parameter, value)
    };
    let wanted = world
        .boot_volumes
        .iter()
        .filter(|(_, volume)| is(volume, "compartmentId") && is(volume, "availabilityDomain"));
    let rows = wanted.map(|(id, volume)| Row { key: id.clone(), view: &volume.view }).collect();
    page(rows, &call.query, world.settings.page_size, false)
}

/// `GET /20160918/bootVolumes/{id}`.
pub(crate) fn get(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let volume = world.boot_volumes.get(id);
    let volume = volume.ok_or_else(|| Refusal::not_found("boot volume", id))?;
    Ok(Answer::json(&volume.view).header("etag", "bv"))
}

fn attachment_view(record: &Record) -> Value {
    let Record { instance, boot_volume, .. } = record;
    json!({
        "id": record.id().replacen("ocid1.instance.", "ocid1.bootvolumeattachment.", 1),
        "availabilityDomain": instance.availability_domain,
        "bootVolumeId": boot_volume,
        "compartmentId": instance.compartment_id,
        "displayName": "Remote boot attachment for instance",
        "instanceId": instance.id,
        "lifecycleState": "ATTACHED",
        "timeCreated": instance.time_created,
        "isPvEncryptionInTransitEnabled": false,
    })
}

/// `GET /20160918/bootVolumeAttachments`.
pub(crate) fn list_attachments(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    let domain = call.query.require("availabilityDomain")?;
    let rows = world.instances.values().filter(|record| {
        record.state() != State::Terminated
            && record.instance.compartment_id == compartment
            && record.instance.availability_domain == domain
            && call.query.allows("instanceId", record.id())
            && call.query.allows("bootVolumeId", &record.boot_volume)
    });
    let rows = rows.map(|record| (record.number, record));
    numbered(rows, &call.query, (world.settings.page_size, false), attachment_view)
}
