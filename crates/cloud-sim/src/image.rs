//! Images: those from the settings, and those made of instances.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::{Failure, Record};
use crate::lifecycle::Event;
use crate::page::{Row, by_name, descending, page};
use crate::query::{Call, Fields, Query};
use crate::settings::Image;
use crate::state::State;
use crate::work_request::Work;
use crate::world::{World, etag_of};
use serde_json::{Map, Value, json};

/// An image with its place in lists.
#[derive(Clone, Debug)]
pub(crate) struct ImageRecord {
    view: Map<String, Value>,
    number: u64,
    work: Option<String>,
    /// If it is not going to be made, why.
    failure: Option<Failure>,
    /// The instance that is `CREATING_IMAGE` as long as this is made, and the version of its plan.
    of: Option<(String, u64)>,
}

/// When the images of the settings were made that do not say: before any that the cloud makes.
const LONG_AGO: &str = "2026-01-01T00:00:00.000Z";

/// What an image is made with.
struct Making {
    id: String,
    name: String,
    system: Value,
    version: Value,
    tags: Value,
    base: Option<String>,
    state: &'static str,
    compartment: String,
    /// Now, if left out.
    created: Option<String>,
}

impl World {
    /// An image from the settings.
    pub(crate) fn add_image(&mut self, image: &Image) {
        let compartment = self.settings.compartments.first();
        let making = Making {
            id: image.id.clone(),
            name: image.name.clone(),
            system: json!(image.operating_system),
            version: json!(image.operating_system_version),
            tags: json!(image.freeform_tags),
            base: None,
            state: "AVAILABLE",
            compartment: compartment.unwrap_or(&self.settings.tenancy).clone(),
            created: Some(image.time_created.as_deref().unwrap_or(LONG_AGO).to_owned()),
        };
        self.make_image(&making);
    }

    fn make_image(&mut self, making: &Making) {
        let view = json!({
            "id": making.id,
            "baseImageId": making.base,
            "compartmentId": making.compartment,
            "createImageAllowed": true,
            "definedTags": {},
            "freeformTags": making.tags,
            "displayName": making.name,
            "launchMode": "NATIVE",
            "lifecycleState": making.state,
            "operatingSystem": making.system,
            "operatingSystemVersion": making.version,
            "listingType": null,
            "sizeInMBs": 47_694,
            "billableSizeInGBs": 3,
            "timeCreated": making.created.clone().unwrap_or_else(|| self.clock.stamp()),
            "launchOptions": null,
            "agentFeatures": null,
        });
        let view = view.as_object().cloned().unwrap_or_default();
        let number = self.next_number();
        let record = ImageRecord { view, number, work: None, failure: None, of: None };
        self.images.insert(making.id.clone(), record);
    }

    /// Refuses an image that is not there, or not yet.
    pub(crate) fn check_image(&self, id: &str) -> Result<(), Refusal> {
        let image = self.images.get(id).ok_or_else(|| Refusal::related("image", id))?;
        match field(&image.view, "lifecycleState") {
            "AVAILABLE" => Ok(()),
            state => Err(Refusal::incorrect_state(format!("image {id} is in state {state}"))),
        }
    }

    /// Refuses an image that cannot take the place of the one that an instance booted from: only
    /// Linux can, and only of the same distribution. Of an image that is gone nobody knows.
    pub(crate) fn check_replacement(&self, old: Option<&str>, new: &str) -> Result<(), Refusal> {
        self.check_image(new)?;
        let system = |id: &str| Some(field(&self.images.get(id)?.view, "operatingSystem"));
        let new = system(new).unwrap_or_default();
        let old = old.and_then(system).unwrap_or(new);
        if old != new || new.starts_with("Windows") {
            let message = format!("a boot volume with {old} cannot be replaced by {new}");
            return Err(Refusal::invalid(message));
        }
        Ok(())
    }

    /// Makes an image AVAILABLE, or DELETED if it was not to be made.
    pub(crate) fn finish_image(&mut self, id: &str) {
        let Some(image) = self.images.get_mut(id) else {
            return;
        };
        let failure = image.failure.take();
        let state = if failure.is_none() { "AVAILABLE" } else { "DELETED" };
        image.view.insert("lifecycleState".to_owned(), json!(state));
        let (work, of) = (image.work.take(), image.of.take());
        if let Some(work) = work {
            self.close_work(&work, failure);
        }
        self.let_go(of);
    }

    /// Lets an instance of which no image is made any more run on, unless it has gone on already.
    fn let_go(&mut self, of: Option<(String, u64)>) {
        let Some((id, version)) = of else {
            return;
        };
        let record = self.instances.get(&id).filter(|record| record.version == version);
        if record.is_some_and(|record| record.state() == State::CreatingImage) {
            self.enter(&id, State::Running);
        }
    }
}

fn field<'a>(view: &'a Map<String, Value>, name: &str) -> &'a str {
    view.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// `GET /20160918/images`.
pub(crate) fn list(world: &mut World, call: &Call<'_>) -> Outcome {
    let query = &call.query;
    world.check_compartment(query.require("compartmentId")?)?;
    if let Some(shape) = query.get("shape")
        && world.shape(shape).is_none()
    {
        return Err(Refusal::invalid(format!("shape {shape} is not known")));
    }
    let by_name = by_name(query)?;
    check_state(query)?;
    let rows = world.images.values().filter(|image| wanted(&image.view, query)).map(|image| {
        let by = if by_name { "displayName" } else { "timeCreated" };
        let (first, id) = (field(&image.view, by), field(&image.view, "id"));
        // Numbers of the settings' images begin anew with each run; ids are each one's own.
        Row { view: &image.view, key: format!("{first}\u{0}{:020}\u{0}{id}", image.number) }
    });
    let descending = descending(query, !by_name)?;
    page(rows.collect(), query, world.settings.page_size, descending)
}

/// Refuses a state that no image can have.
fn check_state(query: &Query) -> Result<(), Refusal> {
    match query.get("lifecycleState") {
        None
        | Some("PROVISIONING" | "IMPORTING" | "AVAILABLE" | "EXPORTING" | "DISABLED" | "DELETED") => {
            Ok(())
        }
        Some(other) => Err(Refusal::invalid(format!("lifecycleState {other} is not known"))),
    }
}

fn wanted(view: &Map<String, Value>, query: &Query) -> bool {
    ["compartmentId", "displayName", "operatingSystem", "operatingSystemVersion", "lifecycleState"]
        .into_iter()
        .all(|name| query.allows(name, field(view, name)))
}

/// `GET /20160918/images/{id}`.
pub(crate) fn get(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let image = world.images.get(id).ok_or_else(|| Refusal::not_found("image", id))?;
    Ok(Answer::json(&image.view).header("etag", etag_of(&image.view)))
}

/// `DELETE /20160918/images/{id}`.
pub(crate) fn delete(world: &mut World, call: &Call<'_>) -> Outcome {
    let id = call.segment(0);
    let image = world.images.get(id).ok_or_else(|| Refusal::not_found("image", id))?;
    call.check_match(&etag_of(&image.view))?;
    let removed = world.images.remove(id);
    if let Some(ImageRecord { work: Some(work), failure, of, .. }) = removed {
        world.cut_short(&work, failure);
        world.let_go(of);
    }
    Ok(Answer::empty())
}

/// What an image of an instance is made with; refuses what cannot be.
fn request(world: &World, body: &Map<String, Value>, record: &Record) -> Result<Making, Refusal> {
    let compartment = body.required("compartmentId")?;
    world.check_compartment(&compartment)?;
    if !matches!(record.state(), State::Running | State::Stopped) {
        let message = format!("instance is in state {}", record.state().word());
        return Err(Refusal::incorrect_state(message));
    }
    let base = record.instance.image_id.clone();
    let like = base.as_ref().and_then(|id| world.images.get(id)).map(|image| &image.view);
    let of_base = |name: &str| like.and_then(|view| view.get(name)).cloned().unwrap_or_default();
    let name = body.text("displayName")?;
    Ok(Making {
        id: world.new_id("image"),
        name: name.unwrap_or_else(|| format!("image of {}", record.id())),
        system: of_base("operatingSystem"),
        version: of_base("operatingSystemVersion"),
        tags: Value::Object(body.freeform_tags()?.cloned().unwrap_or_default()),
        base,
        state: "PROVISIONING",
        compartment,
        created: None,
    })
}

impl World {
    /// Puts a running instance into `CREATING_IMAGE`, and gives how to know it again.
    fn hold_still(&mut self, id: &str) -> Option<(String, u64)> {
        let record = self.instances.get_mut(id)?;
        if record.state() != State::Running {
            return None;
        }
        record.version += 1;
        let version = record.version;
        self.enter(id, State::CreatingImage);
        Some((id.to_owned(), version))
    }
}

/// `POST /20160918/images`: an image of a running or stopped instance.
pub(crate) fn create(world: &mut World, call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let of = body.required("instanceId")?;
    let record = world.instances.get(&of).ok_or_else(|| Refusal::related("instance", &of))?;
    let making = request(world, body, record)?;
    let id = making.id.clone();
    let work = world.open_work(&Work {
        operation: "CreateImage",
        compartment: &making.compartment,
        action: "CREATED",
        kind: "image",
        id: &id,
    });
    world.make_image(&making);
    let of = world.hold_still(&of);
    world.schedule(world.settings.timing.image, Event::Image(id.clone()));
    let image = world.images.get_mut(&id).ok_or_else(|| Refusal::not_found("image", &id))?;
    (image.work, image.failure, image.of) = (Some(work.clone()), call.failure(), of);
    let answer = Answer::json(&image.view).header("etag", etag_of(&image.view));
    Ok(answer.header("opc-work-request-id", work))
}
