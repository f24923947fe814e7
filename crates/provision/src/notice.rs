//! Notices to administrators about a run.

use crate::budget::standing;
use crate::cause::Cause;
use crate::plan::{FindingKind, Handling, Operation};
use crate::report::Report;
use crate::state::{State, StateFile};
use hostlist::Hostlist;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

words! {
    /// What a notice is about.
    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Topic {
        /// The cloud had no machine, or allows no more.
        Capacity = "capacity",
        /// A machine ran that nobody needed.
        Leak = "leak",
        /// What may be spent is spent, or nearly so.
        Budget = "budget",
        /// A change was taken back, or a rollout stopped.
        Rollback = "rollback",
    }
}

impl Topic {
    /// How long the same notice is not repeated, in milliseconds.
    fn pause(self) -> u64 {
        match self {
            Self::Capacity | Self::Leak | Self::Rollback => 3_600_000,
            Self::Budget => 6 * 3_600_000,
        }
    }
}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about.
    pub topic: Topic,
    /// What makes it the same as an earlier one.
    subject: String,
    /// The text.
    pub text: String,
}

impl Notice {
    fn new(topic: Topic, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self { topic, subject: subject.into(), text: text.into() }
    }

    fn key(&self) -> String {
        format!("{} {}", self.topic, self.subject)
    }
}

/// Most of one text that is sent.
const LONGEST: usize = 500;

/// The notices about a run.
fn notices(report: &Report, currency: &str) -> Vec<Notice> {
    let mut notices = Vec::new();
    for (cause, topic) in [
        (Cause::Capacity, Topic::Capacity),
        (Cause::Quota, Topic::Capacity),
        (Cause::Budget, Topic::Budget),
    ] {
        for (why, nodes) in failed(report, cause) {
            notices.push(Notice::new(topic, cause.as_str(), format!("{nodes} not started: {why}")));
        }
    }
    if let Some(state) = report.budget.filter(|state| state.warns) {
        let text = standing(&state, currency);
        notices.push(Notice::new(Topic::Budget, format!("warn {}", state.period), text));
    }
    for finding in &report.findings {
        let repaired = finding.kind == FindingKind::Orphan && finding.handling != Handling::Watched;
        if repaired {
            notices.push(Notice::new(Topic::Leak, finding.to_string(), finding.to_string()));
        }
    }
    let changes =
        matches!(report.operation, Operation::Finish | Operation::Resize | Operation::Rollout);
    if changes && !report.failures.is_empty() {
        let text = format!("{}: {}", report.operation, report.failures.join("; "));
        notices.push(Notice::new(Topic::Rollback, report.operation.to_string(), text));
    }
    notices
}

/// The nodes that did not start for a cause, by the reason.
fn failed(report: &Report, cause: Cause) -> BTreeMap<&str, Hostlist> {
    let mut alike: BTreeMap<&str, Hostlist> = BTreeMap::new();
    for (name, node) in report.nodes.iter().filter(|(_, node)| node.cause == Some(cause)) {
        if !node.outcome.is_success() {
            alike
                .entry(node.reason.as_deref().unwrap_or_default())
                .or_default()
                .push(name.as_str());
        }
    }
    alike
}

/// The notices that administrators have, with their times in milliseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct SentNotices(BTreeMap<String, u64>);

impl SentNotices {
    /// Reads the file. One that cannot be read has no notices.
    fn parse(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Keeps the notices that were not sent yet or were sent long ago, and records them.
    fn take_new(&mut self, notices: &mut Vec<Notice>, now: u64) {
        let longest = Topic::ALL.map(Topic::pause).into_iter().max().unwrap_or_default();
        // A time in the future was written by a clock that was ahead.
        self.0.retain(|_, at| *at <= now && now - *at < longest);
        notices.retain(|notice| {
            let last = self.0.get(&notice.key());
            let is_new = last.is_none_or(|at| now - at >= notice.topic.pause());
            if is_new {
                self.0.insert(notice.key(), now);
            }
            is_new
        });
    }

    fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The notices about a run that administrators do not have yet, and remembers that they have them now. Without a state
/// that can be written there are none, because each would be sent again and again.
#[must_use]
pub fn new_notices(state: &dyn State, report: &Report, currency: &str, now: u64) -> Vec<Notice> {
    let mut new = notices(report, currency);
    let changed = state.change(StateFile::Notices, &mut |before| {
        let mut sent = SentNotices::parse(before);
        sent.take_new(&mut new, now);
        sent.to_text()
    });
    if matches!(changed, Ok(true)) { new } else { Vec::new() }
}

/// The text of one message about all of these; none if there are none.
#[must_use]
pub fn message(cluster: &str, notices: &[&Notice]) -> Option<String> {
    let line = |notice: &&Notice| {
        let text: String = notice.text.chars().take(LONGEST).collect();
        format!("{cluster}: {}: {text}", notice.topic)
    };
    let lines: Vec<String> = notices.iter().take(20).map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{NodeReport, Outcome};
    use crate::state::MemoryState;
    use hostlist::NodeName;

    fn report() -> Report {
        let mut report = Report::new(Operation::Start);
        for (name, cause, why) in [
            ("n1", Cause::Capacity, "out of capacity"),
            ("n2", Cause::Capacity, "out of capacity"),
            ("n3", Cause::Budget, "budget: 20.00 of 20.00 USD spent this day"),
            ("n4", Cause::Timeout, "took too long"),
        ] {
            let failed = NodeReport::new(Outcome::ReturnedToSlurm).because(cause, why);
            report.nodes.insert(NodeName::new(name).unwrap(), failed);
        }
        report
    }

    #[test]
    fn nodes_that_failed_alike_are_one_notice() {
        let notices = notices(&report(), "USD");
        let all: Vec<&Notice> = notices.iter().collect();
        let expected = "c1: capacity: n[1-2] not started: out of capacity\n\
                        c1: budget: n3 not started: budget: 20.00 of 20.00 USD spent this day";
        assert_eq!(message("c1", &all).as_deref(), Some(expected));
        assert_eq!(message("c1", &[]), None);
    }

    #[test]
    fn the_same_is_not_told_again_for_a_while() {
        let hour = 3_600_000;
        let state = MemoryState::new();
        let count = |now| new_notices(&state, &report(), "USD", now).len();
        assert_eq!(
            [0, 1, hour, hour + 1, 6 * hour, 13 * hour].map(|at| count(at + hour)),
            [2, 0, 1, 0, 2, 2]
        );
        assert_eq!(count(hour), 2, "a clock that was set back keeps nothing quiet");
        assert_eq!(SentNotices::parse(Some("nonsense")), SentNotices::default());
    }
}
