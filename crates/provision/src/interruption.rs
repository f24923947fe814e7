//! Handles interruptions that the cloud announces to a machine, on that machine.

use crate::failure::chain;
use crate::plan::{PREEMPTED, held, replacement_reason};
use crate::time::Utc;
use cloud_core::{Interruption, InterruptionKind};
use hostlist::{Hostlist, NodeName};
use slurmctl::{
    Controller, Job, JobFilter, JobId, JobState, Node, NodeAction, Reason, Reservation, Result,
};
use std::time::{Duration, SystemTime};
use tokio::time::sleep;

/// How jobs are signalled, and how long a maintenance takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterruptionPolicy {
    /// A signal for jobs before they are requeued, such as `USR1`, and how long they have for it. A process that does
    /// not know the signal ends by it.
    pub signal: Option<(String, Duration)>,
    /// How long a maintenance takes; the cloud only announces its start.
    pub maintenance: Duration,
}

/// The key of a location in a node's free text `extra`.
const LOCATION: &str = "location=";

/// The location that a machine has reported to Slurm, from the widest unit to the narrowest.
pub(crate) fn location_of(node: &Node) -> Vec<String> {
    let text = node.extra.as_deref().and_then(|extra| extra.strip_prefix(LOCATION));
    let units = text.unwrap_or_default().split('/').filter(|unit| !unit.is_empty());
    units.map(str::to_owned).collect()
}

/// Reports the location of a node's machine to Slurm. True if there is nothing more to report.
///
/// The location is in the node's free text `extra`, which outlasts a power-down: a machine without a location clears that of
/// the machine before it. Any other text stays.
pub async fn report_location(
    slurm: &dyn Controller,
    node: &NodeName,
    location: &[String],
) -> Result<bool> {
    let known = slurm.nodes(Some(&[node].into_iter().collect())).await?;
    let Some(known) = known.into_iter().find(|known| known.name == *node) else {
        return Ok(false);
    };
    let extra = known.extra.unwrap_or_default();
    let is_ours = extra.is_empty() || extra.starts_with(LOCATION);
    let wanted = if location.is_empty() {
        String::new()
    } else {
        format!("{LOCATION}{}", location.join("/"))
    };
    if is_ours && extra != wanted {
        slurm.set_extra(node, &wanted).await?;
    }
    Ok(true)
}

/// What is done about an announcement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InterruptionStep {
    /// The node takes no new jobs, and its machine is replaced.
    Drain(Reason),
    /// A job goes back to the queue.
    Requeue(JobId),
    /// No job runs on the node that would last into the maintenance.
    Reserve(Reservation),
    /// The maintenance is over, or called off.
    ReleaseReservation,
}

/// Plans what is done about an announcement; nothing if it is done already, or if Slurm does not use the node.
///
/// A drain of somebody else keeps its reason. Jobs that are gone from the node are not touched.
fn interruption(
    node: &Node,
    jobs: &[Job],
    reservation: Option<&Reservation>,
    announced: Option<Interruption>,
    policy: &InterruptionPolicy,
) -> Vec<InterruptionStep> {
    let state = &node.state;
    let leaves = state.is_powered_down() || state.is_powering_down() || state.is_powering_up();
    match announced {
        None => reservation.map(|_| InterruptionStep::ReleaseReservation).into_iter().collect(),
        Some(_) if leaves => Vec::new(),
        Some(Interruption { kind: InterruptionKind::Preemption, at }) => {
            let text = at.map_or_else(String::new, |at| format!(", due {}", Utc(at)));
            let reason = replacement_reason(&format!("{PREEMPTED}{text}"));
            let free = !state.has_drain() && held(node).is_none();
            let drain = free.then_some(InterruptionStep::Drain(reason));
            let here = jobs.iter().filter(|job| is_on(job, &node.name));
            let requeue = here.map(|job| InterruptionStep::Requeue(job.id));
            // The next machine of the node is another.
            let release = reservation.map(|_| InterruptionStep::ReleaseReservation);
            drain.into_iter().chain(requeue).chain(release).collect()
        }
        Some(Interruption { kind: InterruptionKind::Maintenance, at: None }) => Vec::new(),
        Some(Interruption { kind: InterruptionKind::Maintenance, at: Some(start) }) => {
            let wanted = Reservation {
                node: node.name.clone(),
                start: whole_seconds(start),
                duration: policy.maintenance,
            };
            let is_there = reservation.is_some_and(|known| known.start == wanted.start);
            if is_there { Vec::new() } else { vec![InterruptionStep::Reserve(wanted)] }
        }
    }
}

fn is_on(job: &Job, node: &NodeName) -> bool {
    let here = matches!(job.state, JobState::Running | JobState::Configuring | JobState::Suspended);
    here && job.nodes.contains(node.as_str())
}

/// In whole seconds, as Slurm has it.
fn whole_seconds(at: SystemTime) -> SystemTime {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

/// What [`interrupt`] would do now, a line for each action.
pub async fn preview_interrupt(
    slurm: &dyn Controller,
    node: &NodeName,
    announced: Option<Interruption>,
    policy: &InterruptionPolicy,
) -> Result<Vec<String>> {
    let steps = planned(slurm, node, announced, policy).await?;
    Ok(steps.iter().map(|step| step.text(node)).collect())
}

/// Acts once on an announcement, and returns a line for each action. What fails is tried again the next time.
pub async fn interrupt(
    slurm: &dyn Controller,
    node: &NodeName,
    announced: Option<Interruption>,
    policy: &InterruptionPolicy,
) -> Result<Vec<String>> {
    let steps = planned(slurm, node, announced, policy).await?;
    // Before jobs get their time: no other job is to begin in it.
    let (drains, others): (Vec<_>, Vec<_>) =
        steps.into_iter().partition(|step| matches!(step, InterruptionStep::Drain(_)));
    let mut lines = Vec::new();
    for step in drains {
        lines.push(carry_out(slurm, node, step).await);
    }
    if let Some((signal, grace)) = &policy.signal
        && signal_all(slurm, &others, signal).await
    {
        sleep(*grace).await;
    }
    for step in others {
        lines.push(carry_out(slurm, node, step).await);
    }
    Ok(lines)
}

/// Asks Slurm for the node, its jobs and its reservation, and plans.
async fn planned(
    slurm: &dyn Controller,
    node: &NodeName,
    announced: Option<Interruption>,
    policy: &InterruptionPolicy,
) -> Result<Vec<InterruptionStep>> {
    let list: Hostlist = [node].into_iter().collect();
    let known = slurm.nodes(Some(&list)).await?;
    let Some(known) = known.into_iter().find(|known| known.name == *node) else {
        return Ok(Vec::new());
    };
    let preempted = announced.is_some_and(|it| it.kind == InterruptionKind::Preemption);
    let jobs = if preempted { slurm.jobs(JobFilter::On(list)).await? } else { Vec::new() };
    let reserved = slurm.reservations().await?.into_iter().find(|known| known.node == *node);
    Ok(interruption(&known, &jobs, reserved.as_ref(), announced, policy))
}

/// Signals the jobs that are going to be requeued; true if there are any.
async fn signal_all(slurm: &dyn Controller, steps: &[InterruptionStep], signal: &str) -> bool {
    let mut any = false;
    for step in steps {
        if let InterruptionStep::Requeue(job) = step {
            any = true;
            // The job may have ended.
            let _ = slurm.signal(*job, signal).await;
        }
    }
    any
}

async fn carry_out(slurm: &dyn Controller, node: &NodeName, step: InterruptionStep) -> String {
    let result = match &step {
        InterruptionStep::Drain(reason) => {
            slurm.set_state(&[node].into_iter().collect(), NodeAction::Drain, Some(reason)).await
        }
        InterruptionStep::Requeue(job) => slurm.requeue(*job).await,
        InterruptionStep::Reserve(reservation) => slurm.reserve(reservation).await,
        InterruptionStep::ReleaseReservation => slurm.release_reservation(node).await,
    };
    let text = step.text(node);
    match result {
        Ok(()) => text,
        Err(error) => format!("{text}: not done: {}", chain(&error)),
    }
}

impl InterruptionStep {
    fn text(&self, node: &NodeName) -> String {
        match self {
            Self::Drain(reason) => format!("{node}: {reason}"),
            Self::Requeue(job) => format!("{node}: job {job} requeued"),
            Self::Reserve(reservation) => {
                format!("{node}: reserved for maintenance at {}", Utc(reservation.start))
            }
            Self::ReleaseReservation => {
                format!("{node}: the reservation for maintenance is released")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(state: &str) -> Node {
        Node::new(NodeName::new("n1").unwrap(), state.into())
    }

    fn job(id: u32, nodes: &str, state: JobState) -> Job {
        let mut job = Job::new(JobId::new(id), state);
        job.nodes = nodes.parse().unwrap();
        job
    }

    fn policy() -> InterruptionPolicy {
        InterruptionPolicy { signal: None, maintenance: Duration::from_hours(1) }
    }

    fn steps(node: &Node, jobs: &[Job], announced: Option<Interruption>) -> Vec<String> {
        let steps = interruption(node, jobs, None, announced, &policy());
        steps.into_iter().map(|step| format!("{step:?}")).collect()
    }

    const PREEMPTED: Option<Interruption> =
        Some(Interruption { kind: InterruptionKind::Preemption, at: None });

    #[test]
    fn a_preempted_node_is_drained_once_and_its_jobs_are_requeued() {
        let jobs = [
            job(1, "n[1-2]", JobState::Running),
            job(2, "n2", JobState::Running),
            job(3, "n1", JobState::Completing),
        ];
        let told = steps(&node("MIXED+CLOUD"), &jobs, PREEMPTED);
        assert!(
            told[0].contains("elastic: drained for replacement: preemption notice"),
            "{told:?}"
        );
        assert_eq!(told[1..], ["Requeue(JobId(1))"]);
        let mut drained = node("IDLE+CLOUD+DRAIN");
        drained.reason = Some(slurmctl::NodeReason::new("fan broken"));
        assert!(steps(&drained, &[], PREEMPTED).is_empty(), "somebody else's drain stays");
    }

    #[test]
    fn a_node_that_slurm_lets_go_of_is_left_alone() {
        for state in ["IDLE+CLOUD+POWERING_DOWN", "IDLE+CLOUD+POWERED_DOWN"] {
            assert!(steps(&node(state), &[], PREEMPTED).is_empty(), "{state}");
        }
        assert!(steps(&node("IDLE+CLOUD"), &[], None).is_empty());
    }

    #[test]
    fn a_maintenance_is_reserved_once_and_released_when_it_is_called_off() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(86_400_500);
        let announced = Some(Interruption { kind: InterruptionKind::Maintenance, at: Some(at) });
        let (node, policy) = (node("IDLE+CLOUD"), policy());
        let first = interruption(&node, &[], None, announced, &policy);
        let [InterruptionStep::Reserve(reservation)] = &first[..] else { panic!("{first:?}") };
        assert!(interruption(&node, &[], Some(reservation), announced, &policy).is_empty());
        let gone = interruption(&node, &[], Some(reservation), PREEMPTED, &policy);
        assert!(gone.ends_with(&[InterruptionStep::ReleaseReservation]), "{gone:?}");
        let over = interruption(&node, &[], Some(reservation), None, &policy);
        assert_eq!(over, [InterruptionStep::ReleaseReservation]);
    }
}
