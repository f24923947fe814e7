//! The log of events: one JSON object per line, each appended with one write.

use crate::life::RecordedPlace;
use hostlist::NodeName;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A run began.
    Begun,
    /// An instance was launched.
    Launched,
    /// An existing instance was adopted.
    Adopted,
    /// The node waits for a terminating instance.
    Waiting,
    /// A launch or its instance failed.
    LaunchFailed,
    /// Slurm got the node's address.
    Up,
    /// The node's slurmd registered with slurmctld.
    Registered,
    /// Jobs started on the node.
    Busy,
    /// The last job on the node ended.
    Idle,
    /// An instance was terminated.
    Terminated,
    /// An instance was stopped, and is kept for its node.
    Stopped,
    /// A stopped instance was started.
    Started,
    /// The node was returned to Slurm.
    ReturnedToSlurm,
    /// The node was returned to service.
    Returned,
    /// The instance was rebuilt or rebooted.
    Rebuilt,
    /// A pool started to cool down.
    Cooling,
    /// Jobs want nodes, and whose they are.
    Owner,
    /// A run ended.
    Ended,
    /// An event of a newer version.
    #[serde(other)]
    Unknown,
}

impl EventKind {
    /// The name in the log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Launched => "launched",
            Self::Adopted => "adopted",
            Self::Waiting => "waiting",
            Self::LaunchFailed => "launch_failed",
            Self::Up => "up",
            Self::Registered => "registered",
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Terminated => "terminated",
            Self::Stopped => "stopped",
            Self::Started => "started",
            Self::ReturnedToSlurm => "returned_to_slurm",
            Self::Returned => "returned",
            Self::Rebuilt => "rebuilt",
            Self::Cooling => "cooling",
            Self::Owner => "owner",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }
}

/// One line of the log.
///
/// ```
/// use history::{Event, EventKind};
///
/// let event: Event = serde_json::from_str(r#"{"at":5,"run":"r1","event":"sang","song":"la"}"#)?;
/// assert_eq!(event.event, EventKind::Unknown);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The id of the run.
    #[serde(default)]
    pub run: String,
    /// What happened.
    pub event: EventKind,
    /// The node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The reason or other details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The cause, as a stable code such as `capacity` or `quota`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The shape of the machine, with the size of a flexible shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<String>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// True if the machine is preemptible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub preemptible: bool,
    /// The Slurm jobs that the machine is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<u32>,
    /// The user whose jobs they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The account that they are charged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The actual time, if the event is noticed later: an instance runs before Slurm gets its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// Milliseconds since 1970.
#[must_use]
pub fn millis(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl Event {
    /// Creates an event of a run.
    #[must_use]
    pub fn new(at: SystemTime, run: &str, event: EventKind) -> Self {
        Self {
            at: millis(at),
            run: run.to_owned(),
            event,
            node: None,
            instance: None,
            detail: None,
            cause: None,
            shape: None,
            zone: None,
            preemptible: false,
            jobs: Vec::new(),
            user: None,
            account: None,
            since: None,
        }
    }

    /// Sets the node.
    #[must_use]
    pub fn of(mut self, node: &NodeName) -> Self {
        self.node = Some(node.as_str().to_owned());
        self
    }

    /// Sets the instance.
    #[must_use]
    pub fn with(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// Sets the reason or other details.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Sets the cause, as a stable code.
    #[must_use]
    pub fn caused_by(mut self, cause: &str) -> Self {
        self.cause = Some(cause.to_owned());
        self
    }

    /// Sets the shape and zone.
    #[must_use]
    pub fn in_place(mut self, place: RecordedPlace) -> Self {
        let RecordedPlace { shape, zone, preemptible } = place;
        (self.shape, self.zone, self.preemptible) = (shape, zone, preemptible);
        self
    }

    /// The shape and zone, as far as they are in the line.
    #[must_use]
    pub fn place(&self) -> RecordedPlace {
        let (shape, zone) = (self.shape.clone(), self.zone.clone());
        RecordedPlace { shape, zone, preemptible: self.preemptible }
    }

    /// Sets the jobs.
    #[must_use]
    pub fn for_jobs(mut self, jobs: impl IntoIterator<Item = u32>) -> Self {
        self.jobs = jobs.into_iter().collect();
        self
    }

    /// Whose jobs they are.
    #[must_use]
    pub fn owned_by(mut self, user: &str, account: Option<&str>) -> Self {
        self.user = Some(user.to_owned());
        self.account = account.map(str::to_owned);
        self
    }

    /// Sets the actual time of an event that is noticed later.
    #[must_use]
    pub fn since(mut self, since: SystemTime) -> Self {
        self.since = Some(millis(since));
        self
    }

    /// Formats the line, including the newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}
