//! What must hold, at every moment and in the end.

use crate::env::Env;
use cloud_core::memory::Outcome;
use cloud_core::{Instance, InstanceState};
use slurmctl::{JobState, Node};
use std::collections::BTreeMap;

/// Never two live instances of a node; never an instance of others touched.
pub(crate) fn always(env: &Env, all: &[Instance]) -> Result<(), String> {
    let mut live: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for instance in all {
        if env.foreign.iter().any(|id| id == instance.id.as_str()) {
            let well = matches!(instance.state, InstanceState::Pending | InstanceState::Running);
            if !well {
                return Err(format!("foreign: {} is {}", instance.id, instance.state));
            }
        } else if !instance.state.is_leaving() {
            let node = instance.tags.get("node").unwrap_or("none");
            live.entry(node).or_default().push(instance.id.as_str());
        }
    }
    match live.into_iter().find(|(_, ids)| ids.len() > 1) {
        Some((node, ids)) => Err(format!("two live: {node} has {}", ids.join(" and "))),
        None => Ok(()),
    }
}

/// True if nothing more will happen but by new jobs.
pub(crate) fn is_settled(env: &Env, all: &[Instance]) -> bool {
    let ours = |instance: &&Instance| env.site.identity.owns(instance);
    all.iter().filter(ours).all(|instance| instance.state.is_leaving())
        && env.slurm.all_jobs().iter().all(|job| job.state.is_finished())
        && env.slurm.all_nodes().iter().all(is_at_rest)
}

fn is_at_rest(node: &Node) -> bool {
    node.state.is_powered_down() && is_usable(node)
}

fn is_usable(node: &Node) -> bool {
    !node.state.is_down() && !node.state.has_drain()
}

/// What has to hold when all troubles are long over: there is room, so that every job has run.
pub(crate) fn at_the_end(env: &Env) -> Result<(), String> {
    always(env, &env.cloud.instances())?;
    for event in env.cloud.history() {
        let subject = event.subject.as_deref().unwrap_or_default();
        if event.outcome != Outcome::Lost && env.foreign.iter().any(|id| id == subject) {
            return Err(format!("foreign: {} was asked for {subject}", event.operation));
        }
    }
    let nodes = env.slurm.all_nodes();
    for instance in env.ours().iter().filter(|instance| !instance.state.is_leaving()) {
        let node = instance.tags.get("node").unwrap_or_default();
        let known = nodes.iter().find(|known| known.name.as_str() == node);
        if known.is_none_or(|known| known.state.is_powered_down()) {
            return Err(format!("leak: {} of {node} is {}", instance.id, instance.state));
        }
    }
    for job in env.slurm.all_jobs() {
        let waits = job.state == JobState::Pending && job.reason.is_none();
        if waits {
            return Err(format!("job: {} waits without a reason", job.id));
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
