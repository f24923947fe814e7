//! Previews of runs. Each observes and plans like the run, and changes nothing.

use super::{Observation, Run};
use crate::plan::{self, Finish, JobGroup, Plan, Refusal, Resize, Rollout};
use hostlist::NodeName;

/// What [`start`](super::start()) would do now.
pub async fn preview_start(
    run: &Run<'_>,
    nodes: &[NodeName],
    jobs: &[JobGroup],
) -> (Plan, Observation) {
    let observation = run.observe_for(nodes).await;
    (plan::start(nodes, jobs, observation.world(run)), observation)
}

/// What [`failed`](super::failed) would do now.
pub async fn preview_failed(run: &Run<'_>, nodes: &[NodeName]) -> (Plan, Observation) {
    let observation = run.observe_for(nodes).await;
    (plan::failed(nodes, observation.world(run)), observation)
}

/// What [`deploy`](super::deploy) would do now.
pub async fn preview_deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> (Plan, Observation) {
    let observation = run.observe().await;
    (plan::deploy(nodes, observation.world(run)), observation)
}

/// What [`stop`](super::stop()) would do now.
pub async fn preview_stop(run: &Run<'_>, nodes: &[NodeName]) -> (Plan, Observation) {
    let observation = run.observe_for(nodes).await;
    (plan::stop(nodes, observation.world(run)), observation)
}

/// What [`stop_by_hand`](super::stop_by_hand) would do now.
pub async fn preview_stop_by_hand(run: &Run<'_>, nodes: &[NodeName]) -> (Plan, Observation) {
    let observation = run.observe_for(nodes).await;
    (plan::stop_by_hand(nodes, observation.world(run)), observation)
}

/// What [`stop_now`](super::stop_now) would do now.
pub async fn preview_stop_now(run: &Run<'_>, nodes: &[NodeName]) -> (Plan, Observation) {
    let observation = run.observe_for(nodes).await;
    (plan::stop_now(nodes, observation.world(run)), observation)
}

/// What [`stop_all`](super::stop_all) would do now.
pub async fn preview_stop_all(run: &Run<'_>) -> (Plan, Observation) {
    let observation = run.observe().await;
    (plan::stop_all(observation.world(run)), observation)
}

/// What [`resize`](super::resize) would do now.
pub async fn preview_resize(run: &Run<'_>, request: &Resize<'_>) -> (Plan, Observation) {
    let observation = run.observe().await;
    (plan::resize(request, observation.world(run)), observation)
}

/// What [`resize_to`](super::resize_to) would do now.
pub async fn preview_resize_to(
    run: &Run<'_>,
    request: &Finish<'_>,
) -> slurmconf::Result<(Plan, Observation)> {
    let observation = run.observe().await;
    Ok((plan::resize_to(request, observation.world(run))?, observation))
}

/// What [`finish`](super::finish) would do now.
pub async fn preview_finish(
    run: &Run<'_>,
    request: &Finish<'_>,
) -> slurmconf::Result<(Plan, Observation)> {
    let observation = run.observe().await;
    Ok((plan::finish(request, observation.world(run))?, observation))
}

/// What [`rollout`](super::rollout()) would do now.
pub async fn preview_rollout(
    run: &Run<'_>,
    request: &Rollout,
) -> Result<(Plan, Observation), Refusal> {
    let observation = run.observe_rollout(request).await;
    Ok((plan::rollout(request, observation.world(run))?, observation))
}
