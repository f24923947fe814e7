//! Work requests: what became of a launch or a new image that was accepted.

use crate::api::{Api, Service};
use crate::classify::classify_late;
use crate::page::Listing;
use crate::provider::Oci;
use crate::wire::{WorkRequest, WorkRequestError};
use cloud_core::http::{Answer, HeaderName, Method};
use cloud_core::{
    Error, ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceState, Operation, Result,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;

/// What this provider was to do, was accepted, and has not been seen to be done.
#[derive(Debug, Default)]
pub(crate) struct Works(Mutex<BTreeMap<InstanceId, Work>>);

#[derive(Clone, Debug)]
struct Work {
    aim: Aim,
    known: Known,
}

/// What a work request is for.
#[derive(Clone, Debug)]
pub(crate) enum Aim {
    Launch,
    Rebuild(ImageId),
}

#[derive(Clone, Debug)]
enum Known {
    /// Accepted; its work request says the rest.
    Accepted(String),
    Failed(Fault),
}

impl Aim {
    fn is_reached(&self, instance: &Instance) -> bool {
        let running = instance.state == InstanceState::Running;
        match self {
            Self::Launch => running,
            Self::Rebuild(image) => running && instance.image.as_ref() == Some(image),
        }
    }

    /// True if the instance rests where it should not, so that only the work request can tell why.
    fn is_in_doubt(&self, instance: &Instance) -> bool {
        match self {
            Self::Launch => instance.state.is_lost(),
            Self::Rebuild(_) => {
                matches!(instance.state, InstanceState::Running | InstanceState::Stopped)
            }
        }
    }
}

impl Works {
    /// Notes the work request that an answer names.
    pub(crate) fn began(&self, id: &InstanceId, aim: Aim, answer: &Answer) {
        if let Some(work) = answer.header(&HeaderName::from_static("opc-work-request-id")) {
            let known = Known::Accepted(work.to_owned());
            self.map().insert(id.clone(), Work { aim, known });
        }
    }

    /// What became of an earlier rebuild says nothing about the one that is asked for now.
    pub(crate) fn begins_anew(&self, id: &InstanceId) {
        let mut map = self.map();
        if map.get(id).is_some_and(|work| matches!(work.aim, Aim::Rebuild(_))) {
            map.remove(id);
        }
    }

    /// An instance that somebody asked to be removed has not failed.
    pub(crate) fn removed(&self, id: &InstanceId) {
        let mut map = self.map();
        if map.get(id).is_some_and(|work| matches!(work.known, Known::Accepted(_))) {
            map.remove(id);
        }
    }

    /// What is known of those in doubt; forgets those that are done.
    fn sort(&self, instances: &[Instance]) -> Vec<(InstanceId, Work)> {
        let mut map = self.map();
        let mut doubtful = Vec::new();
        for instance in instances {
            let Some(work) = map.get(&instance.id) else { continue };
            if work.aim.is_reached(instance) {
                map.remove(&instance.id);
            } else if work.aim.is_in_doubt(instance) {
                doubtful.push((instance.id.clone(), work.clone()));
            }
        }
        doubtful
    }

    /// Keeps how a work request ended, unless another has taken its place.
    fn ended(&self, id: &InstanceId, ended: &str, fault: Option<Fault>) {
        let mut map = self.map();
        let is_it = |work: &&mut Work| matches!(&work.known, Known::Accepted(it) if it == ended);
        match (fault, map.get_mut(id).filter(is_it)) {
            (Some(fault), Some(work)) => work.known = Known::Failed(fault),
            (None, Some(_)) => drop(map.remove(id)),
            (_, None) => {}
        }
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Oci {
    /// Says of those that were launched here and are lost, and of those that were to get an image and
    /// have not got it, why that is so.
    pub(crate) async fn explain(&self, instances: &mut [Instance]) {
        let doubtful = self.works.sort(instances);
        if doubtful.is_empty() {
            return;
        }
        let (mut faults, mut coming) = (BTreeMap::new(), BTreeSet::new());
        let mut asked = JoinSet::new();
        for (id, Work { aim, known }) in doubtful {
            match known {
                Known::Failed(fault) => drop(faults.insert(id, fault)),
                Known::Accepted(work) => {
                    let api = Arc::clone(&self.api);
                    asked.spawn(async move {
                        let verdict = verdict(&api, &work).await;
                        (id, aim, work, verdict)
                    });
                }
            }
        }
        // A task that was cancelled with the run time has nobody left to tell.
        while let Some(answer) = asked.join_next().await {
            let Ok((id, aim, work, verdict)) = answer else { continue };
            match (verdict, aim) {
                (Ok(Verdict::Failed(fault)), _) => {
                    self.works.ended(&id, &work, Some(fault.clone()));
                    faults.insert(id, fault);
                }
                (Ok(Verdict::Ended), _) => self.works.ended(&id, &work, None),
                (Ok(Verdict::UnderWay), Aim::Launch) => drop(coming.insert(id)),
                // A moment's trouble says nothing about the launch; the next look asks again.
                (Err(error), Aim::Launch) if error.kind().passes() => drop(coming.insert(id)),
                (Err(error), Aim::Launch) => drop(faults.insert(id, unread(&error))),
                // It may yet get its image; the next look asks again.
                (Ok(Verdict::UnderWay) | Err(_), Aim::Rebuild(_)) => {}
            }
        }
        for instance in instances {
            instance.fault = faults.remove(&instance.id);
            if coming.contains(&instance.id) {
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
            let message = "it failed, and its work request does not say why".to_owned();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault { kind: ErrorKind::Unavailable, message: "broken".to_owned() }
    }

    fn began(works: &Works, id: &InstanceId, aim: Aim, work: &str) {
        let known = Known::Accepted(work.to_owned());
        works.map().insert(id.clone(), Work { aim, known });
    }

    fn is_failed(works: &Works, id: &InstanceId) -> Option<bool> {
        works.map().get(id).map(|work| matches!(work.known, Known::Failed(_)))
    }

    #[test]
    fn the_end_of_an_earlier_rebuild_was_taken_for_that_of_the_next() {
        let (works, id) = (Works::default(), InstanceId::new("i"));
        let aim = || Aim::Rebuild(ImageId::new("new"));
        began(&works, &id, aim(), "second");
        works.ended(&id, "first", Some(fault()));
        assert_eq!(is_failed(&works, &id), Some(false));
        works.ended(&id, "first", None);
        assert_eq!(is_failed(&works, &id), Some(false));
        works.ended(&id, "second", Some(fault()));
        assert_eq!(is_failed(&works, &id), Some(true));
        works.begins_anew(&id);
        assert_eq!(is_failed(&works, &id), None);
    }

    #[test]
    fn a_rebuild_that_is_asked_for_too_soon_does_not_forget_the_launch() {
        let (works, id) = (Works::default(), InstanceId::new("i"));
        began(&works, &id, Aim::Launch, "w");
        works.begins_anew(&id);
        assert_eq!(is_failed(&works, &id), Some(false));
    }
}
