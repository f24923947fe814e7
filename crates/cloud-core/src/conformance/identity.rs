//! Cases about whose an instance is, and which.

use super::check::{CaseResult, Context, ensure, skip};
use crate::{Capability, Goal, InstanceName, WaitOutcome, wait_until};
use std::collections::BTreeSet;

/// The same launch with the same token makes one instance; another token makes another.
pub(super) async fn idempotent_launch(context: &Context<'_>) -> CaseResult {
    if !context.provider.describe().can(Capability::LaunchToken) {
        return skip("it knows no launch tokens");
    }
    let spec = context.with_token(context.spec("vm-1"), "first");
    let first = context.provider.launch(&spec).await?;
    let again = context.provider.launch(&spec).await?;
    ensure(first.id == again.id, "a repeated launch answers with another instance")?;
    context.until_running(&first.id).await?;
    let late = context.provider.launch(&spec).await?;
    ensure(first.id == late.id, "a launch repeated later answers with another instance")?;
    ensure(
        context.live_named("vm-1").await?.len() == 1,
        "a repeated launch made another instance",
    )?;
    let other = context.provider.launch(&context.with_token(spec, "second")).await?;
    ensure(first.id != other.id, "another token answers with the same instance")?;
    context.until_running(&other.id).await.map(|_instance| ())
}

/// An instance of another cluster with the same name is never returned.
pub(super) async fn tags_isolate_clusters(context: &Context<'_>) -> CaseResult {
    let theirs = context.provider.launch(&context.foreign_spec("vm-1")).await?;
    let ours = context.provider.launch(&context.spec("vm-1")).await?;
    // Launched after theirs: when it is listed, theirs could be.
    context.until_running(&ours.id).await?;
    let name = InstanceName::new("vm-1");
    for filter in [context.ours(), context.ours().named(name)] {
        let listed = context.provider.list(&filter).await?;
        ensure(listed.iter().any(|instance| instance.id == ours.id), "ours is not listed")?;
        ensure(listed.iter().all(|instance| instance.id != theirs.id), "theirs is listed as ours")?;
        let wanted = listed.iter().all(|instance| filter.matches(instance));
        ensure(wanted, "an instance is listed that the filter does not want")?;
    }
    Ok(())
}

/// A name in a filter is neither a prefix nor a pattern.
pub(super) async fn names_match_exactly(context: &Context<'_>) -> CaseResult {
    let long = context.provider.launch(&context.spec("vm-10")).await?;
    let short = context.running(&context.spec("vm-1")).await?;
    let listed = context.provider.list(&context.ours().named(InstanceName::new("vm-1"))).await?;
    ensure(listed.iter().any(|instance| instance.id == short.id), "it is not found by its name")?;
    ensure(listed.iter().all(|instance| instance.id != long.id), "a longer name matches too")
}

/// A listing has the instances of all pages, each once.
pub(super) async fn paging_beyond_one_page(context: &Context<'_>) -> CaseResult {
    let Some(many) = context.fixture.more_than_a_page() else {
        return skip("a page is too long to fill");
    };
    let mut ids = Vec::new();
    for n in 0..many {
        ids.push(context.provider.launch(&context.spec(&format!("vm-{n}"))).await?.id);
    }
    let waited = wait_until(context.provider, &ids, Goal::Running, context.fixture.poll()).await;
    let reached = waited.outcomes.values().filter(|o| matches!(o, WaitOutcome::Reached(_))).count();
    ensure(reached == many, format!("{reached} of {many} are seen to run"))?;
    for id in &ids {
        context.until_listed(id).await?;
    }
    let listed = context.provider.list(&context.ours()).await?;
    let different: BTreeSet<_> = listed.iter().map(|instance| &instance.id).collect();
    ensure(different.len() == listed.len(), "an instance is listed twice")?;
    ensure(different == ids.iter().collect(), "not all pages are listed")
}
