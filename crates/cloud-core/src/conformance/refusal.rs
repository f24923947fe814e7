//! Cases about what a cloud says when it cannot or does not.

use super::check::{Actor, Stop, Trial, ensure, ensure_kind};
use super::{Scene, Stage};
use crate::{Advice, ErrorKind, Fault, Instance, Operation, Provider, WaitOutcome};

/// A launch over the limit is refused as such, and leaves nothing behind.
pub async fn quota(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "quota");
    refused(&actor, Scene::NoQuota, ErrorKind::Quota).await
}

/// A launch without capacity is refused as such, and leaves nothing behind.
pub async fn capacity_at_once(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "capacity_at_once");
    refused(&actor, Scene::NoCapacity, ErrorKind::Capacity).await
}

async fn refused(actor: &Actor<'_>, scene: Scene, kind: ErrorKind) -> Trial {
    actor.set(scene).await?;
    let error = ensure_kind(actor.provider.launch(&actor.spec("vm-1")).await, kind)?;
    ensure(error.operation() == Operation::Launch, "the error does not say what was tried")?;
    ensure(error.subject().is_some(), "the error does not say on what")?;
    actor.set(Scene::Normal).await?;
    ensure(actor.live_named("vm-1").await?.is_empty(), "the refused launch left an instance")
}

/// A launch that is accepted and then finds no capacity is seen to have failed, and why.
pub async fn capacity_later(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "capacity_later");
    actor.set(Scene::NoCapacityLater).await?;
    let launched = provider.launch(&actor.spec("vm-1")).await?;
    let outcome = actor.outcome(&launched.id).await?;
    let WaitOutcome::Lost(Instance { fault: Some(Fault { kind, .. }), .. }) = outcome else {
        return Err(Stop::Fail(format!("not seen to have failed: {outcome:?}")));
    };
    ensure(kind == ErrorKind::Capacity, format!("failed because of {kind:?}"))?;
    provider.terminate(&launched.id).await?;
    actor.until_gone(&launched.id).await
}

/// A throttled request is refused as such, or done after a while; in no case twice.
pub async fn throttle(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "throttle");
    actor.set(Scene::Throttled).await?;
    let result = provider.launch(&actor.spec("vm-1")).await;
    actor.set(Scene::Normal).await?;
    let expected = match result {
        Ok(_) => 1,
        Err(error) => {
            let throttled = error.kind() == ErrorKind::Throttled;
            ensure(throttled, format!("{error}: should be of kind Throttled"))?;
            ensure(error.advice() == Advice::RetryAfter, "the advice is not to try again")?;
            0
        }
    };
    let live = actor.live_named("vm-1").await?.len();
    ensure(live == expected, format!("{live} instances instead of {expected}"))
}

/// A launch whose answer is lost is either found out about or called ambiguous, and there is one
/// instance, with its tags, for the next look to find.
pub async fn lost_answer_of_a_launch(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "lost_answer_of_a_launch");
    actor.set(Scene::AnswerLost(Operation::Launch)).await?;
    let spec = actor.with_token(actor.spec("vm-1"), "lost");
    if let Err(error) = provider.launch(&spec).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    actor.set(Scene::Normal).await?;
    let live = actor.live_named("vm-1").await?.len();
    ensure(live == 1, format!("{live} instances instead of one"))
}

/// A terminate whose answer is lost is either found out about or called ambiguous, and doing it
/// again is safe.
pub async fn lost_answer_of_a_terminate(provider: &dyn Provider, stage: &dyn Stage) -> Trial {
    let actor = Actor::new(provider, stage, "lost_answer_of_a_terminate");
    let id = actor.running(&actor.spec("vm-1")).await?.id;
    actor.set(Scene::AnswerLost(Operation::Terminate)).await?;
    if let Err(error) = provider.terminate(&id).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    actor.set(Scene::Normal).await?;
    provider.terminate(&id).await?;
    actor.until_gone(&id).await
}
