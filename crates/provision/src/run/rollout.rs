//! Runs the next batch of a rollout.

use super::Run;
use super::pass::cancelled;
use crate::plan::{self, Operation, Refusal, Rollout, Step};
use crate::report::Report;
use hostlist::{Hostlist, NodeName};
use std::collections::{BTreeMap, BTreeSet};
use tokio::time::Instant;

/// Starts the next batch of a rollout, and records it in the request.
///
/// If slurmctld did not answer and does not show the node as rebooting, or the run was cancelled before, the node has not
/// started and is in the next batch again.
pub(super) async fn rollout(
    run: &Run<'_>,
    request: &mut Rollout,
    deadline: Instant,
) -> Result<Report, Refusal> {
    let observation = run.observe_rollout(request).await;
    let plan = plan::rollout(request, observation.world(run))?;
    if run.tools.cancel.is_cancelled() {
        let mut report = Report::new(Operation::Rollout);
        let next = plan.steps().filter(|step| step.reboots_by_slurm()).flat_map(Step::nodes);
        cancelled(&mut report, &next.cloned().collect());
        return Ok(report);
    }
    let now = observation.now;
    let mut executor = run.executor(&plan, observation, BTreeMap::new(), deadline);
    executor.carry_out(&plan).await;
    let untouched = untouched(run, executor.unanswered).await;
    request.note_begun(&plan, &untouched, now);
    Ok(executor.report)
}

/// The nodes that slurmctld does not show as rebooting.
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
