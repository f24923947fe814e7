//! Carries requests out.

use hostlist::NodeName;
use provision::Report;
use provision::plan::{Finish, JobGroup, Resize, Rollout};
use provision::run::{RequestError, RunRequest, StopReason, execute};
pub(crate) use provision::run::{Run, preview_reconcile, rebuild, reconcile};

pub(crate) async fn start(run: &Run<'_>, nodes: &[NodeName], jobs: &[JobGroup]) -> Report {
    execute(run, RunRequest::Start { nodes, jobs }).await.unwrap()
}

/// As Slurm powers nodes down.
pub(crate) async fn stop(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, RunRequest::Stop { nodes, reason: StopReason::PowerDown }).await.unwrap()
}

pub(crate) async fn stop_now(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, RunRequest::Stop { nodes, reason: StopReason::Now }).await.unwrap()
}

pub(crate) async fn failed(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, RunRequest::Stop { nodes, reason: StopReason::NeverUp }).await.unwrap()
}

pub(crate) async fn stop_all(run: &Run<'_>) -> Report {
    execute(run, RunRequest::StopAll).await.unwrap()
}

pub(crate) async fn deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> Report {
    execute(run, RunRequest::Deploy(nodes)).await.unwrap()
}

pub(crate) async fn resize(run: &Run<'_>, request: &Resize<'_>) -> Report {
    execute(run, RunRequest::Resize(request)).await.unwrap()
}

pub(crate) async fn resize_to(run: &Run<'_>, request: &Finish<'_>) -> Result<Report, RequestError> {
    execute(run, RunRequest::ResizeTo(request)).await
}

pub(crate) async fn finish(run: &Run<'_>, request: &Finish<'_>) -> Result<Report, RequestError> {
    execute(run, RunRequest::Finish(request)).await
}

pub(crate) async fn rollout(run: &Run<'_>, request: &mut Rollout) -> Result<Report, RequestError> {
    execute(run, RunRequest::Rollout(request)).await
}
