//! What can be done to one instance that is there: get, act, update, terminate.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::{Failure, Instance, Record};
use crate::launch::shown;
use crate::launch_request::{check_metadata, check_volume_size};
use crate::lifecycle::Path;
use crate::query::{Call, Fields};
use crate::state::State;
use crate::work_request::Work;
use crate::world::{World, etag};
use serde_json::{Map, Value};

impl World {
    /// The instance that the path names.
    pub(crate) fn instance(&self, call: &Call<'_>) -> Result<&Record, Refusal> {
        let id = call.segment(0);
        self.instances.get(id).ok_or_else(|| Refusal::not_found("instance", id))
    }

    /// The instance that the path names, if the caller's `if-match` allows a change.
    fn instance_to_change(&self, call: &Call<'_>) -> Result<Record, Refusal> {
        let record = self.instance(call)?;
        call.check_match(&record.etag)?;
        Ok(record.clone())
    }

    /// Lets an instance go through these states, the first at once, and gives the work request.
    fn go(&mut self, record: &Record, operation: &str, path: Path) -> String {
        let deleted = path.first == State::Terminating;
        let work = self.open_work(&Work {
            operation,
            compartment: &record.instance.compartment_id,
            action: if deleted { "DELETED" } else { "UPDATED" },
            kind: "instance",
            id: record.id(),
        });
        if let Some(kept) = self.instances.get_mut(record.id()) {
            kept.etag = etag();
        }
        self.set_plan(record.id(), path, &work);
        work
    }
}

/// `GET /20160918/instances/{id}`.
pub(crate) fn get(world: &mut World, call: &Call<'_>) -> Outcome {
    let etag = world.instance(call)?.etag.clone();
    let written = world.written(call.segment(0));
    Ok(Answer::of_json(written).header("etag", etag))
}

/// `DELETE /20160918/instances/{id}`.
pub(crate) fn terminate(world: &mut World, call: &Call<'_>) -> Outcome {
    let record = world.instance_to_change(call)?;
    let failure = match record.state() {
        State::Terminated => return Err(Refusal::not_found("instance", record.id())),
        State::Terminating => return Ok(with_work(Answer::empty(), record.work.as_ref())),
        State::Running | State::Stopped => call.failure(),
        // There is no state to go back to in which it could stay.
        State::Provisioning | State::Starting | State::Stopping | State::CreatingImage => None,
    };
    if failure.is_none() && call.query.get("preserveBootVolume") == Some("true") {
        world.keep_boot_volume(&record);
    }
    let path =
        Path::new(State::Terminating, [(State::Terminated, world.settings.timing.terminate)])
            .failing(failure, record.state());
    let work = world.go(&record, "TerminateInstance", path);
    Ok(with_work(Answer::empty(), Some(&work)))
}

fn with_work(answer: Answer, work: Option<&String>) -> Answer {
    match work {
        Some(work) => answer.header("opc-work-request-id", work),
        None => answer,
    }
}

/// `POST /20160918/instances/{id}?action=…`.
pub(crate) fn act(world: &mut World, call: &Call<'_>) -> Outcome {
    let record = world.instance_to_change(call)?;
    let action = call.query.require("action")?;
    if !call.body.is_empty() {
        call.object()?.required("actionType")?;
    }
    let timing = world.settings.timing;
    let (from, path) = match action {
        "START" => (State::Stopped, Path::new(State::Starting, [(State::Running, timing.start)])),
        "STOP" | "SOFTSTOP" => {
            (State::Running, Path::new(State::Stopping, [(State::Stopped, timing.stop)]))
        }
        "RESET" | "SOFTRESET" | "REBOOTMIGRATE" | "DIAGNOSTICREBOOT" => {
            (State::Running, restart(world))
        }
        "SENDDIAGNOSTICINTERRUPT" => (State::Running, Path::new(State::Running, [])),
        other => return Err(Refusal::invalid(format!("action {other} is not known"))),
    };
    if record.state() != from {
        let message = format!("instance is in state {}", record.state().word());
        return Err(Refusal::incorrect_state(message));
    }
    world.go(&record, "InstanceAction", path.failing(call.failure(), from));
    Ok(shown(world.instance(call)?))
}

/// Off and on again.
fn restart(world: &World) -> Path {
    let timing = world.settings.timing;
    Path::new(State::Stopping, [(State::Starting, timing.stop), (State::Running, timing.start)])
}

/// `PUT /20160918/instances/{id}`.
pub(crate) fn update(world: &mut World, call: &Call<'_>) -> Outcome {
    let record = world.instance_to_change(call)?;
    let body = call.object()?;
    match record.state() {
        State::Terminating | State::Terminated => {
            return Err(Refusal::not_found("instance", record.id()));
        }
        State::Provisioning
        | State::Starting
        | State::Running
        | State::Stopping
        | State::Stopped
        | State::CreatingImage => {}
    }
    check_changes(body)?;
    let changed = change(&record, body)?;
    let source = body.object("sourceDetails")?;
    let replaced = source.map(|source| replace(world, &record, source.clone())).transpose()?;
    let id = record.id().to_owned();
    if let Some(kept) = world.instances.get_mut(&id) {
        kept.instance = changed;
        kept.etag = etag();
    }
    world.index.touch(&id);
    if let Some(replacement) = replaced {
        put_in(world, &record, replacement, call.failure());
        return Ok(shown(world.instance(call)?));
    }
    let work = world.open_work(&Work {
        operation: "UpdateInstance",
        compartment: &record.instance.compartment_id,
        action: "UPDATED",
        kind: "instance",
        id: &id,
    });
    world.close_work(&work, None);
    let mut updated = world.instance(call)?.clone();
    updated.work = Some(work);
    Ok(shown(&updated))
}

/// What an update can change here.
const CHANGEABLE: [&str; 7] = [
    "displayName",
    "freeformTags",
    "definedTags",
    "metadata",
    "extendedMetadata",
    "sourceDetails",
    "updateOperationConstraint",
];

/// Refuses what would be answered with 200 and not be done.
fn check_changes(body: &Map<String, Value>) -> Result<(), Refusal> {
    check_metadata(body)?;
    let given = body.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name);
    match given.into_iter().find(|name| !CHANGEABLE.contains(&name.as_str())) {
        Some(name) => Err(Refusal::invalid(format!("{name} cannot be changed in this cloud"))),
        None => Ok(()),
    }
}

/// The instance with the fields that the body gives.
fn change(record: &Record, body: &Map<String, Value>) -> Result<Instance, Refusal> {
    let mut instance = record.instance.clone();
    if let Some(name) = body.text("displayName")? {
        instance.display_name = name;
    }
    if let Some(tags) = body.freeform_tags()? {
        instance.freeform_tags.clone_from(tags);
    }
    if let Some(tags) = body.defined_tags()? {
        instance.defined_tags.clone_from(tags);
    }
    if let Some(metadata) = body.object("metadata")? {
        for key in ["user_data", "ssh_authorized_keys"] {
            if metadata.get(key) != instance.metadata.get(key) {
                return Err(Refusal::invalid(format!("{key} cannot be changed after launch")));
            }
        }
        instance.metadata.clone_from(metadata);
    }
    if let Some(metadata) = body.object("extendedMetadata")? {
        instance.extended_metadata.clone_from(metadata);
    }
    Ok(instance)
}

/// A boot volume that takes the place of another.
struct Replacement {
    image: String,
    source: Value,
    keep: bool,
    /// How the instance comes back to the state it was in.
    path: Path,
}

/// Checks a replacement of the boot volume.
fn replace(
    world: &World,
    record: &Record,
    source: Map<String, Value>,
) -> Result<Replacement, Refusal> {
    if !record.instance.shape.starts_with("VM.") {
        return Err(Refusal::invalid("boot volume replacement is for virtual machines only"));
    }
    if source.required("sourceType")? != "image" {
        return Err(Refusal::invalid("sourceType has to be image"));
    }
    let image = source.required("imageId")?;
    world.check_replacement(record.instance.image_id.as_deref(), &image)?;
    let path = match record.state() {
        State::Running => restart(world),
        State::Stopped => {
            Path::new(State::Stopping, [(State::Stopped, world.settings.timing.stop)])
        }
        state @ (State::Provisioning
        | State::Starting
        | State::Stopping
        | State::CreatingImage
        | State::Terminating
        | State::Terminated) => {
            let message = format!("instance is in state {}", state.word());
            return Err(Refusal::incorrect_state(message));
        }
    };
    check_volume_size(&source)?;
    let keep = source.flag("isPreserveBootVolumeEnabled")?.unwrap_or(false);
    let mut details = source;
    details.remove("isPreserveBootVolumeEnabled");
    Ok(Replacement { image, source: Value::Object(details), keep, path })
}

/// Replaces the boot volume, or begins to: what fails leaves the old one.
fn put_in(world: &mut World, record: &Record, replacement: Replacement, failure: Option<Failure>) {
    let path = replacement.path.failing(failure, record.state());
    if path.failure.is_some() {
        world.go(record, "UpdateInstance", path);
        return;
    }
    if replacement.keep {
        world.keep_boot_volume(record);
    } else {
        world.drop_boot_volume(record.id());
    }
    let id = record.id();
    if let Some(kept) = world.instances.get_mut(id) {
        kept.instance.image_id = Some(replacement.image);
        kept.instance.source_details = Some(replacement.source);
    }
    let instance = world.instances.get(id).map(|kept| kept.instance.clone());
    if let Some(instance) = instance {
        let volume = world.new_boot_volume(&instance);
        if let Some(kept) = world.instances.get_mut(id) {
            kept.boot_volume = volume;
        }
    }
    world.go(record, "UpdateInstance", path);
}
