//! States of instances.

use std::fmt;

/// The state of an instance, common to all clouds.
///
/// | state | OCI `lifecycleState` | Nova `status` |
/// |---|---|---|
/// | [`Pending`](Self::Pending) | `PROVISIONING`, `STARTING`, `MOVING`, `CREATING_IMAGE` | `BUILD`, `REBUILD`, `REBOOT`, `HARD_REBOOT`, `RESIZE`, `REVERT_RESIZE`, or `ACTIVE` with a `task_state` that is neither null nor `deleting` |
/// | [`Running`](Self::Running) | `RUNNING` | `ACTIVE`, `VERIFY_RESIZE`, `MIGRATING`, `PASSWORD` |
/// | [`Stopping`](Self::Stopping) | `STOPPING` | `ACTIVE` with `task_state` `powering-off` |
/// | [`Stopped`](Self::Stopped) | `STOPPED` | `SHUTOFF` |
/// | [`Terminating`](Self::Terminating) | `TERMINATING` | any with `task_state` `deleting` or `soft-deleting` |
/// | [`Terminated`](Self::Terminated) | `TERMINATED` | `DELETED`, `SOFT_DELETED` |
/// | [`Failed`](Self::Failed) | none: the work request fails and the instance is `TERMINATED` | `ERROR` |
/// | [`Other`](Self::Other) | any other word | `RESCUE`, `UNKNOWN`, any other word; `SUSPENDED`, `PAUSED`, `SHELVED` and `SHELVED_OFFLOADED` too, which `os-start` refuses |
///
/// ```
/// use cloud_core::InstanceState;
///
/// assert!(InstanceState::Terminating.is_live());
/// assert!(!InstanceState::Terminated.is_live());
/// assert_eq!(InstanceState::Other("RESCUE".into()).to_string(), "RESCUE");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceState {
    /// In transition to running.
    Pending,
    /// Running, as far as the cloud can tell.
    Running,
    /// In transition to stopped.
    Stopping,
    /// Stopped; it can be started.
    Stopped,
    /// In transition to terminated.
    Terminating,
    /// Terminated; some clouds still list it for a while.
    Terminated,
    /// Failed; it can only be terminated.
    Failed,
    /// An unknown state, as the cloud wrote it.
    Other(String),
}

impl InstanceState {
    /// True while it uses a name, an address or quota.
    #[must_use]
    pub fn is_live(&self) -> bool {
        match self {
            Self::Terminated => false,
            Self::Pending
            | Self::Running
            | Self::Stopping
            | Self::Stopped
            | Self::Terminating
            | Self::Failed
            | Self::Other(_) => true,
        }
    }

    /// True if it is terminated or terminating.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        match self {
            Self::Terminating | Self::Terminated => true,
            Self::Pending
            | Self::Running
            | Self::Stopping
            | Self::Stopped
            | Self::Failed
            | Self::Other(_) => false,
        }
    }

    /// True if it will not run any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_leaving() || *self == Self::Failed
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::Terminating => "terminating",
            Self::Terminated => "terminated",
            Self::Failed => "failed",
            Self::Other(word) => word,
        })
    }
}
