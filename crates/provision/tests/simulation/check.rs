//! What must hold in the end.

use crate::simulation::env::Env;
use cloud_core::Instance;
use slurmctl::{JobState, Node};

/// True if nothing more will happen but by new jobs.
pub(crate) fn is_settled(env: &Env, all: &[Instance]) -> bool {
    let ours = |instance: &&Instance| env.owns(instance);
    let at_rest = |instance: &Instance| instance.state.is_leaving() || env.warm.keeps(instance);
    !env.warm.changes()
        && all.iter().filter(ours).all(at_rest)
        && env.slurm.all_jobs().iter().all(|job| job.state.is_finished())
        && env.slurm.all_nodes().iter().all(is_at_rest)
}

fn is_at_rest(node: &Node) -> bool {
    node.state.is_powered_down() && is_usable(node)
}

fn is_usable(node: &Node) -> bool {
    !node.state.is_down() && !node.state.has_drain()
}

/// No job ever waits without a reason.
pub(crate) fn waiting_jobs(env: &Env) -> Result<(), String> {
    let unexplained = |job: &slurmctl::Job| job.state == JobState::Pending && job.reason.is_none();
    match env.slurm.all_jobs().into_iter().find(unexplained) {
        Some(job) => Err(format!("job: {} waits without a reason", job.id)),
        None => Ok(()),
    }
}

/// What has to hold when all troubles are long over: there is room, so that every job has run.
pub(crate) fn at_the_end(env: &Env) -> Result<(), String> {
    env.judge.verdict()?;
    let nodes = env.slurm.all_nodes();
    for instance in env.ours().iter().filter(|instance| !instance.state.is_leaving()) {
        let node = instance.tags.get("node").unwrap_or_default();
        let known = nodes.iter().find(|known| known.name.as_str() == node);
        let asleep = known.is_none_or(|known| known.state.is_powered_down());
        if asleep && !env.warm.keeps(instance) {
            return Err(format!("leak: {} of {node} is {}", instance.id, instance.state));
        }
    }
    if let Some(node) = nodes.iter().find(|node| !is_usable(node)) {
        let reason = node.reason_text();
        return Err(format!("unusable: {} is {} ({reason})", node.name, node.state));
    }
    for job in env.slurm.all_jobs() {
        if job.state != JobState::Completed {
            return Err(format!("job: {} is {} ({:?})", job.id, job.state, job.reason));
        }
    }
    Ok(())
}
