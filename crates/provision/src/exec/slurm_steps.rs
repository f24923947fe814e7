//! The steps that Slurm carries out; what is said of many nodes alike is said in one call.

use super::LAST_ANSWERS;
use super::notification::{Notification, Still, Taken};
use super::stage::Executor;
use crate::cause::Cause;
use crate::conf::{Expected, Patience};
use crate::plan::{FindingKind, Operation, Reload, SlurmStep};
use crate::report::{NodeReport, Outcome};
use crate::state::{EventKind, cooldowns};
use crate::world::Roster;
use hostlist::{Hostlist, NodeName};
use slurmctl::{ErrorKind, NodeAction, NodeAddress};
use std::collections::BTreeMap;
use std::slice::from_ref;
use tokio::time::{Instant, timeout_at};

/// What is said of many nodes alike.
#[derive(Debug, Default)]
pub(super) struct Batch {
    nodes: BTreeMap<Notification, Vec<NodeName>>,
    addresses: BTreeMap<NodeName, NodeAddress>,
}

impl Batch {
    fn add(&mut self, notification: Notification, nodes: impl IntoIterator<Item = NodeName>) {
        self.nodes.entry(notification).or_default().extend(nodes);
    }

    async fn send(
        &self,
        executor: &Executor<'_>,
        notification: &Notification,
        nodes: &[NodeName],
    ) -> slurmctl::Result<Taken> {
        let addresses: Vec<NodeAddress> =
            nodes.iter().filter_map(|node| self.addresses.get(node)).cloned().collect();
        notification.send(executor.tools, nodes, &addresses).await
    }
}

impl Executor<'_> {
    /// Carries out one step, or puts it to those that say the same.
    pub(super) async fn slurm_step(&mut self, step: SlurmStep, batch: &mut Batch) {
        match step {
            SlurmStep::ReturnToSlurm { node, reason, .. } => {
                batch.add(Notification::Return(self.still(&node), reason), [node]);
            }
            SlurmStep::ReturnToService { node } => batch.add(Notification::ReturnToService, [node]),
            SlurmStep::Undrain { nodes } => batch.add(Notification::Undrain, nodes),
            SlurmStep::SetAddress { node, address } => {
                batch.addresses.insert(node.clone(), NodeAddress::new(node.clone(), address));
                batch.add(Notification::Addresses, [node]);
            }
            SlurmStep::Drain { nodes, reason } => {
                let nodes = self.still_to_drain(nodes).await;
                if !nodes.is_empty() {
                    let (slurm, all) = (self.tools.slurm, list(&nodes));
                    let result = slurm.set_state(&all, NodeAction::Drain, Some(&reason)).await;
                    self.notified(&nodes, &result);
                }
            }
            SlurmStep::WaitDrained { nodes, reason, deadline } => {
                self.wait_drained(nodes, &reason, deadline).await;
            }
            SlurmStep::RebootBySlurm { nodes, reason } => {
                let result = self.tools.slurm.reboot(&list(&nodes), &reason).await;
                self.notified(&nodes, &result);
            }
            SlurmStep::Submit { job } => {
                let result = self.tools.slurm.submit(&job).await.map(|_| ());
                self.notified(from_ref(&job.node), &result);
            }
            SlurmStep::ReportAddresses { nodes } => self.report_addresses(nodes).await,
            SlurmStep::Comment { job, text } => {
                let comment = Notification::Comment(job, text);
                if let Err(error) = comment.send(self.tools, [], &[]).await {
                    self.report.warn(format!("job {job} could not be told: {error}"));
                }
            }
            SlurmStep::Reload(how) => self.reload(how).await,
        }
    }

    fn still(&self, node: &NodeName) -> Still {
        match self.report.operation {
            Operation::Finish | Operation::Resize => Still::On,
            Operation::Reconcile if self.has_found(FindingKind::Ghost, node) => Still::Silent,
            Operation::Reconcile
            | Operation::Start
            | Operation::Stop
            | Operation::StopAll
            | Operation::Failed
            | Operation::Rebuild
            | Operation::Rollout
            | Operation::Deploy => Still::Awaited,
        }
    }

    /// Sends a batch to Slurm, one call for each kind of notification.
    pub(super) async fn send(&mut self, mut batch: Batch) {
        for (notification, nodes) in std::mem::take(&mut batch.nodes) {
            if self.breaks_off(&nodes) {
                continue;
            }
            let result = batch.send(self, &notification, &nodes).await;
            let refused =
                result.as_ref().is_err_and(|error| error.kind() != ErrorKind::Unavailable);
            if refused && nodes.len() > 1 && notification.is_repeatable() {
                for node in nodes.iter().map(from_ref) {
                    if !self.breaks_off(node) {
                        let result = batch.send(self, &notification, node).await;
                        self.sent(&notification, node, result);
                    }
                }
            } else {
                self.sent(&notification, &nodes, result);
            }
            if self.report.operation == Operation::Reconcile {
                // Nothing more is done to them.
                for node in &nodes {
                    self.locks.remove(node);
                }
            }
        }
    }

    /// Notes what became of it.
    fn sent(
        &mut self,
        notification: &Notification,
        nodes: &[NodeName],
        result: slurmctl::Result<Taken>,
    ) {
        match (notification, &result) {
            (Notification::Return(_, reason), Ok(taken)) => {
                for node in &taken.nodes {
                    self.tools.note_node(EventKind::ReturnedToSlurm, node, reason.as_str());
                }
            }
            (Notification::ReturnToService, Ok(Taken { nodes, .. })) => {
                for node in nodes {
                    self.tools.note_node(EventKind::Returned, node, "returned to service");
                    self.cooldowns.wake(node);
                }
                let wake = |all: &mut crate::Cooldowns| nodes.iter().for_each(|it| all.wake(it));
                cooldowns::change(self.tools.state, wake);
            }
            (
                Notification::Addresses
                | Notification::Undrain
                | Notification::Confirm
                | Notification::Comment(..),
                Ok(_),
            )
            | (_, Err(_)) => {}
        }
        self.notified(nodes, &result.map(|_| ()));
    }

    /// True if there is no time for these any more: a reconcile does the rest the next time. What others
    /// say last undoes what they have begun, and is said in any case.
    fn breaks_off(&mut self, nodes: &[NodeName]) -> bool {
        let cause = if self.report.operation != Operation::Reconcile {
            return false;
        } else if self.tools.cancel.is_cancelled() {
            Cause::Cancelled
        } else if Instant::now() >= self.deadline {
            Cause::Timeout
        } else {
            return false;
        };
        for node in nodes {
            let failed = NodeReport::new(Outcome::Failed).because(cause, cause.words());
            self.report.note(node.clone(), failed);
        }
        true
    }

    /// A reconcile drains on its own account, and only who is asleep yet: an administrator may have come to
    /// drain one, and the reason would be lost.
    async fn still_to_drain(&mut self, nodes: Vec<NodeName>) -> Vec<NodeName> {
        if self.report.operation != Operation::Reconcile {
            return nodes;
        }
        match self.tools.slurm.nodes(Some(&list(&nodes))).await {
            Ok(known) => {
                let asleep = known.into_iter().filter(|node| {
                    let state = &node.state;
                    state.is_powered_down()
                        && !(state.has_drain() || state.has_job() || state.is_down())
                });
                asleep.map(|node| node.name).collect()
            }
            Err(error) => {
                self.notified(&nodes, &Err(error));
                Vec::new()
            }
        }
    }

    /// Notes how a call to Slurm went for its nodes.
    pub(super) fn notified(&mut self, nodes: &[NodeName], result: &slurmctl::Result<()>) {
        if result.as_ref().is_err_and(|error| error.kind() == slurmctl::ErrorKind::Unavailable) {
            self.unanswered.extend(nodes.iter().cloned());
        }
        for node in nodes {
            let report = match result {
                Ok(()) => NodeReport::new(Outcome::Done),
                Err(error) => {
                    NodeReport::new(Outcome::Failed).because(Cause::Slurm, error.to_string())
                }
            };
            self.report.note(node.clone(), report);
        }
    }

    /// Tells Slurm where nodes are; one that is nowhere to be found has failed.
    async fn report_addresses(&mut self, nodes: Vec<NodeName>) {
        let why = self.find_addresses(&nodes).await.err();
        let (known, unknown): (Vec<NodeName>, Vec<NodeName>) =
            nodes.into_iter().partition(|node| self.addresses.contains_key(node));
        let told = |node: &NodeName| {
            let (address, id) = self.addresses.get(node)?;
            let mut told = NodeAddress::new(node.clone(), *address);
            told.instance_id = Some(id.as_str().to_owned());
            Some(told)
        };
        let addresses: Vec<NodeAddress> = known.iter().filter_map(told).collect();
        if !addresses.is_empty() {
            let result = self.tools.slurm.set_addresses(&addresses).await;
            self.notified(&known, &result);
        }
        let (cause, why) = why.unwrap_or((Cause::NotFound, "the cloud shows no address".into()));
        for node in unknown {
            let report = NodeReport::new(Outcome::Failed);
            self.report.note(node, report.because(cause, why.as_str()));
        }
    }

    /// Finds the nodes that this plan did not bring up: a run before it did, and did not come to tell.
    async fn find_addresses(&mut self, nodes: &[NodeName]) -> Result<(), (Cause, String)> {
        let missing: Vec<&NodeName> =
            nodes.iter().filter(|node| !self.addresses.contains_key(*node)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let written = self.written.as_ref().map(Roster::new);
        let conf = written.as_ref().unwrap_or(self.conf);
        let fleet = timeout_at(self.deadline + LAST_ANSWERS, self.fleet(conf)).await;
        let fleet = fleet
            .map_err(|late| (Cause::Timeout, late.to_string()))?
            .map_err(|error| (Cause::from(error.kind()), crate::failure::chain(&error)))?;
        for node in missing {
            if let [one] = fleet.standing(node).here[..]
                && let Some(address) = one.address
            {
                self.addresses.insert(node.clone(), (address, one.id.clone()));
            }
        }
        Ok(())
    }

    async fn reload(&mut self, how: Reload) {
        let result = match how {
            Reload::Reconfigure => self.tools.slurm.reconfigure().await,
            Reload::Restart => self.tools.slurm.restart().await,
        };
        if let Err(error) = result {
            if !(is_open(how, &error) && self.has_taken().await) {
                self.report.slurm_refused = true;
                let failure = format!("slurmctld did not take up its configuration: {error}");
                self.report.failures.push(failure);
                return;
            }
            self.report.warn(
                "slurmctld did not answer when told of its configuration, and has taken it up",
            );
        }
        self.report.slurm_told = true;
    }

    /// True if slurmctld comes to run with what slurm.conf has now.
    async fn has_taken(&self) -> bool {
        let (before, gone) = (self.conf.config(), self.dropped.iter().cloned());
        let expected = match &self.written {
            Some(written) => Expected::new(written, gone).but_for_kept(before),
            None => Expected::new(before, gone),
        };
        expected.runs(self.tools.slurm, Patience::LONG).await
    }
}

/// True if slurmctld may have done it, or may yet; a restart has waited for that.
fn is_open(how: Reload, error: &slurmctl::Error) -> bool {
    error.kind() == slurmctl::ErrorKind::Unavailable && how == Reload::Reconfigure
}

fn list(nodes: &[NodeName]) -> Hostlist {
    nodes.iter().collect()
}
