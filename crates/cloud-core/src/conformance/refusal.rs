//! Cases about what a cloud says when it cannot or does not.

use super::Condition;
use super::check::{CaseResult, Context, Stop, ensure, ensure_kind};
use crate::{ApiOperation, ErrorKind, Fault, Goal, Instance, WaitOutcome};

/// A launch over the limit is refused as such, and leaves nothing behind.
pub(super) async fn quota(context: &Context<'_>) -> CaseResult {
    refused(context, Condition::NoQuota, ErrorKind::Quota).await
}

/// A launch without capacity is refused as such, and leaves nothing behind.
pub(super) async fn capacity_at_once(context: &Context<'_>) -> CaseResult {
    refused(context, Condition::NoCapacity, ErrorKind::Capacity).await
}

async fn refused(context: &Context<'_>, condition: Condition, kind: ErrorKind) -> CaseResult {
    context.set(condition).await?;
    let error = ensure_kind(context.provider.launch(&context.spec("vm-1")).await, kind)?;
    ensure(error.operation() == ApiOperation::Launch, "the error does not say what was tried")?;
    ensure(error.subject().is_some(), "the error does not say on what")?;
    context.set(Condition::Normal).await?;
    ensure(context.live_named("vm-1").await?.is_empty(), "the refused launch left an instance")
}

/// A launch that is accepted and then finds no capacity is seen to have failed, and why.
pub(super) async fn capacity_later(context: &Context<'_>) -> CaseResult {
    context.set(Condition::NoCapacityLater).await?;
    let launched = context.provider.launch(&context.spec("vm-1")).await?;
    let outcome = context.outcome(&launched.id, Goal::Running).await?;
    let WaitOutcome::Lost(Instance { fault: Some(Fault { kind, .. }), .. }) = outcome else {
        return Err(Stop::Fail(format!("not seen to have failed: {outcome:?}")));
    };
    ensure(kind == ErrorKind::Capacity, format!("failed because of {kind:?}"))?;
    context.provider.terminate(&launched.id).await?;
    context.until_gone(&launched.id).await
}

/// A throttled request is refused as such, or done after a while; in no case twice.
pub(super) async fn throttle(context: &Context<'_>) -> CaseResult {
    context.set(Condition::Throttled).await?;
    let result = context.provider.launch(&context.spec("vm-1")).await;
    context.set(Condition::Normal).await?;
    let expected = match result {
        Ok(_) => 1,
        Err(error) => {
            let throttled = error.kind() == ErrorKind::Throttled;
            ensure(throttled, format!("{error}: should be of kind Throttled"))?;
            0
        }
    };
    let live = context.live_named("vm-1").await?.len();
    ensure(live == expected, format!("{live} instances instead of {expected}"))
}

/// A launch whose answer is lost is either found out about or called ambiguous, and there is one
/// instance, with its tags, for the next look to find.
pub(super) async fn lost_answer_of_a_launch(context: &Context<'_>) -> CaseResult {
    context.set(Condition::ResponseLost(ApiOperation::Launch)).await?;
    let spec = context.with_token(context.spec("vm-1"), "lost");
    if let Err(error) = context.provider.launch(&spec).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    context.set(Condition::Normal).await?;
    let live = context.live_named("vm-1").await?.len();
    ensure(live == 1, format!("{live} instances instead of one"))
}

/// A terminate whose answer is lost is either found out about or called ambiguous, and doing it
/// again is safe.
pub(super) async fn lost_answer_of_a_terminate(context: &Context<'_>) -> CaseResult {
    let id = context.running(&context.spec("vm-1")).await?.id;
    context.set(Condition::ResponseLost(ApiOperation::Terminate)).await?;
    if let Err(error) = context.provider.terminate(&id).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    context.set(Condition::Normal).await?;
    context.provider.terminate(&id).await?;
    context.until_gone(&id).await
}
