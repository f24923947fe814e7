//! What a node can do for a job that waits.

use super::facts::Facts;
use super::reported::Reported;
use super::words::Words;
use crate::cause::Cause;
use crate::cooldown::Cooldown;
use crate::plan::{all_cooling, held, is_drained_by_us, is_misfit};
use crate::site::Pool;
use hostlist::NodeName;
use slurmctl::{Node, StateFlag};
use std::time::SystemTime;

/// What a node can do for a job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Up and free.
    Ready,
    /// A job has it.
    Busy,
    /// Powered down: it starts when a job needs it. Its last start may have failed.
    Off(Option<Failed>),
    /// On its way up.
    Starting,
    /// On its way down.
    Stopping,
    /// Being rebuilt or rebooted.
    Rebuilding,
    /// Drained by us for a while, as for a resize.
    Draining(String),
    /// Every place where it could go cools down.
    Cooling(Pool, Cooldown),
    /// It failed by itself, and rests; what the cloud said, if that is known.
    Resting(Cooldown, String),
    /// Drained by us until it can be had.
    Unable(Reported),
    /// Drained or set down by somebody else.
    Held(Holder),
    /// It did not register before `ResumeTimeout`.
    TimedOut,
    /// slurmd does not answer.
    Silent,
    /// It registered with less than slurm.conf says.
    Misfit,
    /// Down for another reason.
    Down(String),
    /// More than one machine has its name.
    Duplicates(Vec<String>),
    /// slurm.conf does not say what it is.
    NoShape,
}

/// A start that failed, as the node's reason tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) why: Reported,
    pub(super) at: Option<SystemTime>,
}

/// Who holds a node, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) reason: String,
    pub(super) by: Option<String>,
    pub(super) at: Option<SystemTime>,
    pub(super) maintenance: bool,
}

impl Condition {
    /// What a node can do that Slurm shows.
    pub(super) fn of(node: &Node, facts: &Facts<'_>) -> Self {
        let state = &node.state;
        if let Some(reason) = held(node) {
            let given = node.reason.as_ref();
            let by = given.and_then(|given| given.by.clone());
            let (at, maintenance) = (given.and_then(|given| given.at), state.is_in_maintenance());
            return Self::Held(Holder { reason, by, at, maintenance });
        }
        if is_drained_by_us(node) {
            return drained(node);
        }
        if is_misfit(node) || state.has(&StateFlag::InvalidReg) {
            return Self::Misfit;
        }
        if state.is_reboot_issued() || state.is_reboot_requested() {
            return Self::Rebuilding;
        }
        if state.is_down() {
            return down(node);
        }
        if state.is_powering_up() || state.is_power_up_requested() {
            return Self::Starting;
        }
        if state.has_job() {
            return if state.has(&StateFlag::NotResponding) { Self::Silent } else { Self::Busy };
        }
        if state.is_powering_down() || state.is_power_down_requested() {
            // On its way down after a start that failed, its reason says more.
            return match Reported::read(node.reason_text()) {
                Some(_) => off(node, facts),
                None => Self::Stopping,
            };
        }
        if state.is_powered_down() {
            return off(node, facts);
        }
        if state.is_up() { Self::Ready } else { Self::Silent }
    }

    /// True if a job may get the node now or when it is free, without anybody's help.
    pub(super) fn is_in_service(&self) -> bool {
        match self {
            Self::Ready
            | Self::Busy
            | Self::Off(_)
            | Self::Starting
            | Self::Stopping
            | Self::Rebuilding => true,
            Self::Draining(_)
            | Self::Cooling(..)
            | Self::Resting(..)
            | Self::Unable(_)
            | Self::Held(_)
            | Self::TimedOut
            | Self::Silent
            | Self::Misfit
            | Self::Down(_)
            | Self::Duplicates(_)
            | Self::NoShape => false,
        }
    }

    /// The condition of nodes in a few words, as in "2 busy with other jobs".
    pub(super) fn label(&self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Busy => "busy with other jobs",
            Self::Off(_) => "off until a job needs them",
            Self::Starting => "starting",
            Self::Stopping => "stopping",
            Self::Rebuilding => "being rebuilt",
            Self::Draining(_) => "drained for a change of the cluster",
            Self::Cooling(..) => "cooling down",
            Self::Resting(..) => "resting after a failure",
            Self::Unable(_) => "drained until the cloud has room",
            Self::Held(holder) if holder.maintenance => "in maintenance",
            Self::Held(_) => "held by an administrator",
            Self::TimedOut => "down because they did not register",
            Self::Silent => "not responding",
            Self::Misfit => "smaller than slurm.conf says",
            Self::Down(_) => "down",
            Self::Duplicates(_) => "refused because they have several machines",
            Self::NoShape => "without a shape in slurm.conf",
        }
    }

    /// Why the condition keeps a job waiting, and what to do; none for a node in service that has not failed.
    pub(super) fn words(&self, node: &NodeName) -> Option<Words> {
        let words = match self {
            Self::Ready
            | Self::Busy
            | Self::Off(None)
            | Self::Starting
            | Self::Stopping
            | Self::Rebuilding => return None,
            Self::Off(Some(failed)) => Words::of(&failed.why),
            Self::Draining(purpose) => Words::new(
                "drained",
                format!("{node} is drained for {purpose}"),
                "Wait until `rebuild`, `resize` or `reconcile` has ended.",
            ),
            Self::Cooling(pool, cooldown) => Words::of_pool(cooldown.cause, &pool.to_string()),
            Self::Resting(cooldown, said) => {
                let (cause, pool) = (Some(cooldown.cause), Some(node.to_string()));
                let words = Words::of(&Reported { cause, pool, said: said.clone() });
                Words { clause: format!("{node} rests after a failure: {}", words.clause), ..words }
            }
            Self::Unable(why) => Words::of(why),
            Self::Held(holder) => holder.words(node),
            Self::TimedOut
            | Self::Silent
            | Self::Misfit
            | Self::Down(_)
            | Self::Duplicates(_)
            | Self::NoShape => return self.trouble(node),
        };
        Some(words)
    }

    /// What is wrong with the node itself.
    fn trouble(&self, node: &NodeName) -> Option<Words> {
        let words = match self {
            Self::TimedOut => Words::of_pool(Cause::NeverRegistered, node.as_str()),
            Self::Silent => Words::new(
                "not_responding",
                format!("slurmd on {node} does not answer"),
                format!(
                    "Check slurmd and the network on {node}; `reconcile` replaces a node whose machine is gone."
                ),
            ),
            Self::Misfit => Words::new(
                "misfit",
                format!("{node} registered with fewer CPUs, memory or GPUs than slurm.conf says"),
                "Correct limits.yaml or the image, then run `finish`.",
            ),
            Self::Down(reason) => Words::new(
                "down",
                format!("{node} is down ({reason})"),
                format!(
                    "Run `reconcile`, or `scontrol update nodename={node} state=resume` once the cause is gone."
                ),
            ),
            Self::Duplicates(ids) => Words::new(
                "duplicates",
                format!("{} machines have the name {node}", ids.len()),
                "Run `reconcile`, and terminate the machines that nobody needs.",
            ),
            Self::NoShape => Words::new(
                "shape",
                format!("slurm.conf does not say which shape {node} has"),
                "Run `finish`, or add the feature shape= to the node in slurm.conf.",
            ),
            _ => return None,
        };
        Some(words)
    }
}

impl Holder {
    fn words(&self, node: &NodeName) -> Words {
        let by = self.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = &self.reason;
        if self.maintenance {
            return Words::new(
                "maintenance",
                format!("{node} is reserved for maintenance ({reason})"),
                "See `scontrol show reservation`: jobs run when the maintenance is over.",
            );
        }
        Words::new(
            "held_node",
            format!("{node} is out of service{by} ({reason})"),
            format!("Run `scontrol update nodename={node} state=resume` when the reason is gone."),
        )
    }
}

/// A node that we drained.
fn drained(node: &Node) -> Condition {
    let reason = node.reason_text();
    let why = Reported::read(reason).unwrap_or_default();
    match why.said.strip_prefix("drained for ") {
        Some(purpose) if why.cause.is_none() => Condition::Draining(purpose.to_owned()),
        _ => Condition::Unable(why),
    }
}

/// A node that is down, and not by an administrator.
fn down(node: &Node) -> Condition {
    let reason = node.reason_text();
    if reason.contains("ResumeTimeout reached") {
        return Condition::TimedOut;
    }
    if reason.starts_with("Not responding") || reason.is_empty() {
        return Condition::Silent;
    }
    Reported::read(reason).map_or_else(|| Condition::Down(reason.to_owned()), Condition::Unable)
}

/// A node that is powered down: what would become of it if a job needed it.
fn off(node: &Node, facts: &Facts<'_>) -> Condition {
    let why = Reported::read(node.reason_text());
    let machines = facts.fleet.as_ref().map(|fleet| fleet.standing(&node.name).here);
    if let Ok([first, second, more @ ..]) = machines.as_deref() {
        let ids = [first, second].into_iter().chain(more).map(|one| one.id.to_string());
        return Condition::Duplicates(ids.collect());
    }
    if let Ok(cooldowns) = &facts.cooldowns {
        let places = facts.conf.get(&node.name).map(|def| facts.site.places(def));
        let places = match places {
            Some(None) if facts.configuration.is_none() => return Condition::NoShape,
            Some(places) => places.unwrap_or_default(),
            None => Vec::new(),
        };
        if let Some((pool, cooldown)) = all_cooling(&places, cooldowns, facts.now) {
            return Condition::Cooling(pool, cooldown);
        }
        let rest = cooldowns.resting(&node.name).filter(|rest| rest.lasts(facts.now));
        if let Some(rest) = rest {
            let why = why.filter(|why| why.cause == Some(rest.cause));
            return Condition::Resting(rest.clone(), why.map(|why| why.said).unwrap_or_default());
        }
    }
    let at = node.reason.as_ref().and_then(|reason| reason.at);
    Condition::Off(why.map(|why| Failed { why, at }))
}
