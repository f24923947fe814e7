//! Work requests: what became of a launch that was accepted.

use crate::api::{Api, Service};
use crate::classify::classify_late;
use crate::page::Listing;
use crate::provider::Oci;
use crate::wire::{WorkRequest, WorkRequestError};
use cloud_core::http::Method;
use cloud_core::{Error, ErrorKind, Fault, Instance, InstanceId, InstanceState, Operation, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// The launches of this provider that have not been seen to run.
#[derive(Debug, Default)]
pub(crate) struct Launches(Mutex<BTreeMap<InstanceId, Launch>>);

#[derive(Clone, Debug)]
enum Launch {
    /// Accepted; its work request says the rest.
    Accepted(String),
    Failed(Fault),
}

impl Launches {
    /// Notes the work request of a launch.
    pub(crate) fn began(&self, id: &InstanceId, work: &str) {
        self.map().insert(id.clone(), Launch::Accepted(work.to_owned()));
    }

    /// An instance that somebody asked to be removed has not failed.
    pub(crate) fn removed(&self, id: &InstanceId) {
        let mut map = self.map();
        if matches!(map.get(id), Some(Launch::Accepted(_))) {
            map.remove(id);
        }
    }

    /// What is known of those that are lost; forgets those that run.
    fn sort(&self, instances: &[Instance]) -> Vec<(InstanceId, Launch)> {
        let mut map = self.map();
        let mut lost = Vec::new();
        for instance in instances {
            if instance.state == InstanceState::Running {
                map.remove(&instance.id);
            } else if instance.state.is_lost()
                && let Some(launch) = map.get(&instance.id)
            {
                lost.push((instance.id.clone(), launch.clone()));
            }
        }
        lost
    }

    fn ended(&self, id: &InstanceId, fault: Option<Fault>) {
        match fault {
            Some(fault) => self.map().insert(id.clone(), Launch::Failed(fault)),
            None => self.map().remove(id),
        };
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Launch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Oci {
    /// Says of those that were launched here and are lost why that is so.
    pub(crate) async fn explain(&self, instances: &mut [Instance]) {
        let lost = self.launches.sort(instances);
        if lost.is_empty() {
            return;
        }
        let (mut faults, mut open) = (BTreeMap::new(), BTreeSet::new());
        let mut asked = JoinSet::new();
        for (id, launch) in lost {
            match launch {
                Launch::Failed(fault) => drop(faults.insert(id, fault)),
                Launch::Accepted(work) => {
                    let api = Arc::clone(&self.api);
                    asked.spawn(async move { (id, verdict(&api, &work).await) });
                }
            }
        }
        // A task that was cancelled with the run time has nobody left to tell.
        while let Some(answer) = asked.join_next().await {
            let Ok((id, verdict)) = answer else { continue };
            match verdict {
                Ok(Verdict::Failed(fault)) => {
                    self.launches.ended(&id, Some(fault.clone()));
                    faults.insert(id, fault);
                }
                Ok(Verdict::Ended) => self.launches.ended(&id, None),
                Ok(Verdict::UnderWay) => drop(open.insert(id)),
                Err(error) => drop(faults.insert(id, unread(&error))),
            }
        }
        for instance in instances {
            instance.fault = faults.remove(&instance.id);
            if open.contains(&instance.id) {
                // Nobody asked for its end, and why it ends will be said when the launch is over.
                instance.state = InstanceState::Pending;
            }
        }
    }
}

/// What a work request says.
enum Verdict {
    Failed(Fault),
    Ended,
    UnderWay,
}

async fn verdict(api: &Api, work: &str) -> Result<Verdict> {
    if let Some(fault) = fault(api, work).await? {
        return Ok(Verdict::Failed(fault));
    }
    let place = (Service::Core, &["workRequests", work][..]);
    let request = api.request(Operation::Get, Method::GET, place, &[])?.on(work);
    let request: WorkRequest = api.read(&request).await?;
    Ok(match request.status.as_deref() {
        Some("FAILED") => {
            let message = "the launch failed, and its work request does not say why".to_owned();
            Verdict::Failed(Fault { kind: ErrorKind::Unavailable, message })
        }
        Some("SUCCEEDED" | "CANCELED" | "CANCELING") => Verdict::Ended,
        _ => Verdict::UnderWay,
    })
}

/// The first error of a work request, or the one that says most about what to do.
async fn fault(api: &Api, work: &str) -> Result<Option<Fault>> {
    let path = ["workRequests", work, "errors"];
    let listing =
        Listing { operation: Operation::Get, service: Service::Core, path: &path, query: &[] };
    let errors: Vec<WorkRequestError> = listing.all(api).await?;
    let faults = errors.into_iter().map(|error| {
        let message = error.message.unwrap_or_default();
        Fault { kind: classify_late(error.code.as_deref(), &message), message }
    });
    Ok(faults.min_by_key(|fault| fault.kind == ErrorKind::Unavailable))
}

/// It has failed, and we could not find out why.
fn unread(error: &Error) -> Fault {
    let message = format!("lost soon after its launch; why could not be found out: {error}");
    Fault { kind: ErrorKind::Unavailable, message }
}
