//! Corrects a listing by the recorded launches and terminations of earlier runs.

use super::Run;
use crate::state::{NodeLock, NodeRecord};
use cloud_core::{ErrorKind, Instance, InstanceId, InstanceState};
use futures_util::stream::{self, StreamExt as _};
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;
use tokio::time::{Instant, timeout_at};

impl Run<'_> {
    /// Corrects a listing by the nodes' records, because a listing lags behind launches and terminations, and may flap.
    pub(super) async fn remember(
        &self,
        locks: &mut BTreeMap<NodeName, Box<dyn NodeLock>>,
        listed: &mut Vec<Instance>,
        until: Instant,
    ) {
        let now = self.tools.now();
        let hidden = mark(locks, listed, now);
        let cloud = self.tools.cloud;
        let mut answers = stream::iter(hidden)
            .map(|(node, id)| async move {
                let answer = timeout_at(until, cloud.get(&id)).await;
                (node, id, answer)
            })
            .buffer_unordered(self.site.policies.concurrency.max(1));
        while let Some((node, id, answer)) = answers.next().await {
            let Some(lock) = locks.get_mut(&node) else {
                continue;
            };
            match answer {
                Ok(Ok(instance)) if !self.site.identity.owns(&instance) => {
                    disown(lock.as_mut(), &id);
                }
                Ok(Ok(instance)) if instance.state.is_live() => listed.push(instance),
                Ok(Ok(_)) => forget(lock.as_mut(), &id, now),
                Ok(Err(error)) if error.kind() == ErrorKind::NotFound => disown(lock.as_mut(), &id),
                // Unknown: a start observes several times before it launches.
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }
}

/// Applies the record of a node without its lock. Nothing is written.
#[derive(Debug)]
pub(super) struct Peek(NodeRecord);

impl Peek {
    pub(super) fn new(record: NodeRecord) -> Self {
        Self(record)
    }
}

impl NodeLock for Peek {
    fn record(&self) -> NodeRecord {
        self.0.clone()
    }

    fn keep(&mut self, record: &NodeRecord) -> crate::state::Result<()> {
        self.0 = record.clone();
        Ok(())
    }
}

/// Marks recently terminated instances as leaving, and records which are gone. Returns recorded instances that are not
/// listed.
fn mark(
    locks: &mut BTreeMap<NodeName, Box<dyn NodeLock>>,
    listed: &mut [Instance],
    now: SystemTime,
) -> Vec<(NodeName, InstanceId)> {
    let terminated = |record: NodeRecord| -> Vec<InstanceId> {
        record.recently_terminated(now).map(InstanceId::new).collect()
    };
    let terminated: BTreeSet<InstanceId> =
        locks.values().map(|lock| lock.record()).flat_map(terminated).collect();
    for instance in listed.iter_mut().filter(|instance| terminated.contains(&instance.id)) {
        if !instance.state.is_leaving() {
            instance.state = InstanceState::Terminating;
        }
    }
    let states = listed.iter().map(|instance| (&instance.id, instance.state.is_live()));
    let live: BTreeMap<&InstanceId, bool> = states.collect();
    let mut hidden = Vec::new();
    for (node, lock) in locks {
        let Some(id) = lock.record().instance() else {
            continue;
        };
        match live.get(&id) {
            None => hidden.push((node.clone(), id)),
            Some(true) => {}
            Some(false) => forget(lock.as_mut(), &id, now),
        }
    }
    hidden
}

/// Records that an instance is gone.
fn forget(lock: &mut dyn NodeLock, id: &InstanceId, now: SystemTime) {
    let mut record = lock.record();
    record.terminate(id, now);
    let _ = lock.keep(&record);
}

/// Records that an instance does not exist or lost its tags.
fn disown(lock: &mut dyn NodeLock, id: &InstanceId) {
    let mut record = lock.record();
    record.forget(id);
    let _ = lock.keep(&record);
}
