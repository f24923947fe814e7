//! Cases about what a cloud says when it cannot or does not.

use super::check::{Actor, Stop, Trial, ensure, ensure_kind};
use super::{Condition, Fixture};
use crate::{ErrorKind, Fault, Instance, Operation, Provider, WaitOutcome};

/// A launch over the limit is refused as such, and leaves nothing behind.
pub async fn quota(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "quota");
    refused(&actor, Condition::NoQuota, ErrorKind::Quota).await
}

/// A launch without capacity is refused as such, and leaves nothing behind.
pub async fn capacity_at_once(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "capacity_at_once");
    refused(&actor, Condition::NoCapacity, ErrorKind::Capacity).await
}

async fn refused(actor: &Actor<'_>, condition: Condition, kind: ErrorKind) -> Trial {
    actor.set(condition).await?;
    let error = ensure_kind(actor.provider.launch(&actor.spec("vm-1")).await, kind)?;
    ensure(error.operation() == Operation::Launch, "the error does not say what was tried")?;
    ensure(error.subject().is_some(), "the error does not say on what")?;
    actor.set(Condition::Normal).await?;
    ensure(actor.live_named("vm-1").await?.is_empty(), "the refused launch left an instance")
}

/// A launch that is accepted and then finds no capacity is seen to have failed, and why.
pub async fn capacity_later(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "capacity_later");
    actor.set(Condition::NoCapacityLater).await?;
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
pub async fn throttle(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "throttle");
    actor.set(Condition::Throttled).await?;
    let result = provider.launch(&actor.spec("vm-1")).await;
    actor.set(Condition::Normal).await?;
    let expected = match result {
        Ok(_) => 1,
        Err(error) => {
            let throttled = error.kind() == ErrorKind::Throttled;
            ensure(throttled, format!("{error}: should be of kind Throttled"))?;
            0
        }
    };
    let live = actor.live_named("vm-1").await?.len();
    ensure(live == expected, format!("{live} instances instead of {expected}"))
}

/// A launch whose answer is lost is either found out about or called ambiguous, and there is one
/// instance, with its tags, for the next look to find.
pub async fn lost_answer_of_a_launch(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "lost_answer_of_a_launch");
    actor.set(Condition::ResponseLost(Operation::Launch)).await?;
    let spec = actor.with_token(actor.spec("vm-1"), "lost");
    if let Err(error) = provider.launch(&spec).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    actor.set(Condition::Normal).await?;
    let live = actor.live_named("vm-1").await?.len();
    ensure(live == 1, format!("{live} instances instead of one"))
}

/// A terminate whose answer is lost is either found out about or called ambiguous, and doing it
/// again is safe.
pub async fn lost_answer_of_a_terminate(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "lost_answer_of_a_terminate");
    let id = actor.running(&actor.spec("vm-1")).await?.id;
    actor.set(Condition::ResponseLost(Operation::Terminate)).await?;
    if let Err(error) = provider.terminate(&id).await {
        let ambiguous = error.kind() == ErrorKind::Ambiguous;
        ensure(ambiguous, format!("{error}: should be of kind Ambiguous"))?;
    }
    actor.set(Condition::Normal).await?;
    provider.terminate(&id).await?;
    actor.until_gone(&id).await
}
