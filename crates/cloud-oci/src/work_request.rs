//! Tracks accepted launches and rebuilds by their work requests.

mod lookup;

use crate::provider::Oci;
use cloud_core::http::{HeaderName, Response};
use cloud_core::{Error, ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceState};
use lookup::{Found, Progress, Question};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum number of work requests that one observation looks up, so that a thousand failed launches do not delay all
/// others.
const MOST_LOOKUPS: usize = 50;

/// Maximum number of these for launches of other processes, which look them up themselves.
const MOST_OF_OTHERS: usize = 16;

/// The launches and rebuilds that this provider started or observed, until they are done.
#[derive(Debug, Default)]
pub(crate) struct WorkRequests(Mutex<BTreeMap<InstanceId, Tracked>>);

#[derive(Clone, Debug)]
struct Tracked {
    goal: Goal,
    status: Status,
}

/// The kind of a work request.
#[derive(Clone, Debug)]
pub(crate) enum Goal {
    Launch,
    Rebuild(ImageId),
}

#[derive(Clone, Debug)]
enum Status {
    /// Accepted, with this work request.
    Accepted(String),
    /// Observed, but launched by another process or by a request whose response was lost, so that the work request is
    /// unknown.
    Seen,
    Failed(Fault),
    /// Terminated by this provider, so it has not failed.
    Removed,
}

impl Goal {
    /// The fault until the next observation looks up the work request.
    fn deferred(&self) -> Explanation {
        match self {
            Self::Launch => Explanation::Pending,
            // The rebuild may still succeed.
            Self::Rebuild(_) => Explanation::Nothing,
        }
    }

    fn is_reached(&self, instance: &Instance) -> bool {
        let running = instance.state == InstanceState::Running;
        match self {
            Self::Launch => running,
            Self::Rebuild(image) => running && instance.image.as_ref() == Some(image),
        }
    }

    /// True if the instance is in an unexpected state that only the work request explains.
    fn is_unexplained(&self, instance: &Instance) -> bool {
        match self {
            Self::Launch => instance.state.is_lost(),
            Self::Rebuild(_) => {
                matches!(instance.state, InstanceState::Running | InstanceState::Stopped)
            }
        }
    }
}

impl WorkRequests {
    /// Tracks the work request that a response names.
    pub(crate) fn began(&self, id: &InstanceId, goal: Goal, response: &Response) {
        if let Some(work) = response.header(&HeaderName::from_static("opc-work-request-id")) {
            let status = Status::Accepted(work.to_owned());
            self.map().insert(id.clone(), Tracked { goal, status });
        }
    }

    /// The result of an earlier rebuild does not apply to the new one.
    pub(crate) fn begins_anew(&self, id: &InstanceId) {
        let mut map = self.map();
        if map.get(id).is_some_and(|work| matches!(work.goal, Goal::Rebuild(_))) {
            map.remove(id);
        }
    }

    /// Marks an instance as terminated on request, so that it has not failed, unless it had before.
    pub(crate) fn removed(&self, id: &InstanceId) {
        let mut map = self.map();
        if !map.get(id).is_some_and(|work| matches!(work.status, Status::Failed(_))) {
            map.insert(id.clone(), Tracked { goal: Goal::Launch, status: Status::Removed });
        }
    }

    /// Returns the instances to look up, those of this process first. Starts tracking new instances, and forgets those that
    /// are done.
    fn unexplained(&self, instances: &[Instance]) -> Vec<(InstanceId, Tracked)> {
        let mut map = self.map();
        let mut unexplained = Vec::new();
        for instance in instances {
            let id = &instance.id;
            match map.get(id) {
                None if instance.state == InstanceState::Pending => {
                    map.insert(id.clone(), Tracked { goal: Goal::Launch, status: Status::Seen });
                }
                None | Some(Tracked { status: Status::Removed, .. }) => {}
                Some(work) if work.goal.is_reached(instance) => drop(map.remove(id)),
                Some(work) if work.goal.is_unexplained(instance) => {
                    unexplained.push((id.clone(), work.clone()));
                }
                Some(_under_way) => {}
            }
        }
        unexplained.sort_by_key(|(_, tracked)| matches!(tracked.status, Status::Seen));
        unexplained
    }

    /// Stores the work request of an observed instance, or that there is none.
    fn found(&self, id: &InstanceId, launch: Option<&str>) {
        let mut map = self.map();
        let seen = map.get_mut(id).filter(|work| matches!(work.status, Status::Seen));
        match (launch, seen) {
            (Some(launch), Some(work)) => work.status = Status::Accepted(launch.to_owned()),
            (None, Some(_)) => drop(map.remove(id)),
            (_, None) => {}
        }
    }

    /// Stores the result of a work request, unless another has replaced it.
    fn ended(&self, id: &InstanceId, ended: Option<&str>, fault: Option<Fault>) {
        let mut map = self.map();
        let is_it = |work: &&mut Tracked| match &work.status {
            Status::Accepted(it) => Some(it.as_str()) == ended,
            Status::Seen | Status::Failed(_) | Status::Removed => false,
        };
        match (fault, map.get_mut(id).filter(is_it)) {
            (Some(fault), Some(work)) => work.status = Status::Failed(fault),
            (None, Some(_)) => drop(map.remove(id)),
            (_, None) => {}
        }
    }

    fn map(&self) -> MutexGuard<'_, BTreeMap<InstanceId, Tracked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The fault of an instance, from its work request.
enum Explanation {
    Fault(Fault),
    /// It was not terminated on request. The reason is known when the launch has ended.
    Pending,
    Nothing,
}

impl Oci {
    /// Adds faults to instances whose launch or rebuild was accepted and failed later.
    pub(crate) async fn explain(&self, instances: &mut [Instance]) {
        let mut explanations = BTreeMap::new();
        let mut lookups = JoinSet::new();
        let mut of_others: usize = 0;
        for (id, Tracked { goal, status }) in self.work_requests.unexplained(instances) {
            let is_other = matches!(status, Status::Seen);
            let work = match status {
                Status::Failed(fault) => {
                    explanations.insert(id, Explanation::Fault(fault));
                    continue;
                }
                Status::Accepted(work) => Some(work),
                Status::Seen | Status::Removed => None,
            };
            explanations.insert(id.clone(), goal.deferred());
            if lookups.len() < MOST_LOOKUPS && !(is_other && of_others >= MOST_OF_OTHERS) {
                of_others += usize::from(is_other);
                let question = Question { id, goal, work };
                let (api, compartment) = (Arc::clone(&self.api), self.site.compartment.clone());
                lookups.spawn(async move { question.look_up(&api, &compartment).await });
            }
        }
        let record = async {
            while let Some(found) = lookups.join_next().await {
                // A task that was cancelled with the runtime has no receiver.
                let Ok(found) = found else { continue };
                explanations.insert(found.id.clone(), self.work_requests.record(found));
            }
        };
        let _ = timeout(self.site.longest_explanation, record).await;
        for instance in instances {
            match explanations.remove(&instance.id) {
                Some(Explanation::Fault(fault)) => instance.fault = Some(fault),
                Some(Explanation::Pending) => instance.state = InstanceState::Pending,
                Some(Explanation::Nothing) | None => {}
            }
        }
    }
}

impl WorkRequests {
    /// Stores the result of a lookup, and returns the fault of the instance.
    fn record(&self, Found { id, goal, work, progress }: Found) -> Explanation {
        let transient = progress.as_ref().is_err_and(|error| error.kind().is_transient());
        if !transient || work.is_some() {
            self.found(&id, work.as_deref());
        }
        match (progress, goal) {
            (Ok(Progress::Failed(fault)), _) => {
                self.ended(&id, work.as_deref(), Some(fault.clone()));
                Explanation::Fault(fault)
            }
            (Ok(Progress::Ended), _) => {
                self.ended(&id, work.as_deref(), None);
                Explanation::Nothing
            }
            (Err(error), Goal::Launch) if !transient => match work {
                Some(_) => Explanation::Fault(unread(&error)),
                // Another process launched it, and may have terminated it.
                None => Explanation::Nothing,
            },
            (Ok(Progress::UnderWay) | Err(_), goal) => goal.deferred(),
        }
    }
}

/// The fault for an unknown reason.
fn unread(error: &Error) -> Fault {
    // Without the request id, so that equal failures have the same reason.
    let why = error.message().map(|why| format!(": {why}")).unwrap_or_default();
    let kind = error.kind();
    let message = format!("lost soon after its launch; the reason could not be read: {kind}{why}");
    Fault { kind: ErrorKind::Unavailable, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault() -> Fault {
        Fault { kind: ErrorKind::Unavailable, message: "broken".to_owned() }
    }

    fn began(requests: &WorkRequests, id: &InstanceId, goal: Goal, work: &str) {
        let status = Status::Accepted(work.to_owned());
        requests.map().insert(id.clone(), Tracked { goal, status });
    }

    fn is_failed(requests: &WorkRequests, id: &InstanceId) -> Option<bool> {
        requests.map().get(id).map(|work| matches!(work.status, Status::Failed(_)))
    }

    #[test]
    fn the_end_of_an_earlier_rebuild_is_not_taken_for_that_of_the_next() {
        let (requests, id) = (WorkRequests::default(), InstanceId::new("i"));
        let goal = || Goal::Rebuild(ImageId::new("new"));
        began(&requests, &id, goal(), "second");
        requests.ended(&id, Some("first"), Some(fault()));
        assert_eq!(is_failed(&requests, &id), Some(false));
        requests.ended(&id, Some("first"), None);
        assert_eq!(is_failed(&requests, &id), Some(false));
        requests.ended(&id, Some("second"), Some(fault()));
        assert_eq!(is_failed(&requests, &id), Some(true));
        requests.begins_anew(&id);
        assert_eq!(is_failed(&requests, &id), None);
    }

    /// A listing that was in flight during the termination shows the old state.
    #[test]
    fn an_instance_that_we_removed_has_not_failed() {
        let (requests, id) = (WorkRequests::default(), InstanceId::new("i"));
        let name = cloud_core::InstanceName::new("vm-1");
        let shown = |state| [Instance::new(id.clone(), name.clone(), state)];
        requests.removed(&id);
        assert!(requests.unexplained(&shown(InstanceState::Pending)).is_empty());
        assert!(requests.unexplained(&shown(InstanceState::Terminating)).is_empty());
    }

    #[test]
    fn a_rebuild_that_is_asked_for_too_soon_does_not_forget_the_launch() {
        let (requests, id) = (WorkRequests::default(), InstanceId::new("i"));
        began(&requests, &id, Goal::Launch, "w");
        requests.begins_anew(&id);
        assert_eq!(is_failed(&requests, &id), Some(false));
    }
}
