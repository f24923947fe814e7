//! The log of events: one JSON object a line, appended with one write.

use hostlist::NodeName;
use serde::Serialize;
use std::time::SystemTime;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run has begun.
    Begun,
    /// An instance was launched.
    Launched,
    /// An instance that was there already is used.
    Adopted,
    /// An instance that is on its way out is waited for.
    Waiting,
    /// A launch was refused, or its instance failed.
    LaunchFailed,
    /// Slurm knows the node's address.
    Up,
    /// An instance was told to go.
    Terminated,
    /// The node was returned to Slurm.
    ReturnedToSlurm,
    /// The node was returned to service.
    Returned,
    /// A new image was written, or the instance rebooted.
    Rebuilt,
    /// A pool cools down.
    Cooling,
    /// A run has ended.
    Ended,
}

/// One line of the log.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Which run.
    pub run: String,
    /// What happened.
    pub event: EventKind,
    /// To which node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// With which instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Why, or how it went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

impl Event {
    /// Something that happened in a run.
    #[must_use]
    pub fn new(at: SystemTime, run: &str, event: EventKind) -> Self {
        let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { at, run: run.to_owned(), event, node: None, instance: None, detail: None }
    }

    /// To which node.
    #[must_use]
    pub fn of(mut self, node: &NodeName) -> Self {
        self.node = Some(node.as_str().to_owned());
        self
    }

    /// With which instance.
    #[must_use]
    pub(crate) fn with(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Why, or how it went.
    #[must_use]
    pub(crate) fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The line, with its end.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
