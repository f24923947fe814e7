//! Looks up work requests.

use super::Goal;
use crate::api::{Api, Service};
use crate::classify::classify_late;
use crate::page::{Listing, Of};
use crate::wire::{WorkRequest, WorkRequestError};
use cloud_core::http::Method;
use cloud_core::{ApiOperation, ErrorKind, Fault, InstanceId, Result};

/// An instance to look up.
pub(super) struct Question {
    pub(super) id: InstanceId,
    pub(super) goal: Goal,
    /// The work request, unless another process launched the instance.
    pub(super) work: Option<String>,
}

/// The result of a lookup.
pub(super) struct Found {
    pub(super) id: InstanceId,
    pub(super) goal: Goal,
    /// The work request, if there is one.
    pub(super) work: Option<String>,
    pub(super) progress: Result<Progress>,
}

impl Question {
    /// Finds the work request if it is unknown, and gets its status.
    pub(super) async fn look_up(self, api: &Api, compartment: &str) -> Found {
        let Self { id, goal, work } = self;
        let work = match work {
            Some(work) => Ok(Some(work)),
            None => launch_of(api, compartment, &id).await,
        };
        let (work, progress) = match work {
            Ok(Some(work)) => {
                let progress = progress(api, &work).await;
                (Some(work), progress)
            }
            Ok(None) => (None, Ok(Progress::Ended)),
            Err(error) => (None, Err(error)),
        };
        Found { id, goal, work, progress }
    }
}

/// Finds the work request that launched an instance, which is its oldest one.
async fn launch_of(api: &Api, compartment: &str, id: &InstanceId) -> Result<Option<String>> {
    let listing = Listing {
        operation: ApiOperation::Get,
        service: Service::Core,
        path: &["workRequests"],
        of: Of::WhatMayBeGone,
        query: &[("compartmentId", compartment), ("resourceId", id.as_str())],
    };
    let requests: Vec<WorkRequest> = listing.all(api).await?;
    let is_launch = |request: &WorkRequest| {
        let operation = request.operation_type.as_deref().unwrap_or_default();
        operation.to_ascii_lowercase().contains("launch")
    };
    let launches = requests.into_iter().filter(is_launch);
    let first = launches.min_by(|a, b| a.time_accepted.cmp(&b.time_accepted));
    Ok(first.and_then(|request| request.id))
}

/// The content of a work request.
pub(super) enum Progress {
    Failed(Fault),
    Ended,
    UnderWay,
}

async fn progress(api: &Api, work: &str) -> Result<Progress> {
    if let Some(fault) = fault(api, work).await? {
        return Ok(Progress::Failed(fault));
    }
    let place = (Service::Core, &["workRequests", work][..]);
    let request = api.request(ApiOperation::Get, Method::GET, place, &[])?.on(work);
    let request: WorkRequest = api.read(&request).await?;
    Ok(match request.status.as_deref() {
        Some("FAILED") => {
            let message = "it failed, and its work request does not say why".to_owned();
            Progress::Failed(Fault { kind: ErrorKind::Unavailable, message })
        }
        Some("SUCCEEDED" | "CANCELED" | "CANCELING") => Progress::Ended,
        _ => Progress::UnderWay,
    })
}

/// The first error of a work request, or the most informative one.
async fn fault(api: &Api, work: &str) -> Result<Option<Fault>> {
    let path = ["workRequests", work, "errors"];
    let listing = Listing {
        operation: ApiOperation::Get,
        service: Service::Core,
        path: &path,
        of: Of::WhatMayBeGone,
        query: &[],
    };
    let errors: Vec<WorkRequestError> = listing.all(api).await?;
    let faults = errors.into_iter().map(|error| {
        let message = error.message.unwrap_or_default();
        Fault { kind: classify_late(error.code.as_deref(), &message), message }
    });
    Ok(faults.min_by_key(|fault| fault.kind == ErrorKind::Unavailable))
}
