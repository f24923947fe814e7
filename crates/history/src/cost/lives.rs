//! Machines and jobs from the log of events.

use super::attribute::{JobRun, Owner, PaidMachine};
use super::calendar::Millis;
use crate::Lives;

/// The machines of a log. `cpus` returns the number of CPUs of a node, and `shape` its shape if the log does not have it.
///
/// A machine of an unknown shape gets the shape `unknown`, which has no price.
#[must_use]
pub fn machines(
    lives: &Lives,
    now: Millis,
    cpus: impl Fn(&str) -> u32,
    shape: impl Fn(&str) -> Option<String>,
) -> Vec<PaidMachine> {
    let mut machines = Vec::new();
    for life in &lives.lives {
        let Some((from, until)) = life.machine(now) else { continue };
        let node = life.node.clone().unwrap_or_default();
        let known = life.place.shape.clone().or_else(|| shape(&node));
        let mut shape = known.unwrap_or_else(|| "unknown".to_owned());
        if life.place.preemptible {
            shape.push_str(" preemptible");
        }
        let (cpus, zone) = (cpus(&node), life.place.zone.clone());
        machines.push(PaidMachine { node, shape, zone, cpus, from, until });
    }
    machines
}

/// The runs of jobs, for a cluster without accounting. The log does not have the CPUs of a job, so jobs on a node at the
/// same time share it evenly.
#[must_use]
pub fn runs(lives: &Lives, now: Millis, owner: impl Fn(u32) -> Owner) -> Vec<JobRun> {
    let mut runs = Vec::new();
    for life in &lives.lives {
        let Some(node) = &life.node else { continue };
        for work in &life.work {
            let count = u64::try_from(work.jobs.len()).unwrap_or(u64::MAX).max(1);
            for job in &work.jobs {
                // More CPUs than any machine has, so that jobs use all of it together.
                let share = u64::from(u32::MAX) / count;
                let nodes = vec![(node.clone(), share)];
                let until = work.to.unwrap_or(now);
                runs.push(JobRun { owner: owner(*job), nodes, from: work.from, until });
            }
        }
    }
    runs
}
