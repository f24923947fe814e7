//! Brings one node up: remove what is in the way, launch, wait until the instance runs, and report its
//! address to Slurm. A node that cannot come up is returned to Slurm.

use super::message::Verdict;
use super::node::{History, NodeWork};
use super::shared::Leave;
use crate::cause::Cause;
use crate::failure::Failure;
use crate::plan::{Clear, Notification, place_at_start};
use crate::report::Outcome;
use crate::site::Wanted;
use crate::state::EventKind;
use cloud_core::{Instance, InstanceId};
use slurmctl::NodeAddress;
use std::net::IpAddr;
use std::rc::Rc;

/// The starting point of a node that is to come up.
#[derive(Debug)]
pub(super) enum From {
    /// A launch, after the instances in the way are gone.
    Launch(Wanted, Vec<Clear>),
    /// A running or starting instance, with its address if known.
    Instance(InstanceId, Option<IpAddr>),
    /// A stopped instance, and what to launch in its place if it does not start.
    Stopped(InstanceId, Option<Box<Wanted>>),
    /// Nothing: the plan already knows that the node cannot come up.
    Nothing(Failure),
}

impl History {
    /// True if the instance may be terminated, given what Slurm says about its node.
    fn may_terminate(self, verdict: Verdict) -> bool {
        match (verdict, self) {
            (Verdict::Taken, _) | (_, Self::Failed) => true,
            (Verdict::InUse, Self::Unknown | Self::Launched | Self::Ran) => false,
            (Verdict::Idle, history) => history != Self::Unknown,
            (Verdict::Unanswered, history) => history == Self::Launched,
        }
    }
}

impl NodeWork<'_> {
    /// Brings the node up, unless it is yielded to another process or released with its job.
    pub(super) async fn bring_up(&mut self, from: From, reports: bool) -> Outcome {
        let signals = Rc::clone(&self.signals);
        let leave = tokio::select! {
            biased;
            leave = signals.left() => leave,
            outcome = self.come_up_or_return(from, reports) => return outcome,
        };
        self.shared.end_probes(&self.name);
        match leave {
            Leave::Yield => self.yield_node().await,
            Leave::Release { later } => self.release(later).await,
        }
    }

    async fn come_up_or_return(&mut self, from: From, reports: bool) -> Outcome {
        let signals = Rc::clone(&self.signals);
        match &from {
            From::Instance(id, _) => self.take(id),
            From::Stopped(id, _) => self.adopt(id),
            From::Launch(..) | From::Nothing(_) => {}
        }
        let come_up = async {
            match from {
                // An instance that is up already is reported even after the deadline.
                From::Instance(_, Some(address)) => {
                    self.address = Some(address);
                    Ok(())
                }
                // The plan knew the reason: a deadline that passes now does not change it.
                From::Nothing(failure) => Err(failure),
                from => tokio::select! {
                    biased;
                    stop = signals.stopped() => Err(self.stopped_by(stop)),
                    come = self.come_up(from) => come,
                },
            }
        };
        match come_up.await {
            Ok(()) if reports => self.report_address().await,
            Ok(()) => Outcome::Up,
            Err(failure) => self.return_to_slurm(failure, reports).await,
        }
    }

    async fn come_up(&mut self, from: From) -> Result<(), Failure> {
        match from {
            From::Launch(wanted, in_the_way) => self.launch_and_watch(&wanted, in_the_way).await,
            From::Instance(id, _) => self.until_up(&id, None, None).await,
            From::Stopped(id, otherwise) => self.start_or_launch(id, otherwise).await,
            From::Nothing(failure) => Err(failure),
        }
    }

    /// Adopts an existing instance, and logs it.
    fn take(&mut self, id: &InstanceId) {
        self.note(EventKind::Adopted, id);
        self.adopt(id);
    }

    /// Reports the node's address to Slurm.
    async fn report_address(&mut self) -> Outcome {
        let Some(address) = self.address else {
            return Outcome::Up;
        };
        let mut notification = NodeAddress::new(self.name.clone(), address);
        notification.instance_id = self.instance.as_ref().map(|id| id.as_str().to_owned());
        notification.comment = self.comment();
        if self.shared.outbox.report_address(notification).await {
            self.note_up(address);
            self.report_place();
            return Outcome::Up;
        }
        let unreported = || Failure::new(Cause::Slurm, "slurmctld did not accept the address");
        self.failure.get_or_insert_with(unreported);
        Outcome::Unreported
    }

    /// Notes where the machine is in Slurm's topology, if there is one that nodes are moved in.
    pub(super) fn note_place(&mut self, instance: &Instance) {
        let tools = self.shared.tools;
        let kept = tools.files.topology.is_some();
        self.switch = kept.then(|| place_at_start(instance, tools.slurm.version())).flatten();
    }

    /// Moves the node to its place. Nobody waits for that: reconcile moves it if this fails.
    fn report_place(&mut self) {
        if let Some(place) = self.switch.take() {
            self.shared.outbox.notify(Notification::SetTopology(place), [self.name.clone()]);
        }
    }

    /// Logs that Slurm knows the address of the node.
    fn note_up(&self, address: IpAddr) {
        let event = self.event(EventKind::Up).because(address.to_string());
        self.shared.tools.note(&match self.running {
            Some(running) => event.since(running),
            None => event,
        });
    }

    /// Where the machine is and what it costs, for the node's comment; none if another run has launched it.
    fn comment(&self) -> Option<String> {
        let place = Some(self.place.to_string()).filter(|_| !self.place.is_unknown())?;
        let kind = if self.place.preemptible { " preemptible" } else { "" };
        let shape = format!("{}{kind}", self.place.shape.as_deref().unwrap_or_default());
        let prices = self.shared.site.prices.as_ref();
        let hour = prices.and_then(|prices| Some((prices.hour(&shape)?, &prices.currency)));
        Some(match hour {
            Some((price, currency)) => format!("{place}, {price} {currency} an hour"),
            None => place,
        })
    }

    /// Returns the node to Slurm, and terminates its instance unless jobs may run on it.
    async fn return_to_slurm(&mut self, failure: Failure, reports: bool) -> Outcome {
        self.shared.end_probes(&self.name);
        let verdict = if reports {
            let verdict = self.shared.outbox.return_to_slurm(&self.name, &failure);
            self.shared.comment_jobs(&self.name, &failure.text);
            self.failure = Some(failure);
            tokio::join!(verdict, self.finish_request()).0
        } else {
            // Slurm does not wait for the node and does not know its address.
            self.failure = Some(failure);
            self.finish_request().await;
            if self.history == History::Ran { Verdict::Idle } else { Verdict::Unanswered }
        };
        if self.history.may_terminate(verdict) {
            self.terminate_own().await;
        }
        if verdict == Verdict::Taken { Outcome::ReturnedToSlurm } else { Outcome::Failed }
    }

    /// Leaves the node, and what was launched for it, to another process. Notifications that are not
    /// sent yet are dropped.
    async fn yield_node(&mut self) -> Outcome {
        self.failure = Some(Failure::new(Cause::Cancelled, "stopped while it was started"));
        self.finish_request().await;
        Outcome::Yielded
    }

    /// Ends the work on a node that Slurm has taken back because its job cannot get all of its nodes.
    async fn release(&mut self, later: bool) -> Outcome {
        let words = Cause::JobIncomplete.words();
        self.failure = Some(Failure::new(Cause::JobIncomplete, words));
        self.finish_request().await;
        if !later {
            self.terminate_own().await;
        }
        Outcome::Released
    }

    /// Terminates the node's instance, if any. If that fails, reconcile does it later.
    async fn terminate_own(&mut self) {
        if let Some(id) = self.instance.clone() {
            let _ = self.terminate(&id, true).await;
        }
    }
}
