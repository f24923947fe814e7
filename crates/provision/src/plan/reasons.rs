//! Which nodes an administrator holds, and which we, or Slurm itself, took out of service.

use crate::cause::Cause;
use slurmctl::{Node, Reason, StateFlag};

/// The prefix of our own reasons, by which later runs recognize them.
pub(crate) const OUR_PREFIX: &str = "elastic: ";

/// The prefix of the reasons of our drains. Our other reasons may replace that of somebody else's drain.
const DRAINED: &str = "elastic: drained for ";

/// The reason of a drain.
pub(super) fn drain_reason(purpose: &str) -> Reason {
    Reason::new(&format!("{DRAINED}{purpose}"))
}

/// The prefix of [`full_reason`].
const FULL: &str = "elastic: drained for lack of room: ";

/// The reason of a drain that lasts until the cloud has room again.
pub(super) fn full_reason(why: &str) -> Reason {
    Reason::new(&format!("{FULL}{why}"))
}

/// The prefix of [`unable_reason`].
const UNABLE: &str = "elastic: drained for want of a machine: ";

/// The reason of a drain that lasts until the node may be tried again.
pub(super) fn unable_reason(why: &str) -> Reason {
    Reason::new(&format!("{UNABLE}{why}"))
}

/// The prefix of [`replacement_reason`].
const REPLACE: &str = "elastic: drained for replacement: ";

/// The reason of a drain that lasts until the machine is replaced.
pub(crate) fn replacement_reason(why: &str) -> Reason {
    Reason::new(&format!("{REPLACE}{why}"))
}

/// What follows [`REPLACE`] on a machine that the cloud takes away.
pub(crate) const PREEMPTED: &str = "preemption notice";

/// Why the machine of a node that is drained for it is replaced.
pub(super) fn replacement_cause(node: &Node) -> Cause {
    let why = node.reason_text().strip_prefix(REPLACE).unwrap_or_default();
    if why.starts_with(PREEMPTED) { Cause::Preempted } else { Cause::Unhealthy }
}

/// True if the node is drained until its machine is replaced, by reconcile or by the machine itself.
pub(crate) fn is_for_replacement(node: &Node) -> bool {
    is_drained_by_us(node) && node.reason_text().starts_with(REPLACE)
}

/// Why a health check has taken the node out of service, if one has: `scontrol update state=FAIL`, or a drain whose
/// reason begins as that of a health check. Any other drain is a human's.
pub(super) fn failed_check<'n>(node: &'n Node, beginnings: &[String]) -> Option<&'n str> {
    let reason = node.reason_text();
    let is_check =
        |beginning: &String| !beginning.is_empty() && reason.starts_with(beginning.as_str());
    let fails = node.state.has(&StateFlag::Fail);
    let drained = node.state.has_drain() && beginnings.iter().any(is_check);
    (fails || drained).then_some(reason)
}

/// True if we drained the node because it could not be had.
pub(super) fn is_full(node: &Node) -> bool {
    is_drained_by_us(node)
        && [FULL, UNABLE].iter().any(|words| node.reason_text().starts_with(words))
}

/// A reason with the prefix by which later runs recognize it.
///
/// ```
/// assert_eq!(provision::plan::our_reason("resize").as_str(), "elastic: resize");
/// ```
#[must_use]
pub fn our_reason(text: &str) -> Reason {
    Reason::new(&format!("{OUR_PREFIX}{text}"))
}

/// The text of a reason without [`OUR_PREFIX`], which it gets again on its way to Slurm.
pub(crate) fn without_our_prefix(reason: &Reason) -> String {
    let text = reason.as_str();
    text.strip_prefix(OUR_PREFIX.trim_end()).unwrap_or(text).trim_start().to_owned()
}

/// What our own reasons begin with, and those that Slurm gives by itself.
const OWN_OR_SLURMS: [&str; 6] = [
    OUR_PREFIX,
    REBUILD[0],
    REBUILD[1],
    "ResumeTimeout reached",
    "Not responding",
    "Node unexpectedly rebooted",
];

/// How the reason of a rebuild begins: with an image or, once Slurm has added to it, without one.
/// The bare word may be anybody's.
const REBUILD: [&str; 2] = ["rebuild image:", "rebuild : reboot "];

/// Why a node that does not answer is returned to Slurm: it has not come up, or it has stopped answering.
pub(super) fn silent_cause(node: &Node) -> Cause {
    let never = node.reason_text().contains("ResumeTimeout reached");
    if never { Cause::NeverRegistered } else { Cause::Timeout }
}

/// What Slurm adds to a reason when a node does not come back, whoever had it rebooted.
const NOT_BACK: &str = ": reboot timed out";

/// What we add to a reason when a rebuild has failed: Slurm waits on, but nothing will come.
const NOT_REBUILT: &str = ": not rebuilt: ";

/// The reason of a node whose rebuild has failed; what it was to get stays in it.
pub(super) fn not_rebuilt(node: &Node, why: &str) -> Reason {
    Reason::new(&format!("{} {NOT_REBUILT}{why}", node.reason_text()))
}

/// The reason for which somebody else drained the node or set it down.
///
/// A node that is down without any reason is nobody's.
pub(crate) fn held(node: &Node) -> Option<String> {
    let state = &node.state;
    let reason = node.reason_text();
    if state.is_in_maintenance() {
        return Some(if reason.is_empty() { "maintenance".to_owned() } else { reason.to_owned() });
    }
    let out = state.has_drain() || state.is_down();
    let known = OWN_OR_SLURMS.iter().any(|beginning| reason.starts_with(beginning))
        || (state.is_down() && !state.has_drain() && reason.ends_with(NOT_BACK));
    if !out || known || (reason.is_empty() && !state.has_drain()) {
        return None;
    }
    Some(if reason.is_empty() { "drained".to_owned() } else { reason.to_owned() })
}

/// True if we drained the node.
pub(crate) fn is_drained_by_us(node: &Node) -> bool {
    node.state.has_drain() && node.reason_text().starts_with(DRAINED)
}

/// Our reason that has replaced the one of somebody else's drain.
pub(super) fn covered(node: &Node) -> Option<&str> {
    let reason = node.reason_text();
    let covers = reason.starts_with(OUR_PREFIX) && !reason.starts_with(DRAINED);
    (node.state.has_drain() && covers).then_some(reason)
}

/// Our reason for a node, followed by the reason for which somebody else drained it.
pub(super) fn reason_over(text: &str, node: Option<&Node>) -> Reason {
    let theirs = node.filter(|node| node.state.has_drain()).and_then(held);
    match theirs {
        Some(theirs) => our_reason(&format!("{text}; drained before: {theirs}")),
        None => our_reason(text),
    }
}

/// What to say of a node that [`is_misfit`].
pub(super) const MISFIT: &str = "registered with less than slurm.conf says";

/// True if the node came back from a reboot with less than slurm.conf says, as by an image without the driver of its
/// graphics cards: Slurm does not take it, and never calls the reboot timed out, as it has heard from it.
pub(crate) fn is_misfit(node: &Node) -> bool {
    node.state.is_reboot_issued() && node.state.has(&StateFlag::InvalidReg)
}

/// True if the node did not come back from a rebuild that we asked for.
///
/// The beginning of the reason alone says nothing: 24.11 keeps it after a rebuild that went well.
pub(super) fn not_back(node: &Node) -> bool {
    let reason = node.reason_text();
    node.state.is_down()
        && REBUILD.iter().any(|beginning| reason.starts_with(beginning))
        && (is_misfit(node) || [NOT_BACK, NOT_REBUILT].iter().any(|words| reason.contains(words)))
}
