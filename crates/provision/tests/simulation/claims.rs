//! What programs say that they have done, held against what has happened.

use crate::simulation::judge::{Judge, Who};
use cloud_core::InstanceState;
use cloud_core::memory::MachineTimeline;
use hostlist::NodeName;
use provision::plan::{Finding, FindingKind, Handling, Why};
use provision::state::{Event, EventKind};
use provision::{NodeReport, Outcome, Report};
use slurmctl::NodeAction;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer is under way.
const ANSWER: Duration = Duration::from_secs(1);

/// A process that has ended, with what it could know.
struct Claims<'a> {
    judge: &'a Judge,
    who: Who,
    begun: Instant,
    machines: Vec<MachineTimeline>,
}

impl Judge {
    /// A process that began then has ended with this report. It claims nothing that was not so while it ran.
    pub(crate) fn reports(&self, (who, begun): (Who, Instant), report: &Report) {
        self.tells(|| format!("{who:?} {report}"));
        let machines = self.cloud.timelines();
        let claims = Claims { judge: self, who, begun, machines };
        for (node, said) in &report.nodes {
            if let Some(why) = claims.is_untrue(node, said) {
                let outcome = said.outcome.as_str();
                self.says(&format!("pretended: {who:?} says that {node} is {outcome}: {why}"));
            }
        }
        for finding in report.findings.iter().filter(|it| it.handling == Handling::Repaired) {
            if claims.is_unrepaired(finding) {
                self.says(&format!("pretended: {who:?} has not repaired: {finding}"));
            }
        }
    }

    /// A line of the log of events.
    pub(crate) fn notes(&self, event: &Event) {
        self.tells(|| event.to_line().trim_end().to_owned());
        let named = event.instance.as_deref().unwrap_or_default();
        let is_so = match event.event {
            EventKind::Terminated => {
                let all = self.cloud.instances();
                all.iter().all(|it| it.id.as_str() != named || it.state.is_leaving())
            }
            EventKind::Up => {
                let node = event.node.as_deref().unwrap_or_default();
                self.seen().addressed.keys().any(|it| it.as_str() == node)
            }
            _ => true,
        };
        if !is_so {
            self.says(&format!("pretended: {}", event.to_line().trim_end()));
        }
    }

    /// slurmctld has taken the addresses of these nodes.
    pub(crate) fn addressed(&self, nodes: impl Iterator<Item = NodeName>) {
        let now = Instant::now();
        self.seen().addressed.extend(nodes.map(|node| (node, now)));
    }

    /// The cloud has not shown all that there is: whoever asked cannot know.
    pub(crate) fn misled(&self) {
        let seen = &mut *self.seen();
        seen.misled.push(seen.who);
    }
}

impl Claims<'_> {
    fn is_untrue(&self, node: &NodeName, said: &NodeReport) -> Option<String> {
        let gone = |why: Why| said.reason.as_deref() == Some(why.to_string().as_str());
        match said.outcome {
            Outcome::Up => self.is_not_up(node, said.instance.as_deref()),
            Outcome::Down => self.is_left(node),
            Outcome::Nothing if gone(Why::NoInstance) || gone(Why::Leaving) => self.is_left(node),
            Outcome::ReturnedToSlurm | Outcome::Released => {
                (!self.told(node, ends)).then(|| "slurmctld was not told".to_owned())
            }
            _ => None,
        }
    }

    /// Our machines of the node.
    fn machines_of(&self, node: &NodeName) -> impl Iterator<Item = &MachineTimeline> {
        self.machines.iter().filter(move |it| {
            let is_of = it.instance.tags.get("node") == Some(node.as_str());
            is_of && !self.judge.is_foreign(it.instance.id.as_str())
        })
    }

    /// Since when what a listing has shown to the process may have been so.
    fn since(&self) -> Option<Instant> {
        self.begun.checked_sub(self.judge.lag + ANSWER)
    }

    fn is_not_up(&self, node: &NodeName, id: Option<&str>) -> Option<String> {
        let since = self.since();
        let ran = |it: &MachineTimeline| {
            let ends = it.states.iter().skip(1).map(|(end, _)| Some(*end)).chain([None]);
            it.states.iter().zip(ends).any(|((_, state), end)| {
                let lasts = end.is_none_or(|end| since.is_none_or(|since| end >= since));
                *state == InstanceState::Running && lasts
            })
        };
        let is_it = |it: &&MachineTimeline| id.is_none_or(|id| id == it.instance.id.as_str());
        if !self.machines_of(node).filter(is_it).any(ran) {
            return Some(format!("{} did not run", id.unwrap_or("no machine")));
        }
        let told = self.judge.seen().addressed.get(node).is_some_and(|at| *at >= self.begun);
        (!told).then(|| "slurmctld does not know where".to_owned())
    }

    /// A machine that was there before the process looked, and that nobody has told to go, or to stop if it is to be kept.
    fn is_left(&self, node: &NodeName) -> Option<String> {
        if self.judge.seen().misled.contains(&self.who) {
            return None;
        }
        let since = self.since()?;
        let left = self.machines_of(node).find(|it| {
            let shown = it.states.first().is_some_and(|(begin, _)| *begin <= since);
            let is_off =
                |state: &_| matches!(state, InstanceState::Stopping | InstanceState::Stopped);
            // Another process may have started it again since.
            let stopped = it.states.last().is_some_and(|(_, state)| is_off(state))
                || it.states.iter().any(|(begin, state)| *begin >= since && is_off(state));
            let kept = stopped && self.judge.warm.has(&it.instance);
            shown && !kept && !it.states.iter().any(|(_, state)| state.is_leaving())
        })?;
        Some(format!("{} is left", left.instance.id))
    }

    /// True if this process has told slurmctld to do that with the node.
    fn told(&self, node: &NodeName, what: fn(NodeAction) -> bool) -> bool {
        let seen = self.judge.seen();
        seen.told.iter().any(|(who, of, action)| *who == self.who && of == node && what(*action))
    }

    fn is_unrepaired(&self, finding: &Finding) -> bool {
        let Some(node) = &finding.node else {
            return self.is_there(finding);
        };
        match finding.kind {
            FindingKind::Orphan | FindingKind::Broken | FindingKind::Warm => self.is_there(finding),
            FindingKind::Ghost | FindingKind::Stuck => !self.told(node, ends),
            FindingKind::Down | FindingKind::Rested | FindingKind::Drained => {
                let serves = |action| matches!(action, NodeAction::Resume | NodeAction::Undrain);
                !self.told(node, serves)
            }
            FindingKind::Full => !self.told(node, |action| action == NodeAction::Drain),
            FindingKind::WrongAddress => {
                let seen = self.judge.seen();
                seen.addressed.get(node).is_none_or(|at| *at < self.begun)
            }
            _ => false,
        }
    }

    /// True if nobody has told a machine of the finding to go.
    fn is_there(&self, finding: &Finding) -> bool {
        finding.instances.iter().any(|id| {
            let left =
                |it: &MachineTimeline| !it.states.iter().any(|(_, state)| state.is_leaving());
            self.machines.iter().any(|it| it.instance.id == *id && left(it))
        })
    }
}

/// True for what ends a node's service.
fn ends(action: NodeAction) -> bool {
    match action {
        NodeAction::PowerDown
        | NodeAction::PowerDownAsap
        | NodeAction::PowerDownForce
        | NodeAction::Down => true,
        NodeAction::PowerUp | NodeAction::Resume | NodeAction::Drain | NodeAction::Undrain => false,
    }
}
