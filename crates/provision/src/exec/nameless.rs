//! Instances of ours that are no node's are terminated.

use super::stage::Executor;
use crate::state::EventKind;
use cloud_core::{Error, ErrorKind, InstanceId, Provider};
use futures_util::stream::{self, StreamExt as _};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often a termination that did not succeed is repeated.
const MOST_TRIES: u32 = 4;

impl Executor<'_> {
    /// Instances of ours that are no node's.
    pub(super) async fn terminate_nameless(&mut self, ids: Vec<InstanceId>) {
        let (tools, concurrency) = (self.tools, self.site.policies.concurrency.max(1));
        let deadline = self.deadline;
        let ended: Vec<(InstanceId, Result<(), Error>)> = stream::iter(ids)
            .map(|id| async move {
                let result = terminate(tools.cloud, &id, deadline).await;
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

/// Begins to remove one instance, again if need be: to do it twice is to do it once.
async fn terminate(cloud: &dyn Provider, id: &InstanceId, deadline: Instant) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        let error = match cloud.terminate(id).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let passes = matches!(
            error.kind(),
            ErrorKind::Throttled | ErrorKind::Unavailable | ErrorKind::Ambiguous
        );
        let pause =
            Duration::from_millis(500 << tries).max(error.retry_after().unwrap_or_default());
        if !passes || tries >= MOST_TRIES || Instant::now() + pause >= deadline {
            return Err(error);
        }
        tries += 1;
        sleep(pause).await;
    }
}
