//! Termination of instances of this cluster that belong to no node.

use super::stage::Executor;
use crate::retry;
use crate::state::EventKind;
use cloud_core::{Error, InstanceId};
use futures_util::stream::{self, StreamExt as _};

impl Executor<'_> {
    /// Terminates instances of this cluster that belong to no node.
    pub(super) async fn terminate_nameless(&mut self, ids: Vec<InstanceId>) {
        let (tools, concurrency) = (self.tools, self.site.policies.concurrency.max(1));
        let deadline = self.deadline;
        let ended: Vec<(InstanceId, Result<(), Error>)> = stream::iter(ids)
            .map(|id| async move {
                let result = retry::until(deadline, || tools.cloud.terminate(&id)).await;
                (id, result)
            })
            .buffer_unordered(concurrency)
            .collect()
            .await;
        for (id, result) in ended {
            match result {
                Ok(()) => {
                    self.tools.note(&self.tools.event(EventKind::Terminated).with(id.as_str()));
                }
                Err(error) => self.report.failures.push(format!("{id}: {error}")),
            }
        }
    }
}
