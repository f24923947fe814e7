//! Work requests: how a launch, an action or a termination goes on after its answer.

use crate::answer::{Answer, Outcome, Refusal};
use crate::instance::Failure;
use crate::lifecycle::Event;
use crate::page::numbered;
use crate::query::Call;
use crate::world::World;
use serde_json::{Value, json};

/// A work request, with its errors and its log.
#[derive(Clone, Debug)]
pub(crate) struct WorkRequest {
    id: String,
    number: u64,
    operation: String,
    compartment: String,
    /// What it is about: action, kind and id.
    resource: (String, String, String),
    accepted: String,
    finished: Option<String>,
    failure: Option<Failure>,
    /// True if something else took its place before it was done.
    canceled: bool,
}

/// What a new work request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work<'a> {
    pub(crate) operation: &'a str,
    pub(crate) compartment: &'a str,
    pub(crate) action: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) id: &'a str,
}

impl WorkRequest {
    fn status(&self) -> &'static str {
        match (&self.finished, &self.failure) {
            (None, _) => "IN_PROGRESS",
            (Some(_), None) if self.canceled => "CANCELED",
            (Some(_), None) => "SUCCEEDED",
            (Some(_), Some(_)) => "FAILED",
        }
    }

    fn view(&self) -> Value {
        let (action, kind, id) = &self.resource;
        let percent = if self.finished.is_some() { 100.0 } else { 20.0 };
        json!({
            "id": self.id,
            "operationType": self.operation,
            "status": self.status(),
            "compartmentId": self.compartment,
            "resources": [{
                "actionType": action,
                "entityType": kind,
                "identifier": id,
                "entityUri": format!("/20160918/{kind}s/{id}"),
            }],
            "percentComplete": percent,
            "timeAccepted": self.accepted,
            "timeStarted": self.accepted,
            "timeFinished": self.finished,
        })
    }
}

impl World {
    /// Opens a work request and gives its id.
    pub(crate) fn open_work(&mut self, work: &Work<'_>) -> String {
        let id = self.new_id("coreservicesworkrequest");
        let request = WorkRequest {
            id: id.clone(),
            number: self.next_number(),
            operation: work.operation.to_owned(),
            compartment: work.compartment.to_owned(),
            resource: (work.action.to_owned(), work.kind.to_owned(), work.id.to_owned()),
            accepted: self.clock.stamp(),
            finished: None,
            failure: None,
            canceled: false,
        };
        self.work_requests.insert(id.clone(), request);
        id
    }

    /// Ends a work request, if it has not ended.
    pub(crate) fn close_work(&mut self, id: &str, failure: Option<Failure>) {
        let stamp = self.clock.stamp();
        let open = self.work_requests.get_mut(id).filter(|request| request.finished.is_none());
        if let Some(request) = open {
            request.finished = Some(stamp);
            request.failure = failure;
            let keep = self.settings.timing.keep_work;
            self.schedule(keep, Event::ForgetWork(id.to_owned()));
        }
    }

    /// Ends a work request whose work was cut short, if it has not ended.
    pub(crate) fn cancel_work(&mut self, id: &str) {
        if let Some(request) = self.work_requests.get_mut(id)
            && request.finished.is_none()
        {
            request.canceled = true;
            self.close_work(id, None);
        }
    }

    fn work_request(&self, call: &Call<'_>) -> Result<&WorkRequest, Refusal> {
        let id = call.segment(0);
        self.work_requests.get(id).ok_or_else(|| Refusal::not_found("work request", id))
    }
}

/// `GET /20160918/workRequests/{id}`.
pub(crate) fn get(world: &mut World, call: &Call<'_>) -> Outcome {
    let request = world.work_request(call)?;
    let etag = format!("w-{}", request.status().to_lowercase());
    Ok(Answer::json(&request.view()).header("etag", etag).header("retry-after", "1"))
}

/// `GET /20160918/workRequests`.
pub(crate) fn list(world: &mut World, call: &Call<'_>) -> Outcome {
    let compartment = call.query.require("compartmentId")?;
    world.check_compartment(compartment)?;
    let wanted = world.work_requests.values().filter(|request| {
        request.compartment == compartment && call.query.allows("resourceId", &request.resource.2)
    });
    let rows = wanted.map(|request| (request.number, request));
    numbered(rows, &call.query, (world.settings.page_size, true), WorkRequest::view)
}

/// `GET /20160918/workRequests/{id}/errors`.
pub(crate) fn errors(world: &mut World, call: &Call<'_>) -> Outcome {
    let request = world.work_request(call)?;
    let failure = request.failure.iter();
    let rows = failure.map(|Failure { code, message }| {
        json!({"code": code, "message": message, "timestamp": request.finished})
    });
    Ok(Answer::json(&rows.collect::<Vec<_>>()))
}

/// `GET /20160918/workRequests/{id}/logs`.
pub(crate) fn logs(world: &mut World, call: &Call<'_>) -> Outcome {
    let request = world.work_request(call)?;
    let mut rows = vec![json!({
        "message": format!("{} accepted", request.operation),
        "timestamp": request.accepted,
    })];
    if let Some(finished) = &request.finished {
        let done = if request.canceled { "canceled" } else { "done" };
        let message = request.failure.as_ref().map_or(done, |failure| &failure.message);
        rows.push(json!({"message": message, "timestamp": finished}));
    }
    Ok(Answer::json(&rows))
}
