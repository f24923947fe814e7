//! Work requests: what became of a launch or a new image that was accepted.

mod ask;

use crate::provider::Oci;
use ask::{Progress, Told, ask};
use cloud_core::http::{HeaderName, Response};
use cloud_core::{Error, ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Of how many instances one look asks why they are lost: a thousand launches that fail together must
/// not keep everybody else from being looked at.
const MOST_ASKED: usize = 50;

/// The same of those that others launched: a process with a few nodes does not ask at once about the
/// thousand of another, who asks about them, too.
const MOST_OF_OTHERS: usize = 16;

/// What this provider was to do or saw begin, and has not been seen to be done.
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
    /// Seen to come, and launched by another process, or by a request whose answer was lost: which
    /// work request it is has to be asked for.
    Seen,
    Failed(Fault),
    /// Removed by us: whatever else becomes of it, it has not failed.
    Removed,
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
    pub(crate) fn began(&self, id: &InstanceId, aim: Aim, response: &Response) {
        if let Some(work) = response.header(&HeaderName::from_static("opc-work-request-id")) {
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

    /// An instance that we asked to be removed has not failed, unless it had before.
    pub(crate) fn removed(&self, id: &InstanceId) {
        let mut map = self.map();
        if !map.get(id).is_some_and(|work| matches!(work.known, Known::Failed(_))) {
            map.insert(id.clone(), Work { aim: Aim::Launch, known: Known::Removed });
        }
    }

    /// What is known of those in doubt. Notes those that come, and forgets those that are done: of
    /// an instance that was never seen to come nobody asks why it is gone.
    fn sort(&self, instances: &[Instance]) -> Vec<(InstanceId, Work)> {
        let mut map = self.map();
        let mut doubtful = Vec::new();
        for instance in instances {
            let id = &instance.id;
            match map.get(id) {
                None if instance.state == InstanceState::Pending => {
                    map.insert(id.clone(), Work { aim: Aim::Launch, known: Known::Seen });
                }
                None | Some(Work { known: Known::Removed, .. }) => {}
                Some(work) if work.aim.is_reached(instance) => drop(map.remove(id)),
                Some(work) if work.aim.is_in_doubt(instance) => {
                    doubtful.push((id.clone(), work.clone()));
                }
                Some(_under_way) => {}
            }
        }
        doubtful
    }

    /// Keeps which work request launched an instance that was seen to come, or that there is none.
    fn found(&self, id: &InstanceId, launch: Option<&str>) {
        let mut map = self.map();
        let seen = map.get_mut(id).filter(|work| matches!(work.known, Known::Seen));
        match (launch, seen) {
            (Some(launch), Some(work)) => work.known = Known::Accepted(launch.to_owned()),
            (None, Some(_)) => drop(map.remove(id)),
            (_, None) => {}
        }
    }

    /// Keeps how a work request ended, unless another has taken its place.
    fn ended(&self, id: &InstanceId, ended: Option<&str>, fault: Option<Fault>) {
        let mut map = self.map();
        let is_it = |work: &&mut Work| match &work.known {
            Known::Accepted(it) => Some(it.as_str()) == ended,
            Known::Seen | Known::Failed(_) | Known::Removed => false,
        };
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

/// What is to be said of instances in doubt.
#[derive(Default)]
struct Sayings {
    faults: BTreeMap<InstanceId, Fault>,
    /// Nobody asked for their end, and why they end will be said when the launch is over.
    coming: BTreeSet<InstanceId>,
}

impl Sayings {
    /// Of what is to be asked at the next look, nothing is said that this would change.
    fn put_off(&mut self, id: InstanceId, aim: &Aim) {
        match aim {
            Aim::Launch => drop(self.coming.insert(id)),
            // It may yet get its image.
            Aim::Rebuild(_) => {}
        }
    }
}

impl Oci {
    /// Says of those that were seen to come and are lost, and of those that were to get an image and
    /// have not got it, why that is so.
    pub(crate) async fn explain(&self, instances: &mut [Instance]) {
        let doubtful = self.works.sort(instances);
        if doubtful.is_empty() {
            return;
        }
        let mut sayings = Sayings::default();
        let mut open = BTreeMap::new();
        let mut asked = JoinSet::new();
        let mut of_others: usize = 0;
        for (id, Work { aim, known }) in ours_first(doubtful) {
            let is_other = matches!(known, Known::Seen);
            let work = match known {
                Known::Failed(fault) => {
                    sayings.faults.insert(id, fault);
                    continue;
                }
                Known::Accepted(work) => Some(work),
                Known::Seen | Known::Removed => None,
            };
            if asked.len() < MOST_ASKED && !(is_other && of_others >= MOST_OF_OTHERS) {
                of_others += usize::from(is_other);
                let question = (id.clone(), aim.clone(), work);
                asked.spawn(ask(Arc::clone(&self.api), self.site.compartment.clone(), question));
            }
            open.insert(id, aim);
        }
        let hear = async {
            // A task that was cancelled with the run time has nobody left to tell.
            while let Some(told) = asked.join_next().await {
                if let Ok(told) = told {
                    open.remove(&told.id);
                    self.works.settle(told, &mut sayings);
                }
            }
        };
        let _ = timeout(self.site.longest_explanation, hear).await;
        for (id, aim) in open {
            sayings.put_off(id, &aim);
        }
        for instance in instances {
            instance.fault = sayings.faults.remove(&instance.id);
            if sayings.coming.contains(&instance.id) {
                instance.state = InstanceState::Pending;
            }
        }
    }
}

impl Works {
    /// Keeps what was found out, and what of it is to be said.
    fn settle(&self, told: Told, sayings: &mut Sayings) {
        let Told { id, aim, work, progress } = told;
        // A moment's trouble says nothing about the launch; the next look asks again.
        let passes = progress.as_ref().is_err_and(|error| error.kind().is_transient());
        if !passes || work.is_some() {
            self.found(&id, work.as_deref());
        }
        match (progress, aim) {
            (Ok(Progress::Failed(fault)), _) => {
                self.ended(&id, work.as_deref(), Some(fault.clone()));
                sayings.faults.insert(id, fault);
            }
            (Ok(Progress::Ended), _) => self.ended(&id, work.as_deref(), None),
            (Err(_), aim) if passes => sayings.put_off(id, &aim),
            // Another launched it, and may have removed it.
            (Err(_), Aim::Launch) if work.is_none() => {}
            (Err(error), Aim::Launch) => drop(sayings.faults.insert(id, unread(&error))),
            (Ok(Progress::UnderWay), aim) | (Err(_), aim @ Aim::Rebuild(_)) => {
                sayings.put_off(id, &aim);
            }
        }
    }
}

/// Those of our own before those that others launched.
fn ours_first(mut doubtful: Vec<(InstanceId, Work)>) -> Vec<(InstanceId, Work)> {
    doubtful.sort_by_key(|(_, work)| matches!(work.known, Known::Seen));
    doubtful
}

/// It has failed, and we could not find out why.
fn unread(error: &Error) -> Fault {
    // Without the id of the request: all that are lost alike are one reason.
    let why = error.message().map(|why| format!(": {why}")).unwrap_or_default();
    let kind = error.kind();
    let message = format!("lost soon after its launch; why could not be found out: {kind}{why}");
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
        works.ended(&id, Some("first"), Some(fault()));
        assert_eq!(is_failed(&works, &id), Some(false));
        works.ended(&id, Some("first"), None);
        assert_eq!(is_failed(&works, &id), Some(false));
        works.ended(&id, Some("second"), Some(fault()));
        assert_eq!(is_failed(&works, &id), Some(true));
        works.begins_anew(&id);
        assert_eq!(is_failed(&works, &id), None);
    }

    /// A listing that was on its way when the instance was removed shows it as it was.
    #[test]
    fn an_instance_that_we_removed_has_not_failed() {
        let (works, id) = (Works::default(), InstanceId::new("i"));
        let name = cloud_core::InstanceName::new("vm-1");
        let shown = |state| [Instance::new(id.clone(), name.clone(), state)];
        works.removed(&id);
        assert!(works.sort(&shown(InstanceState::Pending)).is_empty());
        assert!(works.sort(&shown(InstanceState::Terminating)).is_empty());
    }

    #[test]
    fn a_rebuild_that_is_asked_for_too_soon_does_not_forget_the_launch() {
        let (works, id) = (Works::default(), InstanceId::new("i"));
        began(&works, &id, Aim::Launch, "w");
        works.begins_anew(&id);
        assert_eq!(is_failed(&works, &id), Some(false));
    }
}
