//! The states that OCI's things go through.

use serde::{Deserialize, Serialize};

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "OCI's own words")]
pub enum State {
    Provisioning,
    Starting,
    Running,
    Stopping,
    Stopped,
    CreatingImage,
    Terminating,
    Terminated,
}

impl State {
    /// The word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Provisioning => "PROVISIONING",
            Self::Starting => "STARTING",
            Self::Running => "RUNNING",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::CreatingImage => "CREATING_IMAGE",
            Self::Terminating => "TERMINATING",
            Self::Terminated => "TERMINATED",
        }
    }

    /// The state of a word on the wire.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }

    /// True until it is told to end.
    #[must_use]
    pub fn is_live(self) -> bool {
        match self {
            Self::Provisioning
            | Self::Starting
            | Self::Running
            | Self::Stopping
            | Self::Stopped
            | Self::CreatingImage => true,
            Self::Terminating | Self::Terminated => false,
        }
    }

    /// True while it takes room and counts against limits: to the very end.
    #[must_use]
    pub(crate) fn holds_room(self) -> bool {
        self != Self::Terminated
    }

    /// True while its machine is switched on.
    #[must_use]
    pub(crate) fn is_on(self) -> bool {
        matches!(self, Self::Running | Self::CreatingImage)
    }
}

/// Where a VNIC attachment is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Attachment {
    /// Nothing of it can be seen yet.
    Hidden,
    Attaching,
    Attached,
    Detached,
}
