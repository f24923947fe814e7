//! Cases about whose an instance is, and which.

use super::Fixture;
use super::check::{Actor, Trial, ensure, skip};
use crate::{Capability, InstanceName, Provider, ProviderExt as _, WaitOutcome};
use std::collections::BTreeSet;

/// The same launch with the same token makes one instance; another token makes another.
pub async fn idempotent_launch(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "idempotent_launch");
    if !provider.capabilities().has(Capability::LaunchToken) {
        return skip("it knows no launch tokens");
    }
    let spec = actor.with_token(actor.spec("vm-1"), "first");
    let first = provider.launch(&spec).await?;
    let again = provider.launch(&spec).await?;
    ensure(first.id == again.id, "a repeated launch answers with another instance")?;
    actor.until_running(&first.id).await?;
    let late = provider.launch(&spec).await?;
    ensure(first.id == late.id, "a launch repeated later answers with another instance")?;
    ensure(actor.live_named("vm-1").await?.len() == 1, "a repeated launch made another instance")?;
    let other = provider.launch(&actor.with_token(spec, "second")).await?;
    ensure(first.id != other.id, "another token answers with the same instance")?;
    actor.until_running(&other.id).await.map(|_instance| ())
}

/// An instance of another cluster with the same name is never returned.
pub async fn tags_isolate_clusters(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "tags_isolate_clusters");
    let theirs = provider.launch(&actor.foreign_spec("vm-1")).await?;
    let ours = provider.launch(&actor.spec("vm-1")).await?;
    // Launched after theirs: when it is listed, theirs could be.
    actor.until_running(&ours.id).await?;
    let name = InstanceName::new("vm-1");
    for filter in [actor.ours(), actor.ours().named(name)] {
        let listed = provider.list(&filter).await?;
        ensure(listed.iter().any(|instance| instance.id == ours.id), "ours is not listed")?;
        ensure(listed.iter().all(|instance| instance.id != theirs.id), "theirs is listed as ours")?;
        let wanted = listed.iter().all(|instance| filter.matches(instance));
        ensure(wanted, "an instance is listed that the filter does not want")?;
    }
    Ok(())
}

/// A name in a filter is neither a prefix nor a pattern.
pub async fn names_match_exactly(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "names_match_exactly");
    let long = provider.launch(&actor.spec("vm-10")).await?;
    let short = actor.running(&actor.spec("vm-1")).await?;
    let listed = provider.list(&actor.ours().named(InstanceName::new("vm-1"))).await?;
    ensure(listed.iter().any(|instance| instance.id == short.id), "it is not found by its name")?;
    ensure(listed.iter().all(|instance| instance.id != long.id), "a longer name matches too")
}

/// A listing has the instances of all pages, each once.
pub async fn paging_beyond_one_page(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "paging_beyond_one_page");
    let Some(many) = fixture.more_than_a_page() else {
        return skip("a page is too long to fill");
    };
    let mut ids = Vec::new();
    for n in 0..many {
        ids.push(provider.launch(&actor.spec(&format!("vm-{n}"))).await?.id);
    }
    let waited = provider.wait_running(&actor.ours(), &ids, fixture.poll()).await;
    let reached = waited.outcomes.values().filter(|o| matches!(o, WaitOutcome::Reached(_))).count();
    ensure(reached == many, format!("{reached} of {many} are seen to run"))?;
    for id in &ids {
        actor.until_listed(id).await?;
    }
    let listed = provider.list(&actor.ours()).await?;
    let different: BTreeSet<_> = listed.iter().map(|instance| &instance.id).collect();
    ensure(different.len() == listed.len(), "an instance is listed twice")?;
    ensure(different == ids.iter().collect(), "not all pages are listed")
}
