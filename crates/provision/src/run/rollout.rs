//! The next batch of a rollout.

use super::Run;
use super::pass::cancelled;
use crate::plan::{self, Operation, Refusal, Rollout, Step};
use crate::report::Report;
use hostlist::{Hostlist, NodeName};
use std::collections::{BTreeMap, BTreeSet};

/// Begins the next batch of a rollout, and notes in the request what it has begun.
///
/// Where slurmctld did not answer, and does not say that it reboots the node, nothing has begun: the
/// next batch has the node again. So it is where we were told to end before it was begun.
pub async fn rollout(run: &Run<'_>, request: &mut Rollout) -> Result<Report, Refusal> {
    let begun = run.begun("rollout");
    let deadline = run.deadline(begun);
    let observation = run.observe_rollout(request).await;
    let plan = plan::rollout(request, observation.world(run))?;
    if run.tools.cancel.is_cancelled() {
        let mut report = Report::new(Operation::Rollout);
        let next = plan.steps().filter(|step| step.reboots_by_slurm()).flat_map(Step::nodes);
        cancelled(&mut report, &next.cloned().collect());
        return Ok(run.ended(report, begun));
    }
    let now = observation.now;
    let mut executor = run.executor(&plan, observation, BTreeMap::new(), deadline);
    executor.carry_out(&plan).await;
    let untouched = untouched(run, executor.unanswered).await;
    request.note_begun(&plan, &untouched, now);
    Ok(run.ended(executor.report, begun))
}

/// Those of the nodes of which slurmctld does not say that it reboots them.
async fn untouched(run: &Run<'_>, mut nodes: BTreeSet<NodeName>) -> BTreeSet<NodeName> {
    if nodes.is_empty() {
        return nodes;
    }
    let list: Hostlist = nodes.iter().collect();
    let known = run.tools.slurm.nodes(Some(&list)).await.unwrap_or_default();
    for node in known {
        if node.state.is_reboot_requested() || node.state.is_reboot_issued() {
            nodes.remove(&node.name);
        }
    }
    nodes
}
