//! Rebuilds and reboots instances, and waits until they are back.

use super::stage::Executor;
use crate::cause::Cause;
use crate::report::{NodeReport, Outcome};
use crate::retry::Retry;
use crate::state::EventKind;
use cloud_core::{
    Error, ErrorKind, Goal, ImageId, InstanceId, Poll, Reboot, WaitOutcome, Waited, wait_until,
};
use futures_util::stream::{self, StreamExt as _};
use hostlist::NodeName;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long a request that may have had an effect is repeated. Later, the machine may be back, with a job.
const SOON: Duration = Duration::from_secs(10);

/// An instance that gets another image, or a reboot.
pub(super) struct Renewal {
    pub(super) node: NodeName,
    pub(super) id: InstanceId,
    pub(super) how: Renew,
}

pub(super) enum Renew {
    Image(ImageId),
    Boot(Reboot),
}

/// Machines that are waited for, by their new image.
type Groups = BTreeMap<Option<String>, Vec<(NodeName, InstanceId)>>;

impl Executor<'_> {
    /// Rebuilds and reboots, and waits until all are back.
    pub(super) async fn rebuild(&mut self, machines: Vec<Renewal>) {
        let (tools, concurrency) = (self.tools, self.site.policies.concurrency.max(1));
        let deadline = self.deadline;
        let requested: Vec<(Renewal, Result<(), Error>)> = stream::iter(machines)
            .map(|machine| async move {
                let result = begin(tools.cloud, &machine, deadline).await;
                (machine, result)
            })
            .buffer_unordered(concurrency)
            .collect()
            .await;
        let mut waiting = Groups::new();
        for (Renewal { node, id, how }, result) in requested {
            let image = match how {
                Renew::Image(image) => Some(image.as_str().to_owned()),
                Renew::Boot(_) => None,
            };
            match result {
                Ok(()) => waiting.entry(image).or_default().push((node, id)),
                Err(error) => {
                    if image.is_some() && error.kind() == ErrorKind::Unsupported {
                        self.note_fixed(&node, &id);
                    }
                    self.machine_failed(&node, &id, &error);
                }
            }
        }
        self.wait_back(waiting).await;
    }

    /// Records that the image of an instance cannot be replaced. The next plan decides what to do instead.
    fn note_fixed(&mut self, node: &NodeName, id: &InstanceId) {
        self.fixed.insert(node.clone(), id.clone());
        if let Some(lock) = self.locks.get_mut(node) {
            let mut record = lock.record();
            record.fixed = Some(id.as_str().to_owned());
            // Without the record, the next process asks the cloud again.
            let _ = lock.keep(&record);
        }
    }

    fn machine_failed(&mut self, node: &NodeName, id: &InstanceId, error: &Error) {
        let mut report = NodeReport::failed_by(error);
        report.instance = Some(id.as_str().to_owned());
        self.report.note(node.clone(), report);
    }

    /// Waits for all groups side by side: a reboot that never ends must not use up the time of the others.
    async fn wait_back(&mut self, groups: Groups) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (cloud, most) = (self.tools.cloud, groups.len().max(1));
        let waits = groups.into_iter().map(|(image, machines)| async move {
            let image = image.map(ImageId::new);
            let ids: Vec<InstanceId> = machines.iter().map(|(_, id)| id.clone()).collect();
            let goal = image.as_ref().map_or(Goal::Running, Goal::RunningImage);
            let waited = wait_until(cloud, &ids, goal, Poll::until(left)).await;
            (machines, waited)
        });
        let waited: Vec<_> = stream::iter(waits).buffer_unordered(most).collect().await;
        for (machines, waited) in waited {
            self.came_back(machines, &waited);
        }
    }

    fn came_back(&mut self, machines: Vec<(NodeName, InstanceId)>, waited: &Waited) {
        for (node, id) in machines {
            let mut report = match waited.outcomes.get(&id) {
                Some(WaitOutcome::Reached(_)) => {
                    self.tools.note_node(EventKind::Rebuilt, &node, id.as_str());
                    NodeReport::new(Outcome::Done)
                }
                Some(WaitOutcome::Lost(instance)) => instance.fault.as_ref().map_or_else(
                    || {
                        let words = format!("the instance is {}", instance.state);
                        NodeReport::failed(Cause::Unavailable, words)
                    },
                    |fault| NodeReport::failed(Cause::from(fault.kind), &fault.message),
                ),
                Some(WaitOutcome::Gone) => {
                    NodeReport::failed(Cause::NotFound, "the instance disappeared")
                }
                Some(WaitOutcome::TimedOut(_)) | None => {
                    NodeReport::failed(Cause::Timeout, "the instance did not come back in time")
                }
                Some(WaitOutcome::Unknown(_)) => {
                    let words = waited.last_error.as_ref().map(ToString::to_string);
                    NodeReport::failed(Cause::Unavailable, words.unwrap_or_default())
                }
            };
            report.instance = Some(id.as_str().to_owned());
            self.report.note(node, report);
        }
    }
}

/// Requests a rebuild or a reboot. Repeats it soon if the answer is lost, because a running machine does not show
/// whether it was rebooted.
async fn begin(
    cloud: &dyn cloud_core::Provider,
    machine: &Renewal,
    deadline: Instant,
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut retry = Retry::default();
    let mut perhaps_begun = false;
    loop {
        let result = match &machine.how {
            Renew::Image(image) => cloud.rebuild(&machine.id, image).await,
            Renew::Boot(how) => cloud.reboot(&machine.id, *how).await,
        };
        let Err(error) = result else {
            return Ok(());
        };
        if perhaps_begun && error.kind() == ErrorKind::Conflict {
            // The earlier request is under way.
            return Ok(());
        }
        match error.kind() {
            ErrorKind::Throttled | ErrorKind::Unavailable | ErrorKind::Ambiguous => {}
            _ => return Err(error),
        }
        perhaps_begun |= error.kind() == ErrorKind::Ambiguous;
        let until = if perhaps_begun { deadline.min(begun + SOON) } else { deadline };
        let pause = retry.pause(&error).filter(|pause| Instant::now() + *pause < until);
        let Some(pause) = pause else {
            return match machine.how {
                // The image shows whether it was rebuilt.
                Renew::Image(_) if perhaps_begun => Ok(()),
                Renew::Boot(_) if perhaps_begun => Err(error.with_kind(ErrorKind::Ambiguous)),
                Renew::Image(_) | Renew::Boot(_) => Err(error),
            };
        };
        sleep(pause).await;
    }
}
