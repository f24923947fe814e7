//! A node as the controller sees it.

use crate::state::NodeState;
use hostlist::NodeName;
use std::time::SystemTime;

/// A node as the controller sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its name.
    pub name: NodeName,
    /// Its state.
    pub state: NodeState,
    /// Where slurmctld reaches it; the node's name until somebody says otherwise.
    pub address: String,
    /// What the machine calls itself; the node's name until somebody says otherwise.
    pub hostname: String,
    /// Why it is as it is, if somebody gave a reason.
    pub reason: Option<NodeReason>,
    /// Features that it has now.
    pub features: Vec<String>,
    /// Partitions it is in.
    pub partitions: Vec<String>,
    /// When it came up, once it has registered.
    pub boot_time: Option<SystemTime>,
    /// When it last had something to do.
    pub last_busy: Option<SystemTime>,
    /// When Slurm returns it to service by itself.
    pub resume_after: Option<SystemTime>,
    /// The administrator's comment.
    pub comment: Option<String>,
    /// Free text.
    pub extra: Option<String>,
    /// The cloud's id of its instance, since 23.11.
    pub instance_id: Option<String>,
    /// The cloud's shape of its instance, since 23.11.
    pub instance_type: Option<String>,
    /// The reservation that it is in; 22.05 does not tell.
    pub reservation: Option<String>,
}

impl Node {
    /// A node about which only name and state are known.
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
            last_busy: None,
            resume_after: None,
            comment: None,
            extra: None,
            instance_id: None,
            instance_type: None,
            reservation: None,
        }
    }

    /// The text of its reason, empty without one.
    #[must_use]
    pub fn reason_text(&self) -> &str {
        self.reason.as_ref().map_or("", |reason| &reason.text)
    }
}

/// Why a node is as it is, and who said so when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeReason {
    /// The reason itself.
    pub text: String,
    /// The user who gave it.
    pub by: Option<String>,
    /// When it was given.
    pub at: Option<SystemTime>,
}

impl NodeReason {
    /// A reason of which nobody knows who gave it.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), by: None, at: None }
    }
}
