//! Carries plans out, stage by stage.

use super::bring_up::From;
use super::outbox::Outbox;
use super::pass::{Goal, Task, pass};
use super::rebuild::{Renew, Renewal};
use super::shared::Shared;
use super::take_down::TakeDown;
use crate::cause::Cause;
use crate::cooldown::Cooldowns;
use crate::failure::Failure;
use crate::plan::{
    Begin, Clear, FileStep, FindingKind, Handling, JobGroup, MachineStep, Notification, Operation,
    Plan, ReportStep, SlurmStep, Stage, Step, Why, without_our_prefix,
};
use crate::report::{NodeReport, Report};
use crate::site::Site;
use crate::state::NodeLock;
use crate::tools::Tools;
use crate::world::Roster;
use cloud_core::InstanceId;
use hostlist::NodeName;
use slurmconf::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::SystemTime;
use tokio::time::Instant;
use tracing::Instrument as _;

/// Carries plans out.
pub(crate) struct Executor<'a> {
    pub(super) tools: &'a Tools<'a>,
    pub(super) site: &'a Site,
    pub(super) conf: &'a Roster<'a>,
    pub(super) deadline: Instant,
    /// The locks of the plan's nodes.
    pub(crate) locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
    pub(crate) cooldowns: Cooldowns,
    pub(crate) report: Report,
    /// Addresses of nodes that Slurm does not know yet.
    pub(super) addresses: BTreeMap<NodeName, (IpAddr, InstanceId)>,
    /// Ask Slurm before instances are terminated.
    pub(crate) confirms: bool,
    /// slurm.conf as this plan wrote it.
    pub(super) written: Option<Config>,
    /// The nodes that this plan removed from slurm.conf.
    pub(super) dropped: Vec<NodeName>,
    /// Instances whose image the cloud refused to replace in place, by node.
    pub(crate) fixed: BTreeMap<NodeName, InstanceId>,
    /// The plan waited so long that its observation is outdated.
    pub(super) outdated: bool,
    /// Nodes that were drained again, because their drain was lifted during the wait.
    pub(super) drained_again: BTreeSet<NodeName>,
    /// Nodes of calls that slurmctld did not answer.
    pub(crate) unanswered: BTreeSet<NodeName>,
    /// The findings that the plan acts on.
    found: BTreeSet<(FindingKind, NodeName)>,
    /// The steps that undo what was carried out until the plan was outdated.
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

    /// Carries a plan out, and reports the outcome of each node. Stops when the plan has waited so long that a new
    /// one is needed.
    pub(crate) async fn carry_out(&mut self, plan: &Plan) {
        let span = tracing::info_span!("run", run = self.tools.run, operation = %plan.operation);
        self.carry_out_stages(plan).instrument(span).await;
        self.leave_what_was_not_repaired();
    }

    /// Leaves to the next run what this one was to repair and has not: another process works on the node, the node has
    /// changed in the meantime, or the repair failed.
    fn leave_what_was_not_repaired(&mut self) {
        let Report { findings, nodes, .. } = &mut self.report;
        for finding in findings.iter_mut().filter(|it| it.handling == Handling::Repaired) {
            let Some(node) = &finding.node else { continue };
            if !nodes.get(node).is_some_and(|ended| ended.outcome.has_changed()) {
                finding.handling = Handling::Watched;
            }
        }
    }

    async fn carry_out_stages(&mut self, plan: &Plan) {
        let found = plan.findings.iter().filter_map(|it| Some((it.kind, it.node.clone()?)));
        self.found = found.collect();
        self.report.findings.extend(plan.findings.iter().cloned());
        let stages = plan.stages.iter().fold(Vec::new(), Stage::join);
        let last = stages.len();
        let mut undo: Vec<Step> = Vec::new();
        let mut stopped = false;
        for (number, stage) in stages.iter().enumerate() {
            if self.tools.cancel.is_cancelled() && stopped {
                return;
            }
            if self.tools.cancel.is_cancelled() && number > 0 && !stage.tells_slurm() {
                self.cancelled(stages.get(number..).unwrap_or_default());
                self.undo(undo).await;
                return;
            }
            stopped |= stage.begin == Begin::IfAllWell && !self.report.is_success();
            let steps: Vec<Step> = match stage.begin {
                Begin::Always | Begin::Together => stage.steps.clone(),
                Begin::IfAllWell | Begin::WithTheRest if stopped => continue,
                Begin::IfAllWell | Begin::WithTheRest => {
                    let is_well = |node: &NodeName| !self.report.has_failed(node);
                    stage.steps.iter().filter_map(|step| step.keeping(is_well)).collect()
                }
            };
            let failed = self.stage(plan, steps, number + 1 == last).await;
            undo = self.undo_of(stage);
            if failed && (self.outdated || !undo.is_empty()) {
                self.undo(undo).await;
                return;
            }
            if self.outdated && !self.tools.cancel.is_cancelled() {
                self.undo_of_half = Some(undo);
                return;
            }
        }
    }

    /// True if the plan has this finding about the node.
    pub(super) fn has_found(&self, kind: FindingKind, node: &NodeName) -> bool {
        self.found.contains(&(kind, node.clone()))
    }

    /// The steps that undo the stages up to this one.
    fn undo_of(&self, stage: &Stage) -> Vec<Step> {
        let mut undo = stage.undo.clone();
        let named: BTreeSet<&NodeName> = stage.undo.iter().flat_map(Step::nodes).collect();
        let again = self.drained_again.iter().filter(|node| !named.contains(node));
        let nodes: Vec<NodeName> = again.cloned().collect();
        if !nodes.is_empty() {
            undo.push(Step::notify(nodes, Notification::Undrain));
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
            self.report.note(node.clone(), NodeReport::cancelled());
        }
    }

    /// Carries out the steps of a stage; true if one failed.
    async fn stage(&mut self, plan: &Plan, steps: Vec<Step>, last: bool) -> bool {
        let before: BTreeSet<NodeName> =
            self.report.nodes.keys().filter(|node| self.report.has_failed(node)).cloned().collect();
        let failures = self.report.failures.len();
        let mut work = Work::default();
        for step in steps {
            self.sort(plan.operation, step, &mut work);
        }
        let tasks = std::mem::take(&mut work.tasks);
        if !tasks.is_empty() {
            self.let_go_of_idle(plan);
            let outbox = Outbox::default();
            let is_comment = |step: &mut SlurmStep| {
                matches!(step, SlurmStep::Notify { what: Notification::Comment(..), .. })
            };
            for comment in work.slurm.extract_if(.., is_comment) {
                self.slurm_step(comment, &outbox).await;
            }
            self.pass(tasks, &plan.groups, outbox, last).await;
        }
        self.carry_out_rest(work).await;
        let is_new = |node: &NodeName| self.report.has_failed(node) && !before.contains(node);
        self.report.failures.len() > failures || self.report.nodes.keys().any(is_new)
    }

    /// Carries out the steps that undo others.
    async fn undo(&mut self, steps: Vec<Step>) {
        let mut work = Work::default();
        for step in steps {
            self.sort(self.report.operation, step, &mut work);
        }
        self.carry_out_rest(work).await;
    }

    /// Adds a step to the work of whoever carries it out.
    fn sort(&mut self, operation: Operation, step: Step, work: &mut Work) {
        match step {
            Step::Machine(step) => self.sort_machine(operation, step, work),
            Step::Slurm(SlurmStep::Notify {
                nodes,
                what: Notification::ReturnToSlurm { cause, reason, .. },
            }) if operation == Operation::Start => {
                let failure = Failure::new(cause, without_our_prefix(&reason));
                for node in nodes {
                    work.tasks.push(self.task(node, up(From::Nothing(failure.clone()), true)));
                }
            }
            Step::Slurm(step) => work.slurm.push(step),
            Step::File(step) => work.files.push(step),
            // No instance is listed, but a launch without an answer may yet show one.
            Step::Report(ReportStep::Nothing { node, why: Why::NoInstance | Why::Leaving })
                if stops(operation) && self.has_open_launch(&node) =>
            {
                let how = self.take_down(Vec::new(), true);
                work.tasks.push(self.task(node, Goal::Down(how)));
            }
            Step::Report(step) => self.note(step, &mut work.rests),
        }
    }

    fn sort_machine(&mut self, operation: Operation, step: MachineStep, work: &mut Work) {
        let (node, goal) = match step {
            MachineStep::Launch { wanted, first, reports_address } => {
                (wanted.node.clone(), up(From::Launch(wanted, first), reports_address))
            }
            MachineStep::Recreate { id, wanted } => {
                let old = vec![Clear::Terminate(id)];
                (wanted.node.clone(), up(From::Launch(wanted, old), true))
            }
            MachineStep::Adopt { node, id, address } => {
                (node, up(From::Instance(id, address), true))
            }
            MachineStep::StartStopped { node, id, otherwise } => {
                (node, up(From::Stopped(id, otherwise), true))
            }
            MachineStep::Stop { node, id } => {
                (node, Goal::Down(TakeDown { keeps: true, ..self.take_down(vec![id], true) }))
            }
            MachineStep::Terminate { node, ids } => {
                // Slurm may want the node by now: that of a broken instance beside one that works, or one whose machine was off.
                let confirms = self.confirms
                    || operation == Operation::Rebuild
                    || self.has_found(FindingKind::Orphan, &node);
                let how = self.take_down(ids, stops(operation));
                (node, Goal::Down(TakeDown { confirms, ..how }))
            }
            MachineStep::WaitGone { node, ids } => (node, Goal::Gone(ids)),
            MachineStep::TerminateNameless { ids } => return work.nameless.extend(ids),
            MachineStep::Rebuild { node, id, image } => {
                return work.renewals.push(Renewal { node, id, how: Renew::Image(image) });
            }
            MachineStep::Reboot { node, id, how } => {
                return work.renewals.push(Renewal { node, id, how: Renew::Boot(how) });
            }
        };
        work.tasks.push(self.task(node, goal));
    }

    fn take_down(&self, ids: Vec<InstanceId>, sweeps: bool) -> TakeDown {
        TakeDown { ids, keeps: false, sweeps, confirms: self.confirms }
    }

    /// Reports what is not done, and collects the nodes that rest.
    fn note(&mut self, step: ReportStep, rests: &mut Vec<(NodeName, Cause, SystemTime)>) {
        let (node, report) = match step {
            ReportStep::Refuse { node, why } => (node, NodeReport::refused(&why)),
            ReportStep::GiveUp { node, cause, reason } => {
                (node, NodeReport::failed(cause, reason.as_str()))
            }
            ReportStep::Nothing { node, why } => (node, NodeReport::nothing(&why)),
            ReportStep::NoteBad { pool, until, .. } => return self.note_bad(&pool, until),
            ReportStep::Rest { node, cause, until } => return rests.push((node, cause, until)),
        };
        self.report.note(node, report);
    }

    /// Carries out what is not the work on one node.
    async fn carry_out_rest(&mut self, work: Work) {
        let outbox = Outbox::default();
        self.terminate_nameless(work.nameless).await;
        for step in work.files {
            match step {
                FileStep::Write { which, before, text, drops, .. } => {
                    self.write(which, &before, &text, drops);
                }
                FileStep::Refresh { which } => self.refresh(which).await,
            }
        }
        // slurmctld looks names up in the hosts file when it reads slurm.conf.
        for step in work.slurm {
            self.slurm_step(step, &outbox).await;
        }
        self.rest(&work.rests);
        self.send(outbox).await;
        self.rebuild(work.renewals).await;
    }

    /// Releases the locks of nodes to which nothing is done: the machines of others take minutes, and Slurm may want one
    /// of these again. Operations that plan again under the same locks keep them.
    fn let_go_of_idle(&mut self, plan: &Plan) {
        if stops(plan.operation) || plan.operation == Operation::Start {
            let busy = plan.steps().filter(|step| !step.is_idle()).flat_map(Step::nodes);
            let busy: BTreeSet<&NodeName> = busy.collect();
            let idle = plan.steps().flat_map(Step::nodes).filter(|node| !busy.contains(node));
            for node in idle {
                self.locks.remove(node);
            }
        }
    }

    /// Works on nodes, and meanwhile sends what is in the outbox.
    async fn pass(&mut self, tasks: Vec<Task>, groups: &[JobGroup], outbox: Outbox, last: bool) {
        let nodes = tasks.iter().map(|task| task.node.clone());
        let mut shared = Shared::new(self, groups, nodes, outbox);
        shared.keeps_locks = !last;
        let (passed, cooldowns) = pass(shared, tasks).await;
        self.cooldowns = cooldowns;
        self.locks.extend(passed.locks);
        self.addresses.extend(passed.addresses);
        for (node, report) in passed.reports {
            self.report.note(node, report);
        }
        for warning in passed.warnings {
            self.report.warn(warning);
        }
    }

    fn task(&mut self, node: NodeName, goal: Goal) -> Task {
        Task { lock: self.locks.remove(&node), node, goal }
    }

    /// True if a launch had no answer: its instance may still show up.
    fn has_open_launch(&self, node: &NodeName) -> bool {
        self.locks.get(node).is_some_and(|lock| lock.record().is_open())
    }
}

fn up(from: From, reports: bool) -> Goal {
    Goal::Up { from, reports }
}

/// True if the operation leaves no instance of its nodes.
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

/// The steps of a stage, by who carries them out.
#[derive(Default)]
struct Work {
    /// The work on nodes.
    tasks: Vec<Task>,
    renewals: Vec<Renewal>,
    nameless: Vec<InstanceId>,
    slurm: Vec<SlurmStep>,
    files: Vec<FileStep>,
    rests: Vec<(NodeName, Cause, SystemTime)>,
}
