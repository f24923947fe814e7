//! Carries requests out.

use hostlist::NodeName;
use provision::Report;
use provision::plan::{Finish, JobGroup, Resize, Rollout};
use provision::run::{Request, RequestError, StopReason, execute};
pub(crate) use provision::run::{Run, preview_reconcile, rebuild, reconcile};

pub(crate) async fn start(run: &Run<'_>, nodes: &[NodeName], jobs: &[JobGroup]) -> Report {
    execute(run, Request::Start { nodes, jobs }).await.unwrap()
}

/// As Slurm powers nodes down.
pub(crate) async fn stop(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, Request::Stop { nodes, reason: StopReason::PowerDown }).await.unwrap()
}

pub(crate) async fn stop_now(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, Request::Stop { nodes, reason: StopReason::Now }).await.unwrap()
}

pub(crate) async fn failed(run: &Run<'_>, nodes: &[NodeName]) -> Report {
    execute(run, Request::Stop { nodes, reason: StopReason::NeverUp }).await.unwrap()
}

pub(crate) async fn stop_all(run: &Run<'_>) -> Report {
    execute(run, Request::StopAll).await.unwrap()
}

pub(crate) async fn deploy(run: &Run<'_>, nodes: Option<&[NodeName]>) -> Report {
    execute(run, Request::Deploy(nodes)).await.unwrap()
}

pub(crate) async fn resize(run: &Run<'_>, request: &Resize<'_>) -> Report {
    execute(run, Request::Resize(request)).await.unwrap()
}

pub(crate) async fn resize_to(run: &Run<'_>, request: &Finish<'_>) -> Result<Report, RequestError> {
    execute(run, Request::ResizeTo(request)).await
}

pub(crate) async fn finish(run: &Run<'_>, request: &Finish<'_>) -> Result<Report, RequestError> {
    execute(run, Request::Finish(request)).await
}

pub(crate) async fn rollout(run: &Run<'_>, request: &mut Rollout) -> Result<Report, RequestError> {
    execute(run, Request::Rollout(request)).await
}
