//! A node as the controller sees it.

use crate::state::NodeState;
use hostlist::NodeName;
use std::time::SystemTime;

/// A node as the controller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The name.
    pub name: NodeName,
    /// The state.
    pub state: NodeState,
    /// Where slurmctld reaches it; the node's name unless set.
    pub address: String,
    /// The host name of the machine; the node's name unless set.
    pub hostname: String,
    /// The reason of its state.
    pub reason: Option<NodeReason>,
    /// Active features.
    pub features: Vec<String>,
    /// Partitions.
    pub partitions: Vec<String>,
    /// When it booted, once it has registered.
    pub boot_time: Option<SystemTime>,
    /// When its slurmd started, if it has registered.
    pub slurmd_start: Option<SystemTime>,
    /// When a job last ended on it, or it came up.
    pub last_busy: Option<SystemTime>,
    /// The id of its instance, since 23.11.
    pub instance_id: Option<String>,
    /// The comment.
    pub comment: Option<String>,
    /// Its place in topologies, if it was put there at run time, since 25.05.
    pub topology: Option<String>,
    /// The free text `extra`.
    pub extra: Option<String>,
    /// Its reservation, since 23.02.
    pub reservation: Option<String>,
}

impl Node {
    /// A node of which only name and state are known.
    #[must_use]
    pub fn new(name: NodeName, state: NodeState) -> Self {
        Self {
            address: name.to_string(),
            hostname: name.to_string(),
            name,
            state,
            reason: None,
            features: Vec::new(),
            partitions: Vec::new(),
            boot_time: None,
            slurmd_start: None,
            last_busy: None,
            instance_id: None,
            comment: None,
            topology: None,
            extra: None,
            reservation: None,
        }
    }

    /// The text of the reason, or an empty string.
    #[must_use]
    pub fn reason_text(&self) -> &str {
        self.reason.as_ref().map_or("", |reason| &reason.text)
    }
}

/// The reason of a node's state, and who set it when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReason {
    /// The text.
    pub text: String,
    /// The user who set it.
    pub by: Option<String>,
    /// When it was set.
    pub at: Option<SystemTime>,
}

impl NodeReason {
    /// A reason without user and time.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), by: None, at: None }
    }
}
