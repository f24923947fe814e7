//! What became of each node, and of the whole.

use crate::cause::Cause;
use crate::plan::{Finding, Operation};
use hostlist::NodeName;
use serde::ser::{Serialize, SerializeStruct as _, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// How it ended for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It runs, and Slurm knows where.
    Up,
    /// It runs, but Slurm could not be told where.
    Untold,
    /// Its instances have been told to go, or are gone.
    Down,
    /// What was asked for has been done.
    Done,
    /// Nothing needed to be done.
    Nothing,
    /// It could not be had, and Slurm has it back.
    GivenBack,
    /// Another node of its job could not be had, and Slurm has it back.
    Released,
    /// We refused to touch it.
    Refused,
    /// Another process works on it.
    Busy,
    /// It was to be stopped while we started it, and was left to whoever stops it.
    Yielded,
    /// What was asked for has not been done.
    Failed,
}

impl Outcome {
    /// True if all is well.
    #[must_use]
    pub fn is_success(self) -> bool {
        match self {
            Self::Up | Self::Down | Self::Done | Self::Nothing | Self::Yielded => true,
            Self::Untold
            | Self::GivenBack
            | Self::Released
            | Self::Refused
            | Self::Busy
            | Self::Failed => false,
        }
    }

    /// One word that does not change.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Untold => "untold",
            Self::Down => "down",
            Self::Done => "done",
            Self::Nothing => "nothing",
            Self::GivenBack => "given_back",
            Self::Released => "released",
            Self::Refused => "refused",
            Self::Busy => "busy",
            Self::Yielded => "yielded",
            Self::Failed => "failed",
        }
    }
}

/// What became of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeReport {
    /// How it ended.
    pub outcome: Outcome,
    /// Why, as a code.
    pub cause: Option<Cause>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The id by which the cloud's operators find the request.
    pub request_id: Option<String>,
    /// Its instance.
    pub instance: Option<String>,
    /// How often a launch was asked for.
    pub launches: u32,
    /// When the first launch was asked for, counted from the beginning.
    pub launched_after: Option<Duration>,
    /// How long all of it took.
    pub took: Duration,
}

impl NodeReport {
    /// An outcome about which nothing else is known.
    #[must_use]
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            cause: None,
            reason: None,
            request_id: None,
            instance: None,
            launches: 0,
            launched_after: None,
            took: Duration::ZERO,
        }
    }

    /// Sets the cause and the reason.
    #[must_use]
    pub fn because(mut self, cause: Cause, reason: impl Into<String>) -> Self {
        self.cause = Some(cause);
        self.reason = Some(reason.into());
        self
    }
}

/// What became of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What was asked for.
    pub operation: Operation,
    /// What became of each node.
    pub nodes: BTreeMap<NodeName, NodeReport>,
    /// What was found, for a reconcile.
    pub findings: Vec<Finding>,
    /// What went wrong and concerns no node alone.
    pub warnings: Vec<String>,
    /// What had to be done and was not, besides nodes.
    pub failures: Vec<String>,
    /// True if slurmctld was told of its configuration and took it up.
    pub slurm_told: bool,
    /// True if slurmctld was told of its configuration and did not take it up.
    pub slurm_refused: bool,
    /// How long it took.
    pub took: Duration,
}

impl Report {
    /// A report of nothing yet.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        Self {
            operation,
            nodes: BTreeMap::new(),
            findings: Vec::new(),
            warnings: Vec::new(),
            failures: Vec::new(),
            slurm_told: false,
            slurm_refused: false,
            took: Duration::ZERO,
        }
    }

    /// True if all is well with every node.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failures.is_empty() && self.nodes.values().all(|node| node.outcome.is_success())
    }

    /// 0 if all is well, 1 if not.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.is_success())
    }

    /// The nodes with an outcome.
    pub fn with(&self, outcome: Outcome) -> impl Iterator<Item = &NodeName> {
        self.nodes.iter().filter(move |(_, node)| node.outcome == outcome).map(|(name, _)| name)
    }

    /// Adds a warning, once.
    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// Notes what became of a node; a failure is not forgotten over a later success.
    pub(crate) fn note(&mut self, node: NodeName, report: NodeReport) {
        let known = self.nodes.get(&node);
        if known.is_none_or(|known| known.outcome.is_success() || !report.outcome.is_success()) {
            self.nodes.insert(node, report);
        }
    }

    /// True if something went wrong with the node.
    pub(crate) fn has_failed(&self, node: &NodeName) -> bool {
        self.nodes.get(node).is_some_and(|report| !report.outcome.is_success())
    }
}

impl Serialize for NodeReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut fields = serializer.serialize_struct("NodeReport", 8)?;
        fields.serialize_field("outcome", self.outcome.as_str())?;
        fields.serialize_field("cause", &self.cause.map(Cause::code))?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("request_id", &self.request_id)?;
        fields.serialize_field("instance", &self.instance)?;
        fields.serialize_field("launches", &self.launches)?;
        fields.serialize_field("launched_after_ms", &self.launched_after.map(millis))?;
        fields.serialize_field("took_ms", &millis(self.took))?;
        fields.end()
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nodes: BTreeMap<&str, &NodeReport> =
            self.nodes.iter().map(|(name, node)| (name.as_str(), node)).collect();
        let mut fields = serializer.serialize_struct("Report", 6)?;
        fields.serialize_field("operation", self.operation.as_str())?;
        fields.serialize_field("nodes", &nodes)?;
        fields.serialize_field("findings", &self.findings)?;
        fields.serialize_field("warnings", &self.warnings)?;
        fields.serialize_field("failures", &self.failures)?;
        fields.serialize_field("exit_code", &self.exit_code())?;
        fields.end()
    }
}
