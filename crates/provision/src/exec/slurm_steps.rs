//! The steps that Slurm carries out, with one call for many nodes.

use super::LAST_ANSWERS;
use super::message::{Taken, Verdict};
use super::outbox::{Outbox, Sent};
use super::stage::Executor;
use crate::cause::Cause;
use crate::conf::{Expected, Patience};
use crate::failure::chain;
use crate::plan::{Notification, Operation, Reload, SlurmStep};
use crate::report::{NodeReport, Outcome};
use crate::state::{EventKind, cooldowns};
use crate::world::Roster;
use hostlist::NodeName;
use slurmctl::{ErrorKind, NodeAddress};
use tokio::time::{Instant, timeout_at};

impl Executor<'_> {
    /// Waits for what the step waits for, and posts what Slurm gets.
    pub(super) async fn slurm_step(&mut self, step: SlurmStep, outbox: &Outbox) {
        match step {
            SlurmStep::Notify { what: Notification::Comment(job, text), .. } => {
                outbox.comment(job, text);
            }
            SlurmStep::Notify { what: what @ Notification::Reload(_), .. } => outbox.announce(what),
            SlurmStep::Notify { nodes, what } => outbox.notify(what, nodes),
            SlurmStep::SetAddress { node, address } => {
                outbox.notify_addresses([NodeAddress::new(node, address)]);
            }
            SlurmStep::WaitDrained { nodes, reason, deadline } => {
                self.wait_drained(nodes, &reason, deadline).await;
            }
            SlurmStep::ReportAddresses { nodes } => self.report_addresses(nodes, outbox).await,
        }
    }

    /// Sends what is in an outbox. A reconcile does the rest the next time when its time is up; what others send
    /// last undoes what they have begun, and is sent in any case.
    pub(super) async fn send(&mut self, outbox: Outbox) {
        while !outbox.is_empty() {
            if let Some(cause) = self.reconcile_ends() {
                for node in outbox.nodes() {
                    self.report.note(node, NodeReport::failed(cause, cause.words()));
                }
                return;
            }
            if let Some(sent) = outbox.send_next(self.tools).await {
                self.sent(sent).await;
            }
        }
    }

    fn reconcile_ends(&self) -> Option<Cause> {
        if self.report.operation != Operation::Reconcile {
            None
        } else if self.tools.cancel.is_cancelled() {
            Some(Cause::Cancelled)
        } else {
            (Instant::now() >= self.deadline).then_some(Cause::Timeout)
        }
    }

    /// Notes what became of a call.
    async fn sent(&mut self, Sent { message, nodes, result }: Sent) {
        let notification = message.notification();
        match (notification, &result) {
            (Some(Notification::ReturnToSlurm { cause, reason, .. }), Ok(taken)) => {
                for node in &taken.nodes {
                    let event = self.tools.event(EventKind::ReturnedToSlurm).of(node);
                    self.tools.note(&event.because(reason.as_str()).caused_by(cause.as_str()));
                }
            }
            (Some(Notification::ReturnToService), Ok(Taken { nodes, .. })) => {
                for node in nodes {
                    self.tools.note_node(EventKind::Returned, node, "returned to service");
                    self.cooldowns.wake(node);
                }
                let wake = |all: &mut crate::Cooldowns| nodes.iter().for_each(|it| all.wake(it));
                cooldowns::change(self.tools.state, wake);
            }
            (Some(Notification::Comment(job, _)), Err(error)) => {
                self.report.warn(format!("cannot set the comment of job {job}: {error}"));
            }
            (Some(Notification::Reload(how)), result) => {
                return self.reloaded(*how, result.as_ref().err()).await;
            }
            (_, Ok(_) | Err(_)) => {}
        }
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable) {
            self.unanswered.extend(nodes.iter().cloned());
        }
        let repairs = self.report.operation == Operation::Reconcile;
        let drains =
            matches!(notification, Some(Notification::Drain { .. } | Notification::Condemn { .. }));
        let ends = repairs && !drains;
        for node in nodes {
            let report = match &result {
                // Somebody else holds it by now.
                Ok(taken) if drains && taken.verdict(&node) != Verdict::Taken => continue,
                Ok(taken) if repairs && taken.verdict(&node) != Verdict::Taken => {
                    let mut left = NodeReport::new(Outcome::Nothing);
                    left.reason = Some("it has changed in the meantime".to_owned());
                    left
                }
                Ok(_) => NodeReport::new(Outcome::Done),
                Err(error) => NodeReport::failed(Cause::Slurm, error.to_string()),
            };
            if ends {
                // Nothing more is done to it.
                self.locks.remove(&node);
            }
            self.report.note(node, report);
        }
    }

    /// Reports the addresses of nodes. A node without an address fails.
    async fn report_addresses(&mut self, nodes: Vec<NodeName>, outbox: &Outbox) {
        let why = self.find_addresses(&nodes).await.err();
        let (known, unknown): (Vec<NodeName>, Vec<NodeName>) =
            nodes.into_iter().partition(|node| self.addresses.contains_key(node));
        let address = |node: &NodeName| {
            let (address, id) = self.addresses.get(node)?;
            let mut address = NodeAddress::new(node.clone(), *address);
            address.instance_id = Some(id.as_str().to_owned());
            Some(address)
        };
        outbox.notify_addresses(known.iter().filter_map(address));
        let (cause, why) = why.unwrap_or((Cause::NotFound, "the cloud shows no address".into()));
        for node in unknown {
            self.report.note(node, NodeReport::failed(cause, why.as_str()));
        }
    }

    /// Finds the addresses of nodes that an earlier run brought up and did not report.
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
            .map_err(|error| (Cause::from(error.kind()), chain(&error)))?;
        for node in missing {
            if let [one] = fleet.standing(node).here[..]
                && let Some(address) = one.address
            {
                self.addresses.insert(node.clone(), (address, one.id.clone()));
            }
        }
        Ok(())
    }

    /// Notes whether slurmctld took up its configuration. Where it did not answer, it is asked what it runs with; a
    /// restart has waited for that.
    async fn reloaded(&mut self, how: Reload, error: Option<&slurmctl::Error>) {
        if let Some(error) = error {
            let open = how == Reload::Reconfigure && error.kind() == ErrorKind::Unavailable;
            if !(open && self.has_taken().await) {
                self.report.slurm_refused = true;
                let failure = format!("slurmctld did not take up its configuration: {error}");
                self.report.failures.push(failure);
                return;
            }
            self.report.warn(
                "slurmctld did not answer the reload of its configuration, but has applied it",
            );
        }
        self.report.slurm_reloaded = true;
    }

    /// True if slurmctld runs with the current slurm.conf, or comes to.
    async fn has_taken(&self) -> bool {
        let (before, gone) = (self.conf.config(), self.dropped.iter().cloned());
        let expected = match &self.written {
            Some(written) => Expected::new(written, gone).but_for_kept(before),
            None => Expected::new(before, gone),
        };
        expected.runs(self.tools.slurm, Patience::LONG).await
    }
}
