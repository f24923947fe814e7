//! One pass: observe, plan, act.

use super::Run;
use super::observe::{Observation, SlurmQuery};
use crate::cause::Cause;
use crate::exec::Executor;
use crate::plan::{Plan, Refusal, Step, Why};
use crate::report::{NodeReport, Outcome, Report};
use crate::state::{EventKind, NodeLock};
use hostlist::NodeName;
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

impl Run<'_> {
    /// Observes, plans and acts for locked nodes.
    pub(super) async fn pass(
        &self,
        mut locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
        deadline: Instant,
        plan: impl FnOnce(&Observation) -> Plan,
    ) -> Report {
        let observation = self.observe_nodes(&mut locks, SlurmQuery::Nodes, deadline).await;
        let plan = plan(&observation);
        self.act(&plan, observation, locks, deadline).await
    }

    /// Observes, plans and acts for nodes that Slurm suspends. Slurm is queried again before each is terminated.
    pub(super) async fn pass_confirming(
        &self,
        mut locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
        deadline: Instant,
        plan: impl FnOnce(&Observation) -> Plan,
    ) -> Report {
        let mut observation = self.observe_nodes(&mut locks, SlurmQuery::Nodes, deadline).await;
        // It was reachable a moment ago, when it called the program.
        self.retry_slurm(&mut observation, SlurmQuery::Nodes, deadline).await;
        self.note_last_work(&observation, locks.keys());
        let plan = plan(&observation);
        let answers = observation.slurm.is_some();
        let mut executor = self.executor(&plan, observation, locks, deadline);
        executor.confirms = answers;
        executor.carry_out(&plan).await;
        executor.report
    }

    /// Logs when nodes that are about to be terminated registered and last had a job, which Slurm will forget.
    fn note_last_work<'n>(
        &self,
        observation: &Observation,
        nodes: impl Iterator<Item = &'n NodeName>,
    ) {
        let Some(known) = &observation.slurm else { return };
        for node in nodes.filter_map(|node| known.get(node)).filter(|it| !it.state.has_job()) {
            let registered = node.slurmd_start.map(|at| (EventKind::Registered, at));
            // Slurm reports the boot time as the last busy time of a node that never had a job.
            let idle = node.last_busy.filter(|at| Some(*at) > node.slurmd_start);
            let idle = idle.map(|at| (EventKind::Idle, at));
            for (kind, at) in registered.into_iter().chain(idle) {
                self.tools.note(&self.tools.event(kind).of(&node.name).since(at));
            }
        }
    }

    /// Carries out a plan for an observation.
    pub(super) async fn act(
        &self,
        plan: &Plan,
        observation: Observation,
        locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
        deadline: Instant,
    ) -> Report {
        let mut executor = self.executor(plan, observation, locks, deadline);
        executor.carry_out(plan).await;
        executor.report
    }

    pub(super) fn executor(
        &self,
        plan: &Plan,
        observation: Observation,
        locks: BTreeMap<NodeName, Box<dyn NodeLock>>,
        deadline: Instant,
    ) -> Executor<'_> {
        let mut executor =
            Executor::new(&self.tools, self.site, self.conf, plan.operation, deadline);
        executor.report.budget = observation.world(self).budget_state();
        executor.locks = locks;
        executor.cooldowns = observation.cooldowns;
        for warning in observation.warnings {
            executor.report.warn(warning);
        }
        executor
    }
}

/// Merges the report of one pass.
pub(super) fn merge(report: &mut Report, other: Report) {
    report.nodes.extend(other.nodes);
    report.findings.extend(other.findings);
    for failure in other.failures {
        if !report.failures.contains(&failure) {
            report.failures.push(failure);
        }
    }
    report.slurm_reloaded |= other.slurm_reloaded;
    report.budget = other.budget.or(report.budget);
    report.slurm_refused |= other.slurm_refused;
    for warning in other.warnings {
        report.warn(warning);
    }
}

/// Reports nodes that another process works on.
pub(super) fn report_busy(report: &mut Report, nodes: Vec<NodeName>) {
    for node in nodes {
        let reason = "another process works on it";
        let busy = NodeReport::new(Outcome::Busy).because(Cause::Conflict, reason);
        report.nodes.insert(node, busy);
    }
}

/// Reports nodes that Slurm is starting again. They are left to the process that starts them.
pub(super) fn wanted_again(report: &mut Report, nodes: Vec<NodeName>) {
    for node in nodes {
        report.nodes.insert(node, NodeReport::nothing(&Why::WantedAgain));
    }
}

/// Reports unknown names.
pub(super) fn unknown(report: &mut Report, names: Vec<NodeName>) {
    for name in names {
        report.note(name, NodeReport::refused(&Refusal::NotInSlurmConf));
    }
}

/// Removes nodes from a plan that are not locked.
pub(super) fn without(plan: &mut Plan, nodes: &[NodeName]) {
    let nodes: BTreeSet<&NodeName> = nodes.iter().collect();
    let is_ours = |node: &NodeName| !nodes.contains(node);
    let locked =
        |steps: &[Step]| steps.iter().filter_map(|step| step.keeping(is_ours)).collect::<Vec<_>>();
    for stage in &mut plan.stages {
        stage.steps = locked(&stage.steps);
        stage.undo = locked(&stage.undo);
    }
}

/// Reports nodes on which the work was cancelled.
pub(super) fn cancelled(report: &mut Report, nodes: &BTreeSet<NodeName>) {
    for node in nodes {
        report.note(node.clone(), NodeReport::cancelled());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{FileStep, Notification, Operation, Reload, Stage, Still, our_reason};
    use crate::site::{Identity, Site};
    use crate::state::MemoryState;
    use crate::tools::{Cancel, Files, Tools};
    use crate::world::Roster;
    use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
    use slurmconf::Config;
    use slurmctl::memory::{MemorySlurm, MemorySlurmSettings, NodeSpec};
    use std::time::{Duration, SystemTime};

    #[tokio::test(start_paused = true)]
    async fn a_planned_return_keeps_its_reason_when_the_deadline_has_passed()
    -> Result<(), Box<dyn std::error::Error>> {
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n1".parse()?));
        let (config, site) = (Config::default(), Site::new(Identity::cluster("blue")));
        let run = Run {
            tools: Tools {
                cloud: &MemoryCloud::new(MemoryCloudSettings::default()),
                slurm: &slurm,
                state: &MemoryState::new(),
                clock: &|| SystemTime::UNIX_EPOCH,
                progress: &(),
                files: &Files::default(),
                run: "test",
                cancel: Cancel::never(),
            },
            site: &site,
            conf: &Roster::new(&config),
        };
        let (node, cause) = (NodeName::new("n1")?, Cause::Capacity);
        let reason = our_reason("out of capacity");
        let what = Notification::ReturnToSlurm { still: Still::Awaited, cause, reason };
        let step = Step::notify([node.clone()], what);
        let plan = Plan::new(Operation::Start).stage(Stage::new("n1", vec![step]));
        let observation = run.observe().await;
        let report = run.act(&plan, observation, BTreeMap::new(), Instant::now()).await;
        assert_eq!(report.nodes.get(&node).and_then(|node| node.cause), Some(cause), "{report:?}");
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn slurmctld_is_told_of_a_file_that_was_written_before_the_run_is_cancelled()
    -> Result<(), Box<dyn std::error::Error>> {
        let slurm = MemorySlurm::new(MemorySlurmSettings::cloud(&"n1".parse()?));
        slurm.set_conf_nodes(vec![NodeSpec::cloud("n2".parse()?)]);
        let (stop, cancel) = Cancel::new();
        let (config, site) = (Config::default(), Site::new(Identity::cluster("blue")));
        let run = Run {
            tools: Tools {
                cloud: &MemoryCloud::new(MemoryCloudSettings::default()),
                slurm: &slurm,
                state: &MemoryState::new(),
                clock: &|| SystemTime::UNIX_EPOCH,
                progress: &(),
                files: &Files::default(),
                run: "test",
                cancel,
            },
            site: &site,
            conf: &Roster::new(&config),
        };
        let (observation, deadline) =
            (run.observe().await, Instant::now() + Duration::from_mins(1));
        stop.cancel();
        let (which, summary, drops) =
            (crate::plan::WrittenFile::SlurmConf, String::new(), Vec::new());
        let (before, text) = (Vec::new(), Vec::new());
        let write = Step::File(FileStep::Write { which, before, text, summary, drops });
        let refresh = Step::File(FileStep::Refresh { which: crate::plan::WrittenFile::Hosts });
        let plan = Plan::new(Operation::Finish)
            .stage(Stage::new("write", vec![write]))
            .stage(Stage::new(
                "tell slurm",
                vec![Step::notify([], Notification::Reload(Reload::Reconfigure))],
            ))
            .stage(Stage::new("files", vec![refresh]));
        let report = run.act(&plan, observation, BTreeMap::new(), deadline).await;
        assert!(slurm.node("n2").is_some(), "{report:?}");
        assert_eq!(report.failures, ["cancelled: not all is done"], "no node says so");
        Ok(())
    }
}
