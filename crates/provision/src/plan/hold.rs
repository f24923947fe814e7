//! Which nodes an administrator holds, and which we, or Slurm itself, took out of service.

use slurmctl::{Node, Reason};

/// What our own reasons begin with, so that we know them again.
const OUR_PREFIX: &str = "elastic: ";

/// What the reasons of our drains begin with; other reasons of ours may come to stand in the place
/// of somebody else's drain.
const DRAINED: &str = "elastic: drained for ";

/// The reason of a drain.
pub(super) fn drain_reason(purpose: &str) -> Reason {
    Reason::new(&format!("{DRAINED}{purpose}"))
}

/// A reason that we know again as ours.
///
/// ```
/// assert_eq!(provision::plan::our_reason("resize").as_str(), "elastic: resize");
/// ```
#[must_use]
pub fn our_reason(text: &str) -> Reason {
    Reason::new(&format!("{OUR_PREFIX}{text}"))
}

/// What our own reasons, and those that Slurm gives by itself, begin with.
const OURS: [&str; 6] = [
    OUR_PREFIX,
    "rebuild image:",
    "ResumeTimeout reached",
    "Not responding",
    "reboot timed out",
    "Node unexpectedly rebooted",
];

/// The reason for which somebody else drained the node or set it down.
///
/// A node that is down without any reason is nobody's.
#[must_use]
pub fn held(node: &Node) -> Option<String> {
    let state = &node.state;
    let reason = node.reason_text();
    if state.is_in_maintenance() {
        return Some(if reason.is_empty() { "maintenance".to_owned() } else { reason.to_owned() });
    }
    let out = state.has_drain() || state.is_down();
    let ours = OURS.iter().any(|beginning| reason.starts_with(beginning));
    if !out || ours || (reason.is_empty() && !state.has_drain()) {
        return None;
    }
    Some(if reason.is_empty() { "drained".to_owned() } else { reason.to_owned() })
}

/// True if we drained the node.
pub(super) fn ours(node: &Node) -> bool {
    node.state.has_drain() && node.reason_text().starts_with(DRAINED)
}

/// The reason of ours that stands in the place of somebody else's drain.
pub(super) fn covered(node: &Node) -> Option<&str> {
    let reason = node.reason_text();
    let told = reason.starts_with(OUR_PREFIX) && !reason.starts_with(DRAINED);
    (node.state.has_drain() && told).then_some(reason)
}

/// A reason of ours for a node, with the one for which somebody else drained it behind it.
pub(super) fn reason_over(text: &str, node: Option<&Node>) -> Reason {
    let theirs = node.filter(|node| node.state.has_drain()).and_then(held);
    match theirs {
        Some(theirs) => our_reason(&format!("{text}; drained before: {theirs}")),
        None => our_reason(text),
    }
}

/// True if the node did not come back from a rebuild that we asked for.
///
/// The beginning of the reason alone says nothing: 24.11 keeps it after a rebuild that went well.
pub(super) fn not_back(node: &Node) -> bool {
    let reason = node.reason_text();
    node.state.is_down()
        && reason.starts_with("rebuild image:")
        && reason.contains("reboot timed out")
}
