//! The state of a node: a base state and flags.

use std::{collections::BTreeSet, convert::Infallible, fmt, str::FromStr};

macro_rules! slurm_names {
    ($(#[$docs:meta])* $name:ident { $($(#[$variant_docs:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$docs])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_docs])* $variant,)+
            /// An unknown name, as Slurm wrote it.
            Other(String),
        }

        impl $name {
            /// Slurm's name for it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use slurm_names;

slurm_names! {
    /// The base state of a node, to which [`StateFlag`]s are added.
    BaseState {
        /// Not known yet, as after a start.
        Unknown = "UNKNOWN",
        /// Not to be used.
        Down = "DOWN",
        /// Without a job.
        Idle = "IDLE",
        /// All of it is used by jobs.
        Allocated = "ALLOCATED",
        /// Some of it is used by jobs.
        Mixed = "MIXED",
        /// In error.
        Error = "ERROR",
        /// Defined, but not there yet.
        Future = "FUTURE",
    }
}

slurm_names! {
    /// A flag of a node's state, in addition to its [`BaseState`].
    StateFlag {
        /// Comes from a cloud.
        Cloud = "CLOUD",
        /// A job is being cleaned up.
        Completing = "COMPLETING",
        /// Takes no new jobs.
        Drain = "DRAIN",
        /// Made at run time.
        DynamicNorm = "DYNAMIC_NORM",
        /// Expected to fail.
        Fail = "FAIL",
        /// Registered with fewer resources than configured.
        InvalidReg = "INVALID_REG",
        /// In a reservation for maintenance.
        Maintenance = "MAINTENANCE",
        /// slurmd does not answer.
        NotResponding = "NOT_RESPONDING",
        /// A job is planned for it.
        Planned = "PLANNED",
        /// To be powered down when it can be.
        PowerDown = "POWER_DOWN",
        /// Powered down.
        PoweredDown = "POWERED_DOWN",
        /// On its way down, until `SuspendTimeout` passes.
        PoweringDown = "POWERING_DOWN",
        /// To be powered up.
        PowerUp = "POWER_UP",
        /// On its way up, until it registers or `ResumeTimeout` passes.
        PoweringUp = "POWERING_UP",
        /// The reboot program was called.
        RebootIssued = "REBOOT_ISSUED",
        /// To be rebooted when it can be.
        RebootRequested = "REBOOT_REQUESTED",
        /// In a reservation.
        Reserved = "RESERVED",
    }
}

/// A node's state, as `scontrol show node` writes it: a base and flags, joined by `+`.
///
/// ```
/// use slurmctl::{BaseState, StateFlag, NodeState};
///
/// let state = NodeState::from("MIXED+CLOUD+NOT_RESPONDING+POWERING_UP");
/// assert_eq!(state.base, BaseState::Mixed);
/// assert!(state.is_powering_up() && state.is_cloud() && state.has_job());
/// assert!(!state.is_powered_down());
/// assert_eq!(state.to_string(), "MIXED+CLOUD+NOT_RESPONDING+POWERING_UP");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeState {
    /// The base state.
    pub base: BaseState,
    /// The flags.
    pub flags: BTreeSet<StateFlag>,
}

impl NodeState {
    /// A state of a base and flags.
    #[must_use]
    pub fn new(base: BaseState, flags: impl IntoIterator<Item = StateFlag>) -> Self {
        Self { base, flags: flags.into_iter().collect() }
    }

    /// True if the flag is set.
    #[must_use]
    pub fn has(&self, flag: &StateFlag) -> bool {
        self.flags.contains(flag)
    }

    /// True for an elastic node, one with `State=CLOUD`.
    #[must_use]
    pub fn is_cloud(&self) -> bool {
        self.has(&StateFlag::Cloud)
    }

    /// True if the base state is `DOWN`.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.base == BaseState::Down
    }

    /// True from the call of `ResumeProgram` until the node registers or `ResumeTimeout` has passed.
    #[must_use]
    pub fn is_powering_up(&self) -> bool {
        self.has(&StateFlag::PoweringUp)
    }

    /// True while the node is to be powered up and `ResumeProgram` has not been called.
    #[must_use]
    pub fn is_power_up_requested(&self) -> bool {
        self.has(&StateFlag::PowerUp)
    }

    /// True from the call of `SuspendProgram` until `SuspendTimeout` has passed.
    #[must_use]
    pub fn is_powering_down(&self) -> bool {
        self.has(&StateFlag::PoweringDown)
    }

    /// True while the node is to be powered down and `SuspendProgram` has not been called.
    #[must_use]
    pub fn is_power_down_requested(&self) -> bool {
        self.has(&StateFlag::PowerDown)
    }

    /// True once `SuspendTimeout` or `ResumeTimeout` has passed.
    #[must_use]
    pub fn is_powered_down(&self) -> bool {
        self.has(&StateFlag::PoweredDown)
    }

    /// True if the node takes no new jobs, drained or still draining.
    #[must_use]
    pub fn has_drain(&self) -> bool {
        self.has(&StateFlag::Drain)
    }

    /// True if the node takes no new jobs and has none left.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.has_drain() && !self.has_job()
    }

    /// True from `scontrol reboot` until the reboot program is called.
    #[must_use]
    pub fn is_reboot_requested(&self) -> bool {
        self.has(&StateFlag::RebootRequested)
    }

    /// True from the call of the reboot program until the node registers again.
    #[must_use]
    pub fn is_reboot_issued(&self) -> bool {
        self.has(&StateFlag::RebootIssued)
    }

    /// True if the node is in a maintenance reservation.
    #[must_use]
    pub fn is_in_maintenance(&self) -> bool {
        self.has(&StateFlag::Maintenance)
    }

    /// True if a job runs on the node, or is still being cleaned up.
    #[must_use]
    pub fn has_job(&self) -> bool {
        let used = match self.base {
            BaseState::Allocated | BaseState::Mixed => true,
            BaseState::Unknown
            | BaseState::Down
            | BaseState::Idle
            | BaseState::Error
            | BaseState::Future
            | BaseState::Other(_) => false,
        };
        used || self.has(&StateFlag::Completing)
    }

    /// True if the node is up and runs a job or could run one now.
    #[must_use]
    pub fn is_up(&self) -> bool {
        let usable = matches!(self.base, BaseState::Idle | BaseState::Allocated | BaseState::Mixed);
        let hindrances = [
            StateFlag::PoweringUp,
            StateFlag::PowerUp,
            StateFlag::PoweredDown,
            StateFlag::PoweringDown,
            StateFlag::NotResponding,
            StateFlag::RebootIssued,
        ];
        usable && !hindrances.iter().any(|flag| self.has(flag))
    }
}

impl From<&str> for NodeState {
    /// Reads any text. Unknown names are kept.
    fn from(text: &str) -> Self {
        let mut parts = text.split('+');
        let base = BaseState::from(parts.next().unwrap_or_default());
        Self { base, flags: parts.filter(|part| !part.is_empty()).map(StateFlag::from).collect() }
    }
}

impl FromStr for NodeState {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self::from(text))
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.base.as_str())?;
        self.flags.iter().try_for_each(|flag| write!(f, "+{flag}"))
    }
}
