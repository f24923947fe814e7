//! The steps that are not the engine's: Slurm, files, and what is remembered.

use super::LAST_ANSWERS;
use super::expected::{Expected, Patience};
use super::gathered::Gathered;
use super::stage::Executor;
use crate::cause::Cause;
use crate::plan::{Operation, Return, Step, TellSlurm};
use crate::report::{NodeReport, Outcome};
use crate::state::{EventKind, cooldowns};
use crate::world::Roster;
use cloud_core::{Error as CloudError, ErrorKind, InstanceId};
use futures_util::stream::{self, StreamExt as _};
use hostlist::{Hostlist, NodeName};
use slurmctl::{JobId, NodeAction, NodeAddress};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout_at};

/// How often a termination that did not succeed is repeated.
const MOST_TRIES: u32 = 4;

impl Executor<'_> {
    /// Carries out steps one after the other; those that say the same to Slurm go together.
    pub(super) async fn steps(&mut self, steps: Vec<Step>) {
        let mut gathered = Gathered::default();
        let (mut machines, mut rests) = (Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Rest { node, cause, until } => rests.push((node, cause, until)),
                step @ (Step::Rebuild { .. } | Step::Reboot { .. }) => machines.push(step),
                step => {
                    if let Some(step) = self.gather(step, &mut gathered) {
                        self.step(step).await;
                    }
                }
            }
        }
        self.rest(&rests);
        self.machines(machines).await;
        self.say(gathered).await;
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Drain { nodes, reason } => {
                let nodes = self.still_to_drain(nodes).await;
                if nodes.is_empty() {
                    return;
                }
                let (slurm, all) = (self.tools.slurm, list(&nodes));
                let result = slurm.set_state(&all, NodeAction::Drain, Some(&reason)).await;
                self.said(&nodes, &result);
            }
            Step::WaitDrained { nodes, reason, deadline } => {
                self.wait_drained(nodes, &reason, deadline).await;
            }
            Step::RebootBySlurm { nodes, reason } => {
                let result = self.tools.slurm.reboot(&list(&nodes), &reason).await;
                self.said(&nodes, &result);
            }
            Step::Submit { job } => {
                let result = self.tools.slurm.submit(&job).await.map(|_| ());
                self.said(std::slice::from_ref(&job.node), &result);
            }
            Step::TellAddresses { nodes } => self.tell_addresses(nodes).await,
            Step::Comment { job, text } => self.comment(job, &text).await,
            Step::TellSlurm(how) => self.tell_slurm(how).await,
            Step::WriteFile { which, before, text, drops, .. } => {
                self.write(which, &before, &text, drops);
            }
            Step::Refresh { which } => self.refresh(which).await,
            Step::TerminateNameless { ids } => self.terminate_nameless(ids).await,
            Step::Refuse { node, why } => {
                let report = NodeReport::new(Outcome::Refused);
                self.report.note(node, report.because(Cause::Refused, why.to_string()));
            }
            Step::Nothing { node, why } => {
                let mut report = NodeReport::new(Outcome::Nothing);
                report.reason = Some(why.to_string());
                self.report.note(node, report);
            }
            Step::GiveBack { node, cause, reason, how: Return::Leave } => {
                let report = NodeReport::new(Outcome::Failed);
                self.report.note(node, report.because(cause, reason.as_str()));
            }
            // The engine's, or gathered before.
            Step::Launch { .. }
            | Step::Adopt { .. }
            | Step::StartStopped { .. }
            | Step::Terminate { .. }
            | Step::WaitGone { .. }
            | Step::Recreate { .. }
            | Step::Rebuild { .. }
            | Step::Reboot { .. }
            | Step::Rest { .. }
            | Step::GiveBack { how: Return::PowerDown, .. }
            | Step::SetAddress { .. }
            | Step::Undrain { .. }
            | Step::ReturnToService { .. } => {}
        }
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
                self.said(&nodes, &Err(error));
                Vec::new()
            }
        }
    }

    /// Notes how a call to Slurm went for its nodes.
    pub(super) fn said(&mut self, nodes: &[NodeName], result: &slurmctl::Result<()>) {
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

    async fn comment(&mut self, job: JobId, text: &str) {
        if let Err(error) = self.tools.slurm.comment(job, text).await {
            self.report.warn(format!("job {job} could not be told: {error}"));
        }
    }

    /// Tells Slurm where nodes are; one that is nowhere to be found has failed.
    async fn tell_addresses(&mut self, nodes: Vec<NodeName>) {
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
            self.said(&known, &result);
        }
        let (cause, why) = why.unwrap_or((Cause::NotFound, "the cloud shows no address".into()));
        for node in unknown {
            let report = NodeReport::new(Outcome::Failed);
            self.report.note(node, report.because(cause, why.as_str()));
        }
    }

    /// Looks for the nodes that this plan did not bring up: a run before it did, and did not come to tell.
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

    /// Lets nodes rest: the file is written once for all of them, as it waits for a disk.
    fn rest(&mut self, rests: &[(NodeName, Cause, SystemTime)]) {
        if rests.is_empty() {
            return;
        }
        let now = self.tools.now();
        let rest = |all: &mut crate::Cooldowns| {
            for (node, cause, until) in rests {
                let pause = until.duration_since(now).unwrap_or_default();
                all.rest(node.clone(), *cause, now, pause);
            }
        };
        rest(&mut self.cooldowns);
        if !cooldowns::change(self.tools.state, rest) {
            self.report.warn("the cool-downs could not be stored");
        }
    }

    async fn tell_slurm(&mut self, how: TellSlurm) {
        let result = match how {
            TellSlurm::Reconfigure => self.tools.slurm.reconfigure().await,
            TellSlurm::Restart => self.tools.slurm.restart().await,
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

    /// Instances of ours that are no node's.
    async fn terminate_nameless(&mut self, ids: Vec<InstanceId>) {
        let (tools, concurrency) = (self.tools, self.site.policies.concurrency.max(1));
        let deadline = self.deadline;
        let ended: Vec<(InstanceId, Result<(), CloudError>)> = stream::iter(ids)
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

/// True if slurmctld may have done it, or may yet; a restart has waited for that.
fn is_open(how: TellSlurm, error: &slurmctl::Error) -> bool {
    error.kind() == slurmctl::ErrorKind::Unavailable && how == TellSlurm::Reconfigure
}

/// Begins to remove one instance, again if need be: to do it twice is to do it once.
async fn terminate(
    cloud: &dyn cloud_core::Provider,
    id: &InstanceId,
    deadline: Instant,
) -> Result<(), CloudError> {
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

pub(super) fn list(nodes: &[NodeName]) -> Hostlist {
    nodes.iter().collect()
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
