//! Plans, stage by stage.

use super::bring_up::From;
use super::failure::Failure;
use super::pass::{Goal, Task, pass};
use super::shared::{Passed, Setting};
use super::take_down::TakeDown;
use super::tools::Tools;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::plan::{
    Begin, Clear, FindingKind, JobGroup, Operation, Plan, Return, Stage, Step, Why, our_reason,
};
use crate::report::{NodeReport, Outcome, Report};
use crate::site::Site;
use crate::state::NodeLock;
use crate::world::Roster;
use cloud_core::InstanceId;
use hostlist::NodeName;
use slurmconf::Config;
use slurmctl::{JobId, Reason};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tokio::time::Instant;

/// Carries plans out.
pub(crate) struct Executor<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) site: &'a Site,
    pub(super) conf: &'a Roster<'a>,
    pub(super) deadline: Instant,
    /// The nodes that are ours to work on.
    pub(crate) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    pub(crate) cooldowns: Cooldowns,
    pub(crate) report: Report,
    /// Where nodes were found to be, for when Slurm knows them.
    pub(super) addresses: BTreeMap<NodeName, (IpAddr, InstanceId)>,
    /// Slurm is asked once more before instances are ended.
    pub(crate) confirms: bool,
    /// What slurm.conf says since this plan wrote it.
    pub(super) written: Option<Config>,
    /// The nodes that it has no more.
    pub(super) dropped: Vec<NodeName>,
    /// Instances whose image the cloud refused to replace in place, by node.
    pub(crate) fixed: BTreeMap<NodeName, InstanceId>,
    /// So much time has gone by that what the plan was made from is no longer so.
    pub(super) outdated: bool,
    /// Nodes whose drain was lifted while we waited, and that we drained again.
    pub(super) drained_again: BTreeSet<NodeName>,
    /// Nodes of a call that slurmctld did not answer.
    pub(crate) unanswered: BTreeSet<NodeName>,
    /// What the plan was made for, by node.
    found: BTreeSet<(FindingKind, NodeName)>,
    /// What undoes the half of a plan that was carried out until it was outdated.
    pub(crate) undo_of_half: Option<Vec<Step>>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(
        tools: &'a Tools<'a>,
        site: &'a Site,
        conf: &'a Roster<'a>,
        operation: Operation,
        deadline: Instant,
    ) -> Self {
        Self {
            tools,
            site,
            conf,
            deadline,
            locks: BTreeMap::new(),
            cooldowns: Cooldowns::new(),
            report: Report::new(operation),
            addresses: BTreeMap::new(),
            confirms: false,
            written: None,
            dropped: Vec::new(),
            fixed: BTreeMap::new(),
            outdated: false,
            drained_again: BTreeSet::new(),
            unanswered: BTreeSet::new(),
            found: BTreeSet::new(),
            undo_of_half: None,
        }
    }

    /// Carries a plan out, and says what became of each node in the report; leaves it where it waited so
    /// long that another has to be made.
    pub(crate) async fn carry_out(&mut self, plan: &Plan) {
        let found = plan.findings.iter().filter_map(|it| Some((it.kind, it.node.clone()?)));
        self.found = found.collect();
        self.report.findings.extend(plan.findings.iter().cloned());
        if plan.operation == Operation::Start {
            // Launches behind a probe wait for its answer, which the engine knows, and not until
            // its machine has booted; and nobody waits for Slurm to take nodes back.
            let steps = plan.steps().cloned().collect();
            self.stage(plan, steps, true).await;
            return;
        }
        let last = plan.stages.len();
        let mut undo: Vec<Step> = Vec::new();
        let mut stopped = false;
        for (number, stage) in plan.stages.iter().enumerate() {
            if self.tools.cancel.is_cancelled() && stopped {
                return;
            }
            if self.tools.cancel.is_cancelled() && number > 0 && !stage.tells_slurm() {
                self.cancelled(plan.stages.get(number..).unwrap_or_default());
                self.steps(undo).await;
                return;
            }
            stopped |= stage.begin == Begin::IfAllWell && !self.report.is_success();
            let steps: Vec<Step> = match stage.begin {
                Begin::Always => stage.steps.clone(),
                Begin::IfAllWell | Begin::WithTheRest if stopped => continue,
                Begin::IfAllWell | Begin::WithTheRest => {
                    let is_well = |node: &NodeName| !self.report.has_failed(node);
                    stage.steps.iter().filter_map(|step| step.keeping(is_well)).collect()
                }
            };
            let failed = self.stage(plan, steps, number + 1 == last).await;
            undo = self.undo_of(stage);
            if failed && (self.outdated || !undo.is_empty()) {
                self.steps(undo).await;
                return;
            }
            if self.outdated && !self.tools.cancel.is_cancelled() {
                self.undo_of_half = Some(undo);
                return;
            }
        }
    }

    /// True if the plan was made because this was found of the node.
    pub(super) fn has_found(&self, kind: FindingKind, node: &NodeName) -> bool {
        self.found.contains(&(kind, node.clone()))
    }

    /// What undoes the stages up to this one.
    fn undo_of(&self, stage: &Stage) -> Vec<Step> {
        let mut undo = stage.undo.clone();
        let named: BTreeSet<&NodeName> = stage.undo.iter().flat_map(Step::nodes).collect();
        let again = self.drained_again.iter().filter(|node| !named.contains(node));
        let nodes: Vec<NodeName> = again.cloned().collect();
        if !nodes.is_empty() {
            undo.push(Step::Undrain { nodes });
        }
        undo
    }

    fn cancelled(&mut self, stages: &[Stage]) {
        let left: BTreeSet<&NodeName> =
            stages.iter().flat_map(|stage| &stage.steps).flat_map(Step::nodes).collect();
        if left.is_empty() {
            self.report.failures.push(format!("{}: not all is done", Cause::Cancelled.words()));
        }
        for node in left {
            let report = NodeReport::new(Outcome::Failed);
            let report = report.because(Cause::Cancelled, Cause::Cancelled.words());
            self.report.note(node.clone(), report);
        }
    }

    /// Carries out the steps of a stage; true if one failed.
    async fn stage(&mut self, plan: &Plan, steps: Vec<Step>, last: bool) -> bool {
        let before: BTreeSet<NodeName> =
            self.report.nodes.keys().filter(|node| self.report.has_failed(node)).cloned().collect();
        let failures = self.report.failures.len();
        let mut tasks = Vec::new();
        let mut others = Vec::new();
        for step in steps {
            match self.task(plan.operation, &step) {
                Some(task) => tasks.push(task),
                None => others.push(step),
            }
        }
        if !tasks.is_empty() {
            self.let_go_of_idle(plan, &mut others).await;
            let comments = take_comments(&mut others);
            self.pass(tasks, &plan.groups, comments, last).await;
        }
        self.steps(others).await;
        let is_new = |node: &NodeName| self.report.has_failed(node) && !before.contains(node);
        self.report.failures.len() > failures || self.report.nodes.keys().any(is_new)
    }

    /// Lets go of nodes to which nothing is done: machines of others take minutes, and Slurm may want one of these again.
    /// Who plans anew under the same locks keeps them.
    async fn let_go_of_idle(&mut self, plan: &Plan, steps: &mut Vec<Step>) {
        if !stops(plan.operation) && plan.operation != Operation::Start {
            return;
        }
        let busy = plan.steps().filter(|step| !step.is_idle()).flat_map(Step::nodes);
        let busy: BTreeSet<&NodeName> = busy.collect();
        let is_over =
            |step: &mut Step| step.is_idle() && !step.nodes().iter().any(|it| busy.contains(it));
        let idle: Vec<Step> = steps.extract_if(.., is_over).collect();
        for node in idle.iter().flat_map(Step::nodes) {
            self.locks.remove(node);
        }
        self.steps(idle).await;
    }

    async fn pass(
        &mut self,
        tasks: Vec<Task>,
        groups: &[JobGroup],
        comments: Vec<(JobId, String)>,
        last: bool,
    ) {
        let setting = Setting {
            tools: self.tools,
            site: self.site,
            deadline: self.deadline,
            cooldowns: std::mem::take(&mut self.cooldowns),
            groups: groups.to_vec(),
            keeps_locks: !last,
        };
        let (passed, cooldowns) = pass(setting, tasks, comments).await;
        self.cooldowns = cooldowns;
        self.take(passed);
    }

    fn take(&mut self, passed: Passed) {
        self.locks.extend(passed.locks);
        self.addresses.extend(passed.addresses);
        for (node, report) in passed.reports {
            self.report.note(node, report);
        }
        for warning in passed.warnings {
            self.report.warn(warning);
        }
    }

    /// The step as the task of a pass; none if it is another's.
    fn task(&mut self, operation: Operation, step: &Step) -> Option<Task> {
        let (node, goal) = match step {
            Step::Launch { wanted, first, tell } => {
                (&wanted.node, up(From::Launch(wanted.clone(), first.clone()), *tell))
            }
            Step::Recreate { id, wanted } => {
                let old = vec![Clear::Terminate(id.clone())];
                (&wanted.node, up(From::Launch(wanted.clone(), old), true))
            }
            Step::Adopt { node, id, address } => {
                (node, up(From::Instance(id.clone(), *address), true))
            }
            Step::StartStopped { node, id } => (node, up(From::Stopped(id.clone()), true)),
            Step::Terminate { node, ids } => {
                // A broken one beside one that works is of a node that Slurm may well want.
                let confirms = self.confirms || self.has_found(FindingKind::Orphan, node);
                let sweeps = stops(operation);
                let how = TakeDown { ids: ids.clone(), sweeps, confirms, confirmed: None };
                (node, Goal::Down(how))
            }
            Step::WaitGone { node, ids } => (node, Goal::Gone(ids.clone())),
            Step::GiveBack { node, cause, reason, how: Return::PowerDown }
                if operation == Operation::Start =>
            {
                (node, up(From::Nothing(Failure::new(*cause, own_words(reason))), true))
            }
            Step::Nothing { node, why: Why::NoInstance | Why::Leaving }
                if stops(operation) && self.has_open_launch(node) =>
            {
                let confirms = self.confirms;
                let how = TakeDown { ids: Vec::new(), sweeps: false, confirms, confirmed: None };
                (node, Goal::StaysDown(how))
            }
            _ => return None,
        };
        Some(Task { node: node.clone(), lock: self.locks.remove(node), goal })
    }

    /// True if a launch was never answered: it may still show up.
    fn has_open_launch(&self, node: &NodeName) -> bool {
        self.locks.get(node).is_some_and(|lock| lock.record().is_open())
    }
}

fn up(from: From, tells: bool) -> Goal {
    Goal::Up { from, tells }
}

/// True if nothing of the node is to be left.
fn stops(operation: Operation) -> bool {
    match operation {
        Operation::Stop | Operation::StopAll | Operation::Failed => true,
        Operation::Start
        | Operation::Rebuild
        | Operation::Rollout
        | Operation::Resize
        | Operation::Deploy
        | Operation::Finish
        | Operation::Reconcile => false,
    }
}

/// Removes the comments for jobs from the steps; the engine sends each once, while it works.
fn take_comments(steps: &mut Vec<Step>) -> Vec<(JobId, String)> {
    let comments = steps.extract_if(.., |step| matches!(step, Step::Comment { .. }));
    let told = |step| if let Step::Comment { job, text } = step { Some((job, text)) } else { None };
    comments.filter_map(told).collect()
}

/// A reason without what makes it ours, which it gets again when Slurm is told.
fn own_words(reason: &Reason) -> String {
    let mark = our_reason("").as_str().trim_end().to_owned();
    reason.as_str().strip_prefix(&mark).unwrap_or(reason.as_str()).trim_start().to_owned()
}
