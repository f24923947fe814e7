//! Plans: what is to be done, as values that can be printed and compared.

mod absent;
mod bring_up;
mod budget;
mod conf;
mod deploy;
mod exclusions;
mod failed;
mod file_step;
mod finding;
mod finish;
mod hosts;
mod inventory;
mod json;
mod notification;
mod old_machine;
mod print;
mod reasons;
mod rebuild;
mod reconcile;
mod refusal;
mod removal;
mod resize;
mod resize_to;
mod rollout;
mod snapshot;
mod start;
mod step;
mod stop;
mod topology;
mod unapplied;
mod warm;

pub use deploy::deploy;
pub use exclusions::node_section;
pub(crate) use exclusions::{excluded_outside, rewritten};
pub use failed::failed;
pub use file_step::{FileStep, WrittenFile};
pub use finding::{Finding, FindingKind, Handling};
pub use finish::{Finish, finish};
pub use hosts::{HostsError, hosts};
pub use inventory::{Machine, inventory_ini, inventory_json, machines};
pub use notification::{Notification, Reload, Still};
pub use reasons::our_reason;
pub(crate) use reasons::{
    OUR_PREFIX, PREEMPTED, held, is_drained_by_us, is_for_replacement, is_misfit,
    replacement_reason, without_our_prefix,
};
pub use rebuild::{ImageWish, RebuildOptions, Target, Vars, rebuild};
pub(crate) use rebuild::{configured, image_in, not_rebuilt};
pub(crate) use reconcile::without_reservations;
pub use reconcile::{Sightings, reconcile};
pub use refusal::{Refusal, Why};
pub use resize::{Gaps, GroupSize, Resize, resize};
pub use resize_to::resize_to;
pub use rollout::{JobForm, Rollout, RolloutHow, RolloutProgress, rollout, rollout_progress};
pub use snapshot::snapshot_source;
pub(crate) use start::all_cooling;
pub use start::start;
pub use step::{Clear, MachineStep, ReportStep, SlurmStep, Step};
pub(crate) use stop::is_wanted_again;
pub use stop::{stop, stop_all, stop_by_hand, stop_now};
pub(crate) use topology::{place_at_start, with_topology};

use cloud_core::Tags;
use hostlist::NodeName;
use serde::{Serialize, Serializer};
use slurmctl::JobId;

/// What is to be done, in order.
///
/// Printed, it is what an operator reads with `--dry-run`: a line for each step. Serialized, it is
/// what `--json` prints, without the text of files; it is not read back. Two plans for the same world
/// are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// What was asked for.
    pub operation: Operation,
    /// What to do, one stage after another.
    pub stages: Vec<Stage>,
    /// The jobs that want nodes of this plan.
    #[serde(rename = "jobs")]
    pub groups: Vec<JobGroup>,
    /// What was found, acted upon or not.
    pub findings: Vec<Finding>,
}

impl Plan {
    /// A plan without anything to do.
    #[must_use]
    pub fn new(operation: Operation) -> Self {
        Self { operation, stages: Vec::new(), groups: Vec::new(), findings: Vec::new() }
    }

    /// Adds a stage, unless it is empty.
    #[must_use]
    pub fn stage(mut self, stage: Stage) -> Self {
        if !stage.steps.is_empty() {
            self.stages.push(stage);
        }
        self
    }

    /// All steps in order, without those that undo.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.stages.iter().flat_map(|stage| &stage.steps)
    }

    /// True if carrying it out changes nothing, neither in the cloud nor in Slurm nor on disk.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.steps().all(Step::is_idle)
    }

    /// True if a run that carries it out is one in which nodes failed.
    #[must_use]
    pub fn fails(&self) -> bool {
        let fails = |step: &Step| {
            matches!(step, Step::Report(ReportStep::GiveUp { .. }))
                || matches!(step.notification(), Some(Notification::ReturnToSlurm { .. }))
        };
        self.steps().any(|step| match self.operation {
            _ if matches!(step, Step::Report(ReportStep::Refuse { .. })) => true,
            Operation::Start | Operation::Rebuild => fails(step),
            // There it is what was asked for.
            _ => false,
        })
    }
}

words! {
    /// What was asked for.
    pub enum Operation {
        /// Nodes are to come up.
        Start = "start",
        /// Nodes are to go away.
        Stop = "stop",
        /// Every instance of the cluster is to go away.
        StopAll = "stop all",
        /// Nodes never came up.
        Failed = "failed",
        /// Nodes are to get their image, or a reboot.
        Rebuild = "rebuild",
        /// All nodes are to get an image, a few at a time.
        Rollout = "rollout",
        /// Persistent nodes are to become more or fewer.
        Resize = "resize",
        /// Persistent nodes are to be there.
        Deploy = "deploy",
        /// slurm.conf is to have other nodes.
        Finish = "finish",
        /// Cloud, Slurm and slurm.conf are to agree.
        Reconcile = "reconcile",
    }
}

/// Steps that are done side by side; the next stage begins when all have ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// What it is for, in a word.
    pub what: &'static str,
    /// What becomes of it if a stage before it failed for some nodes.
    pub begin: Begin,
    /// What to do.
    pub steps: Vec<Step>,
    /// What to do instead of all stages to come, if a step of this one fails.
    pub undo: Vec<Step>,
}

impl Stage {
    /// A stage that leaves out the nodes that failed before.
    #[must_use]
    pub fn new(what: &'static str, steps: Vec<Step>) -> Self {
        Self { what, begin: Begin::WithTheRest, steps, undo: Vec::new() }
    }

    /// Sets what becomes of the stage if one before it failed.
    #[must_use]
    pub(crate) fn begun(mut self, begin: Begin) -> Self {
        self.begin = begin;
        self
    }

    /// Sets what undoes the stage.
    #[must_use]
    pub fn or_undo(mut self, undo: Vec<Step>) -> Self {
        self.undo = undo;
        self
    }

    /// Adds the stage to the one before it, if the two are begun together.
    pub(crate) fn join(mut stages: Vec<Self>, stage: &Self) -> Vec<Self> {
        match stages.last_mut() {
            Some(last) if stage.begin == Begin::Together => last.steps.extend(stage.steps.clone()),
            Some(_) | None => stages.push(stage.clone()),
        }
        stages
    }

    /// True if slurmctld is told of what an earlier stage has written. A run that ends in between leaves the two at odds.
    pub(crate) fn tells_slurm(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.notification(), Some(Notification::Reload(_))))
    }
}

words! {
    /// What becomes of a stage if one before it failed for some nodes.
    pub enum Begin {
        /// It is done without these nodes; a step about several goes on with the rest of them.
        WithTheRest = "with the rest",
        /// It is not begun, nor is any after it but those that are always done.
        IfAllWell = "if all well",
        /// It is done all the same.
        Always = "always",
        /// It is begun together with the one before it. Launches behind a probe wait for its answer, and not until its machine
        /// has booted; and nobody waits for Slurm to take nodes back.
        Together = "together",
    }
}

/// A job, and its nodes in a plan: all of them or none, if the policy is to release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct JobGroup {
    /// The job.
    #[serde(serialize_with = "as_number")]
    pub job: JobId,
    /// Its nodes that were asked for, by number.
    pub nodes: Vec<NodeName>,
    /// The tags of machines that are launched for it alone.
    #[serde(skip)]
    pub labels: Tags,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn as_number<S: Serializer>(job: &JobId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u32(job.get())
}

impl JobGroup {
    /// The job's nodes, by number, each once.
    #[must_use]
    pub fn new(job: JobId, nodes: impl IntoIterator<Item = NodeName>) -> Self {
        Self { job, nodes: crate::order::by_number(nodes), labels: Tags::new() }
    }

    /// Sets the tags of machines that are launched for it alone.
    #[must_use]
    pub fn labelled(mut self, labels: Tags) -> Self {
        self.labels = labels;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;

    #[test]
    fn a_plan_by_which_a_node_to_start_returns_to_slurm_fails() {
        let node = || NodeName::new("n1").unwrap();
        let plan = |operation, step| Plan::new(operation).stage(Stage::new("", vec![step]));
        let returned = |operation| {
            let (cause, reason) = (Cause::Capacity, our_reason("full"));
            let what = Notification::ReturnToSlurm { still: Still::Awaited, cause, reason };
            plan(operation, Step::notify([node()], what))
        };
        let refuse = Step::refuse(node(), Refusal::NoShape);
        assert!(plan(Operation::Resize, refuse).fails());
        assert!(returned(Operation::Start).fails());
        assert!(returned(Operation::Rebuild).fails());
        assert!(!returned(Operation::Reconcile).fails());
        assert!(!Plan::new(Operation::Start).fails());
    }
}
