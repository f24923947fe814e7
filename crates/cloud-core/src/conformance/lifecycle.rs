//! Cases about the life of an instance and what it can be made of.

use super::check::{Actor, Stop, Trial, ensure, ensure_kind, outcome_of, skip};
use super::{Condition, Fixture};
use crate::{
    Capability, Error, ErrorKind, FaultDomain, ImageFilter, ImageId, ImageName, Instance,
    InstanceId, InstanceSpec, InstanceState, Provider, ProviderExt as _, Reboot, WaitOutcome,
};
use std::collections::BTreeSet;

/// An instance is launched, shows up in listings with all its tags, runs, and goes.
pub async fn launch_list_get_terminate(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "launch_list_get_terminate");
    let spec = actor.spec("vm-1");
    let launched = provider.launch(&spec).await?;
    ensure(launched.name == spec.name, "the answer to the launch has another name")?;
    let running = actor.until_running(&launched.id).await?;
    let got = provider.get(&launched.id).await?;
    for (instance, source) in [(&running, "list"), (&got, "get")] {
        ensure(instance.id == launched.id, format!("{source} shows another id"))?;
        ensure(instance.name == spec.name, format!("{source} shows another name"))?;
        ensure(instance.tags.include(&spec.tags), format!("{source} does not show all tags"))?;
        ensure(instance.state == InstanceState::Running, format!("{source} shows another state"))?;
        let image = instance.image.as_ref().is_none_or(|image| *image == spec.image);
        ensure(image, format!("{source} shows another image"))?;
    }
    provider.terminate(&launched.id).await?;
    actor.until_gone(&launched.id).await?;
    let left = provider.list(&actor.ours()).await?;
    ensure(left.iter().all(|instance| !instance.state.is_live()), "it is still listed as live")
}

/// Terminating again, while it goes and when it is gone, is a success and changes nothing.
pub async fn terminate_twice(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "terminate_twice");
    let id = actor.running(&actor.spec("vm-1")).await?.id;
    provider.terminate(&id).await?;
    provider.terminate(&id).await?;
    actor.until_gone(&id).await?;
    provider.terminate(&id).await?;
    Ok(())
}

/// What is not there is not found, except to be terminated.
pub async fn not_found(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let id = fixture.absent();
    ensure_kind(provider.get(&id).await, ErrorKind::NotFound)?;
    ensure_kind(provider.reboot(&id, Reboot::Hard).await, ErrorKind::NotFound)?;
    let addresses = provider.addresses(std::slice::from_ref(&id)).await?;
    ensure(addresses.is_empty(), "an address of an instance that is not there")?;
    provider.terminate(&id).await?;
    Ok(())
}

/// Addresses come, late perhaps, each its own, and the same by every way.
pub async fn address_wait(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "address_wait");
    let mut ids = Vec::new();
    for name in ["vm-1", "vm-2"] {
        ids.push(provider.launch(&actor.spec(name)).await?.id);
    }
    let waited = provider.wait_address(&actor.ours(), &ids, fixture.poll()).await;
    let addresses = provider.addresses(&ids).await?;
    for (id, outcome) in &waited.outcomes {
        let WaitOutcome::Reached(Instance { address: Some(address), .. }) = outcome else {
            return Err(Stop::Fail(format!("{id} gets no address: {outcome:?}")));
        };
        ensure(addresses.get(id) == Some(address), format!("two addresses of {id}"))?;
    }
    let different: BTreeSet<_> = addresses.values().collect();
    ensure(different.len() == ids.len(), "two instances with one address")
}

/// A rebuilt instance has the new image and is otherwise the same.
pub async fn rebuild_keeps_identity_and_changes_image(
    provider: &dyn Provider,
    fixture: &dyn Fixture,
) -> Trial {
    let actor = Actor::new(provider, fixture, "rebuild_keeps_identity_and_changes_image");
    if !provider.capabilities().has(Capability::Rebuild) {
        return skip("it cannot rebuild");
    }
    let before = actor.addressed(&actor.spec("vm-1")).await?;
    let image = fixture.other_image();
    provider.rebuild(&before.id, &image).await?;
    let after = back(&actor, &before.id, Some(&image)).await?;
    ensure(after.image == Some(image), "it does not have the new image")?;
    ensure_same(&actor, &before, &after).await
}

/// A rebooted instance comes back, and is the same.
pub async fn reboot_keeps_identity(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "reboot_keeps_identity");
    let before = actor.addressed(&actor.spec("vm-1")).await?;
    let soft = provider.capabilities().has(Capability::SoftReboot);
    for how in [Some(Reboot::Hard), soft.then_some(Reboot::Soft)].into_iter().flatten() {
        let boots = fixture.boots(&before.id);
        provider.reboot(&before.id, how).await?;
        let after = back(&actor, &before.id, None).await?;
        let booted = boots.is_none_or(|boots| fixture.boots(&before.id) > Some(boots));
        ensure(booted, format!("{how:?}: it has not booted"))?;
        ensure(after.image == before.image, "it has another image")?;
        ensure_same(&actor, &before, &after).await?;
    }
    Ok(())
}

/// A stopped instance is seen to be stopped, can be started, and runs again.
pub async fn start_after_stop(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "start_after_stop");
    if !provider.capabilities().has(Capability::Start) {
        return skip("it cannot start");
    }
    let before = actor.addressed(&actor.spec("vm-1")).await?;
    actor.set(Condition::Stopped(before.id.clone())).await?;
    let stopped = provider.get(&before.id).await?;
    ensure(stopped.state == InstanceState::Stopped, format!("stopped, but {}", stopped.state))?;
    provider.start(&before.id).await?;
    let after = back(&actor, &before.id, None).await?;
    ensure_same(&actor, &before, &after).await
}

/// A snapshot becomes an image that can be found by its name and used; the image is left there.
pub async fn snapshot_makes_an_image(provider: &dyn Provider, fixture: &dyn Fixture) -> Trial {
    let actor = Actor::new(provider, fixture, "snapshot_makes_an_image");
    if !provider.capabilities().has(Capability::Snapshot) {
        return skip("it cannot make snapshots");
    }
    let instance = actor.running(&actor.spec("vm-1")).await?;
    let name = ImageName::new("snapshot_makes_an_image");
    let id = provider.snapshot(&instance.id, &name).await?;
    let filter = ImageFilter { name: Some(name), ..ImageFilter::default() };
    let mut patience = actor.patience();
    while patience.lasts().await {
        let images = provider.images(&filter).await?;
        if images.iter().any(|image| image.id == id && image.available) {
            return Ok(());
        }
    }
    Err(Stop::Fail(format!("the image {id} does not come")))
}

/// Shapes and images list what a launch uses, and an image's name is matched exactly.
pub async fn catalog_knows_what_can_be_launched(
    provider: &dyn Provider,
    fixture: &dyn Fixture,
) -> Trial {
    let spec = fixture.spec("vm-1");
    let shapes = provider.shapes().await?;
    ensure(shapes.iter().any(|shape| shape.name == spec.shape), "no such shape is listed")?;
    let images = provider.images(&ImageFilter::default()).await?;
    let Some(image) = images.iter().find(|image| image.id == spec.image) else {
        return Err(Stop::Fail("no such image is listed".to_owned()));
    };
    let filter = ImageFilter { name: Some(image.name.clone()), ..ImageFilter::default() };
    let named = provider.images(&filter).await?;
    ensure(named.iter().any(|named| named.id == image.id), "the image is not found by its name")?;
    ensure(named.iter().all(|named| named.name == image.name), "an image of another name")
}

/// What a cloud says it cannot do is answered with [`ErrorKind::Unsupported`], and what it says
/// it can do is not; where that has a case of its own, it is not tried again here.
pub async fn missing_capabilities_are_typed(
    provider: &dyn Provider,
    fixture: &dyn Fixture,
) -> Trial {
    let actor = Actor::new(provider, fixture, "missing_capabilities_are_typed");
    let id = actor.running(&actor.spec("vm-1")).await?.id;
    let capabilities = provider.capabilities();
    let name = ImageName::new("missing_capabilities_are_typed");
    let missing = |capability| !capabilities.has(capability);
    let mut responses = vec![(Capability::Limits, provider.limits().await.err())];
    if missing(Capability::Rebuild) {
        let error = provider.rebuild(&id, &fixture.other_image()).await.err();
        responses.push((Capability::Rebuild, error));
    }
    if missing(Capability::SoftReboot) {
        responses.push((Capability::SoftReboot, provider.reboot(&id, Reboot::Soft).await.err()));
    }
    if missing(Capability::Start) {
        responses.push((Capability::Start, provider.start(&id).await.err()));
    }
    if missing(Capability::Snapshot) {
        responses.push((Capability::Snapshot, provider.snapshot(&id, &name).await.err()));
    }
    let mut preemptible = actor.spec("vm-2");
    preemptible.preemptible = true;
    responses.push((Capability::Preemptible, tried(&actor, &preemptible).await?));
    let mut placed = actor.spec("vm-3");
    placed.fault_domain = Some(FaultDomain::new("1"));
    responses.push((Capability::FaultDomain, tried(&actor, &placed).await?));
    for (capability, error) in responses {
        let unsupported = error.is_some_and(|error| error.kind() == ErrorKind::Unsupported);
        let wrong = format!("{capability:?}: what it says and what it does are two things");
        ensure(unsupported == missing(capability), wrong)?;
    }
    Ok(())
}

/// The error of a launch; what it launches is terminated.
async fn tried(actor: &Actor<'_>, spec: &InstanceSpec) -> Trial<Option<Error>> {
    match actor.provider.launch(spec).await {
        Ok(instance) => {
            actor.provider.terminate(&instance.id).await?;
            Ok(None)
        }
        Err(error) => Ok(Some(error)),
    }
}

/// Waits until it is back, with this image if one is given.
async fn back(actor: &Actor<'_>, id: &InstanceId, image: Option<&ImageId>) -> Trial<Instance> {
    let ids = std::slice::from_ref(id);
    let mut waited = actor.provider.wait_back(ids, image, actor.fixture.poll()).await;
    match outcome_of(&mut waited, id)? {
        WaitOutcome::Reached(instance) => Ok(instance),
        other => Err(Stop::Fail(format!("{id} does not come back: {other:?}"))),
    }
}

/// The same id, name, tags and address as before.
async fn ensure_same(actor: &Actor<'_>, before: &Instance, after: &Instance) -> Trial {
    ensure(after.id == before.id, "it has another id")?;
    ensure(after.name == before.name, "it has another name")?;
    ensure(after.tags == before.tags, "it has other tags")?;
    let ids = std::slice::from_ref(&before.id);
    let waited = actor.provider.wait_address(&actor.ours(), ids, actor.fixture.poll()).await;
    let Some(WaitOutcome::Reached(now)) = waited.outcomes.get(&before.id) else {
        return Err(Stop::Fail("it has no address any more".to_owned()));
    };
    let same = before.address.is_none_or(|address| now.address == Some(address));
    ensure(same, "it has another address")
}
