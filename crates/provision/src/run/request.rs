//! Requests: one plan for each, which is either shown or carried out.

use super::node_set::change_nodes;
use super::rollout::rollout;
use super::start::start;
use super::stop::{stop, stop_all};
use super::{Observation, Run};
use crate::plan::{self, Finish, JobGroup, Plan, Refusal, Resize, Rollout};
use crate::report::Report;
use crate::world::World;
use hostlist::NodeName;
use std::time::Duration;

/// What is asked for.
#[derive(Debug)]
pub enum RunRequest<'a> {
    /// Start nodes. Those that cannot start are returned to Slurm immediately, with the reason.
    Start {
        /// The nodes.
        nodes: &'a [NodeName],
        /// The jobs of the resume file.
        jobs: &'a [JobGroup],
    },
    /// Terminate the instances of nodes.
    Stop {
        /// The nodes.
        nodes: &'a [NodeName],
        /// Why.
        reason: StopReason,
    },
    /// Terminate every instance with the cluster's tags, whether slurmctld answers or not, and repeat until none is left.
    StopAll,
    /// Start the next batch of a rollout, and record it in the rollout.
    Rollout(&'a mut Rollout),
    /// Start persistent nodes that have no instance: these, or all.
    Deploy(Option<&'a [NodeName]>),
    /// Grow or shrink groups of persistent nodes.
    ///
    /// A node leaves slurm.conf only when its instance is confirmed gone. If jobs do not end in time, drained nodes are
    /// returned to service and nothing is deleted.
    Resize(&'a Resize<'a>),
    /// Resize the cluster to the new nodes of slurm.conf: wait for jobs on removed nodes, and start persistent ones.
    ResizeTo(&'a Finish<'a>),
    /// Replace the nodes of slurm.conf.
    Finish(&'a Finish<'a>),
}

/// Why nodes are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Slurm powers them down, whether slurmctld answers or not. A node that Slurm has in service or is starting is skipped,
    /// because the call is outdated.
    PowerDown,
    /// An operator names them: they are stopped if slurmctld reports that they run no job.
    ByHand,
    /// An operator has decided, whatever their state in Slurm. Slurm is not notified: jobs end when slurmctld finds the node
    /// not responding.
    Now,
    /// They never came up. A cool-down starts for them.
    NeverUp,
}

impl StopReason {
    /// Plans the end of nodes.
    pub(super) fn plan(self, nodes: &[NodeName], world: World<'_>) -> Plan {
        match self {
            Self::PowerDown => plan::stop(nodes, world),
            Self::ByHand => plan::stop_by_hand(nodes, world),
            Self::Now => plan::stop_now(nodes, world),
            Self::NeverUp => plan::failed(nodes, world),
        }
    }
}

/// Why there is no plan for a request.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum RequestError {
    /// slurm.conf cannot have these nodes.
    Conf(#[from] slurmconf::Error),
    /// The rollout cannot be done.
    Refused(#[from] Refusal),
}

impl RunRequest<'_> {
    /// The first word of the run in the log of events.
    fn name(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Stop { reason: StopReason::PowerDown | StopReason::ByHand, .. } => "stop",
            Self::Stop { reason: StopReason::Now, .. } => "stop now",
            Self::Stop { reason: StopReason::NeverUp, .. } => "failed",
            Self::StopAll => "stop all",
            Self::Rollout(_) => "rollout",
            Self::Deploy(_) => "deploy",
            Self::Resize(_) | Self::ResizeTo(_) => "resize",
            Self::Finish(_) => "finish",
        }
    }

    /// Plans the request.
    pub(super) fn plan(&self, world: World<'_>) -> Result<Plan, RequestError> {
        Ok(match self {
            Self::Start { nodes, jobs } => plan::start(nodes, jobs, world),
            Self::Stop { nodes, reason } => reason.plan(nodes, world),
            Self::StopAll => plan::stop_all(world),
            Self::Rollout(request) => plan::rollout(request, world)?,
            Self::Deploy(nodes) => plan::deploy(*nodes, world),
            Self::Resize(request) => plan::resize(request, world),
            Self::ResizeTo(request) => plan::resize_to(request, world)?,
            Self::Finish(request) => plan::finish(request, world)?,
        })
    }

    /// How long jobs may take to end. Only an operator waits, so jobs get all of it.
    fn patience(&self) -> Duration {
        match self {
            Self::Resize(request) => request.patience,
            Self::ResizeTo(request) | Self::Finish(request) => request.patience,
            Self::Start { .. }
            | Self::Stop { .. }
            | Self::StopAll
            | Self::Rollout(_)
            | Self::Deploy(_) => Duration::ZERO,
        }
    }
}

/// Observes, and returns the plan that [`execute`] would begin with. Changes nothing.
pub async fn preview(
    run: &Run<'_>,
    request: &RunRequest<'_>,
) -> Result<(Plan, Observation), RequestError> {
    let observation = match request {
        RunRequest::Start { nodes, .. } | RunRequest::Stop { nodes, .. } => {
            run.observe_for(nodes).await
        }
        RunRequest::Rollout(request) => run.observe_rollout(request).await,
        RunRequest::StopAll
        | RunRequest::Deploy(_)
        | RunRequest::Resize(_)
        | RunRequest::ResizeTo(_)
        | RunRequest::Finish(_) => run.observe().await,
    };
    Ok((request.plan(observation.world(run))?, observation))
}

/// Carries out a request, and reports the outcome of each node.
pub async fn execute(run: &Run<'_>, request: RunRequest<'_>) -> Result<Report, RequestError> {
    let begun = run.log_start(request.name());
    let deadline = run.deadline(begun + request.patience());
    let report = match request {
        RunRequest::Start { nodes, jobs } => start(run, nodes, jobs, deadline).await,
        RunRequest::Stop { nodes, reason } => stop(run, nodes, reason, deadline).await,
        RunRequest::StopAll => stop_all(run, deadline).await,
        RunRequest::Rollout(request) => rollout(run, request, deadline).await?,
        RunRequest::Deploy(_)
        | RunRequest::Resize(_)
        | RunRequest::ResizeTo(_)
        | RunRequest::Finish(_) => change_nodes(run, &request, deadline).await?,
    };
    Ok(run.log_end(report, begun))
}
