//! The outcome of a run, and of each node.

use crate::cause::Cause;
use crate::plan::{Finding, Operation, Refusal, Why};
use cloud_core::Error;
use history::cost::BudgetState;
use hostlist::{Hostlist, NodeName};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

words! {
    /// The outcome for a node.
    #[non_exhaustive]
    pub enum Outcome {
        /// It runs, and Slurm knows where.
        Up = "up",
        /// It runs, but Slurm did not accept its address.
        Unreported = "unreported",
        /// The termination of its instances was accepted, or they are gone.
        Down = "down",
        /// The request was carried out.
        Done = "done",
        /// Nothing needed to be done.
        Nothing = "nothing",
        /// It could not start, and was returned to Slurm.
        ReturnedToSlurm = "returned_to_slurm",
        /// Another node of its job could not start, and this one was returned to Slurm.
        Released = "released",
        /// The request is refused for this node.
        Refused = "refused",
        /// Another process works on it.
        Busy = "busy",
        /// Another process stops it; it was left to that process.
        Yielded = "yielded",
        /// The request was not carried out.
        Failed = "failed",
    }
}

impl Outcome {
    /// True if all is well.
    #[must_use]
    pub fn is_success(self) -> bool {
        match self {
            Self::Up | Self::Down | Self::Done | Self::Nothing | Self::Yielded => true,
            Self::Unreported
            | Self::ReturnedToSlurm
            | Self::Released
            | Self::Refused
            | Self::Busy
            | Self::Failed => false,
        }
    }

    /// True if what was asked for has been done, and was not so before.
    pub(crate) fn has_changed(self) -> bool {
        match self {
            Self::Up | Self::Down | Self::Done => true,
            Self::Unreported
            | Self::Nothing
            | Self::ReturnedToSlurm
            | Self::Released
            | Self::Refused
            | Self::Busy
            | Self::Yielded
            | Self::Failed => false,
        }
    }
}

/// The outcome of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeReport {
    /// The outcome.
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
    #[serde(rename = "launched_after_ms", serialize_with = "as_millis")]
    pub launched_after: Option<Duration>,
    /// How long all of it took.
    #[serde(rename = "took_ms", serialize_with = "as_millis")]
    pub took: Duration,
}

/// Writes a time, if there is one, in milliseconds.
fn as_millis<S: Serializer>(
    time: &(impl Copy + Into<Option<Duration>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    (*time).into().map(millis).serialize(serializer)
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

    /// A failure, with its cause and reason.
    pub(crate) fn failed(cause: Cause, reason: impl Into<String>) -> Self {
        Self::new(Outcome::Failed).because(cause, reason)
    }

    /// A failure because the cloud refused a request.
    pub(crate) fn failed_by(error: &Error) -> Self {
        let failed = Self::failed(Cause::from(error.kind()), error.to_string());
        Self { request_id: error.request_id().map(str::to_owned), ..failed }
    }

    /// A failure because the run was cancelled.
    pub(crate) fn cancelled() -> Self {
        Self::failed(Cause::Cancelled, Cause::Cancelled.words())
    }

    /// A node that is not touched.
    pub(crate) fn refused(why: &Refusal) -> Self {
        Self::new(Outcome::Refused).because(Cause::Refused, why.to_string())
    }

    /// A node for which there is nothing to do.
    pub(crate) fn nothing(why: &Why) -> Self {
        Self { reason: Some(why.to_string()), ..Self::new(Outcome::Nothing) }
    }

    /// Why the node did not get what it should, with what the cloud's support asks for.
    fn why(&self) -> String {
        let reason = self.reason.as_deref().unwrap_or("no reason is known");
        let id = self.request_id.as_ref().map(|id| format!(" (request {id})")).unwrap_or_default();
        format!("{}: {reason}{id}", self.outcome)
    }
}

/// Most nodes with one and the same failure that are listed one by one.
const MOST_LINES: usize = 64;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What was asked for.
    pub operation: Operation,
    /// The outcome of each node.
    pub nodes: BTreeMap<NodeName, NodeReport>,
    /// What was found, for a reconcile.
    pub findings: Vec<Finding>,
    /// Warnings that concern no node alone.
    pub warnings: Vec<String>,
    /// Failures that concern no node alone.
    pub failures: Vec<String>,
    /// True if slurmctld was asked to reload its configuration, and did.
    pub slurm_reloaded: bool,
    /// True if slurmctld was asked to reload its configuration, and did not.
    pub slurm_refused: bool,
    /// How the budget stood when it began, if there is one.
    pub budget: Option<BudgetState>,
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
            slurm_reloaded: false,
            slurm_refused: false,
            budget: None,
            took: Duration::ZERO,
        }
    }

    /// True if all is well with every node.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failures.is_empty() && self.nodes.values().all(|node| node.outcome.is_success())
    }

    /// What slurmctld did not do, by its words, with the nodes of each.
    #[must_use]
    pub fn slurm_failures(&self) -> Vec<String> {
        let mut alike: BTreeMap<&str, Hostlist> = BTreeMap::new();
        for (node, failed) in &self.nodes {
            if failed.cause == Some(Cause::Slurm) {
                let why = failed.reason.as_deref().unwrap_or_default();
                alike.entry(why).or_default().push(node.as_str());
            }
        }
        alike.into_iter().map(|(why, nodes)| format!("{nodes}: {why}")).collect()
    }

    /// Every node that failed, and why; very many with the same failure are one host list.
    #[must_use]
    pub fn failed_nodes(&self) -> Vec<(String, String)> {
        let failed = self.nodes.iter().filter(|(_, ended)| !ended.outcome.is_success());
        let failed: Vec<_> = failed.map(|(node, ended)| (node, ended.why())).collect();
        let mut alike: BTreeMap<&str, Hostlist> = BTreeMap::new();
        for (node, why) in &failed {
            alike.entry(why).or_default().extend([*node]);
        }
        alike.retain(|_, nodes| nodes.len() > MOST_LINES);
        let folded =
            alike.iter().map(|(why, nodes)| (nodes.sorted().to_string(), (*why).to_owned()));
        let single = failed.iter().filter(|(_, why)| !alike.contains_key(why.as_str()));
        let single = single.map(|(node, why)| (node.to_string(), why.clone()));
        single.chain(folded).collect()
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

    /// Records the outcome of a node. A later success does not replace a failure.
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

/// A line for each outcome, then the failures, findings and warnings.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} nodes in {:.1?}", self.operation, self.nodes.len(), self.took)?;
        let mut alike: BTreeMap<Outcome, Hostlist> = BTreeMap::new();
        for (node, ended) in self.nodes.iter().filter(|(_, ended)| ended.outcome.is_success()) {
            alike.entry(ended.outcome).or_default().push(node.as_str());
        }
        for (outcome, nodes) in alike {
            writeln!(f, "  {nodes}: {outcome}")?;
        }
        for (nodes, why) in self.failed_nodes() {
            writeln!(f, "  {nodes}: {why}")?;
        }
        for finding in &self.findings {
            writeln!(f, "  found: {finding}")?;
        }
        for failure in &self.failures {
            writeln!(f, "  failed: {failure}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "  warning: {warning}")?;
        }
        Ok(())
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Report", 6)?;
        fields.serialize_field("operation", &self.operation)?;
        fields.serialize_field("nodes", &self.nodes)?;
        fields.serialize_field("findings", &self.findings)?;
        fields.serialize_field("warnings", &self.warnings)?;
        fields.serialize_field("failures", &self.failures)?;
        fields.serialize_field("exit_code", &self.exit_code())?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_thousand_nodes_with_one_failure_are_one_line() {
        let names = |list: &str| list.parse::<Hostlist>().unwrap().node_names().unwrap();
        let mut report = Report::new(Operation::Start);
        let refused = |why: &str| NodeReport::new(Outcome::Refused).because(Cause::Refused, why);
        report.nodes.extend(names("n[1-60000]").into_iter().map(|it| (it, refused("strange"))));
        report.nodes.extend(names("m[1-2]").into_iter().map(|it| (it, refused("no shape"))));
        report.nodes.extend(names("x1").into_iter().map(|it| (it, NodeReport::new(Outcome::Done))));
        let lines: Vec<String> =
            report.failed_nodes().into_iter().map(|(node, why)| format!("{node}: {why}")).collect();
        let expected =
            ["m1: refused: no shape", "m2: refused: no shape", "n[1-60000]: refused: strange"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_reason_why_slurmctld_reboots_nothing_is_reported() {
        let mut report = Report::new(Operation::Rollout);
        for (name, cause) in [("n1", Cause::Slurm), ("n2", Cause::Slurm), ("n3", Cause::Refused)] {
            let failed = NodeReport::new(Outcome::Failed).because(cause, "no answer");
            report.nodes.insert(NodeName::new(name).unwrap(), failed);
        }
        assert_eq!(report.slurm_failures(), ["n[1-2]: no answer"]);
    }

    #[test]
    fn a_report_prints_nodes_that_ended_alike_in_one_line() {
        let mut report = Report::new(Operation::Start);
        for name in ["n1", "n2", "n3"] {
            report.nodes.insert(NodeName::new(name).unwrap(), NodeReport::new(Outcome::Up));
        }
        let refused = NodeReport::new(Outcome::ReturnedToSlurm).because(Cause::Capacity, "no room");
        report.nodes.insert(NodeName::new("n4").unwrap(), refused);
        report.warn("slurmctld was slow");
        let expected = "start: 4 nodes in 0.0ns\n  n[1-3]: up\n  n4: returned_to_slurm: no room\n  \
            warning: slurmctld was slow\n";
        assert_eq!(report.to_string(), expected);
    }
}
