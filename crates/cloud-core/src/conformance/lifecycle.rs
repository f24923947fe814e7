//! Cases about the life of an instance and what it can be made of.

use super::check::{CaseResult, Context, Stop, ensure, ensure_kind, skip};
use crate::{
    Capability, Error, ErrorKind, FaultDomain, Goal, ImageFilter, ImageName, Instance,
    InstanceSpec, InstanceState, Reboot, WaitOutcome, wait_until,
};
use std::collections::BTreeSet;

/// An instance is launched, shows up in listings with all its tags, runs, and goes.
pub(super) async fn launch_list_get_terminate(context: &Context<'_>) -> CaseResult {
    let spec = context.spec("vm-1");
    let launched = context.provider.launch(&spec).await?;
    ensure(launched.name == spec.name, "the answer to the launch has another name")?;
    let running = context.until_running(&launched.id).await?;
    let got = context.provider.get(&launched.id).await?;
    for (instance, source) in [(&running, "list"), (&got, "get")] {
        ensure(instance.id == launched.id, format!("{source} shows another id"))?;
        ensure(instance.name == spec.name, format!("{source} shows another name"))?;
        ensure(instance.tags.include(&spec.tags), format!("{source} does not show all tags"))?;
        ensure(instance.state == InstanceState::Running, format!("{source} shows another state"))?;
        let image = instance.image.as_ref().is_none_or(|image| *image == spec.image);
        ensure(image, format!("{source} shows another image"))?;
    }
    context.provider.terminate(&launched.id).await?;
    context.until_gone(&launched.id).await?;
    let mut patience = context.patience();
    loop {
        let listed = context.provider.list(&context.ours()).await?;
        if listed.iter().all(|instance| !instance.state.is_live()) {
            return Ok(());
        }
        if !patience.lasts().await {
            return Err(Stop::Fail("it is still listed as live".to_owned()));
        }
    }
}

/// Launches of one call have results of their own, in their order, and are listed with their own names and tags.
pub(super) async fn many_launches_have_their_own_results(context: &Context<'_>) -> CaseResult {
    let specs = ["vm-1", "vm-2", "vm-3"].map(|name| context.spec(name));
    let results = context.provider.launch_many(&specs).await;
    ensure(results.len() == specs.len(), format!("{} results of 3 launches", results.len()))?;
    for (spec, result) in specs.iter().zip(results) {
        let launched = result?;
        let listed = context.until_running(&launched.id).await?;
        let same = launched.name == spec.name && listed.name == spec.name;
        ensure(same, format!("{} has the result of another launch", spec.name))?;
        ensure(listed.tags.include(&spec.tags), format!("{} has other tags", spec.name))?;
    }
    let all = context.provider.list(&context.ours()).await?;
    ensure(all.len() == specs.len(), format!("{} instances instead of 3", all.len()))
}

/// Terminating again, while it goes and when it is gone, is a success and changes nothing.
pub(super) async fn terminate_twice(context: &Context<'_>) -> CaseResult {
    let id = context.running(&context.spec("vm-1")).await?.id;
    context.provider.terminate(&id).await?;
    context.provider.terminate(&id).await?;
    context.until_gone(&id).await?;
    context.provider.terminate(&id).await?;
    Ok(())
}

/// What is not there is not found, except to be terminated.
pub(super) async fn not_found(context: &Context<'_>) -> CaseResult {
    let id = context.fixture.absent();
    ensure_kind(context.provider.get(&id).await, ErrorKind::NotFound)?;
    ensure_kind(context.provider.reboot(&id, Reboot::Hard).await, ErrorKind::NotFound)?;
    let addresses = context.provider.addresses(std::slice::from_ref(&id)).await?;
    ensure(addresses.is_empty(), "an address of an instance that is not there")?;
    context.provider.terminate(&id).await?;
    Ok(())
}

/// Addresses come, late perhaps, each its own, and the same by every way.
pub(super) async fn address_wait(context: &Context<'_>) -> CaseResult {
    let mut ids = Vec::new();
    for name in ["vm-1", "vm-2"] {
        ids.push(context.provider.launch(&context.spec(name)).await?.id);
    }
    let waited = wait_until(context.provider, &ids, Goal::Addressed, context.fixture.poll()).await;
    let addresses = context.provider.addresses(&ids).await?;
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
pub(super) async fn rebuild_keeps_identity_and_changes_image(context: &Context<'_>) -> CaseResult {
    if !context.provider.describe().can(Capability::Rebuild) {
        return skip("it cannot rebuild");
    }
    let before = context.addressed(&context.spec("vm-1")).await?;
    let image = context.fixture.other_image();
    context.provider.rebuild(&before.id, &image).await?;
    let after = context.reached(&before.id, Goal::RunningImage(&image)).await?;
    ensure(after.image == Some(image), "it does not have the new image")?;
    ensure_same(context, &before, &after).await
}

/// A rebooted instance comes back, and is the same.
pub(super) async fn reboot_keeps_identity(context: &Context<'_>) -> CaseResult {
    let before = context.addressed(&context.spec("vm-1")).await?;
    let soft = context.provider.describe().can(Capability::SoftReboot);
    for how in [Some(Reboot::Hard), soft.then_some(Reboot::Soft)].into_iter().flatten() {
        let boots = context.fixture.boots(&before.id);
        context.provider.reboot(&before.id, how).await?;
        let after = context.reached(&before.id, Goal::Running).await?;
        let booted = boots.is_none_or(|boots| context.fixture.boots(&before.id) > Some(boots));
        ensure(booted, format!("{how:?}: it has not booted"))?;
        ensure(after.image == before.image, "it has another image")?;
        ensure_same(context, &before, &after).await?;
    }
    Ok(())
}

/// An instance can be stopped, keeps its identity, and runs again once it is started.
pub(super) async fn start_after_stop(context: &Context<'_>) -> CaseResult {
    if !context.provider.describe().can(Capability::Stop) {
        return skip("it cannot stop");
    }
    let before = context.addressed(&context.spec("vm-1")).await?;
    context.provider.stop(&before.id).await?;
    let mut patience = context.patience();
    while context.provider.get(&before.id).await?.state != InstanceState::Stopped {
        ensure(patience.lasts().await, "it does not stop")?;
    }
    context.provider.start(&before.id).await?;
    let after = context.reached(&before.id, Goal::Running).await?;
    ensure_same(context, &before, &after).await
}

/// A snapshot becomes an image that can be found by its name and used; the image is left there.
pub(super) async fn snapshot_makes_an_image(context: &Context<'_>) -> CaseResult {
    if !context.provider.describe().can(Capability::Snapshot) {
        return skip("it cannot make snapshots");
    }
    let instance = context.running(&context.spec("vm-1")).await?;
    let name = ImageName::new("snapshot_makes_an_image");
    let id = context.provider.snapshot(&instance.id, &name).await?;
    let filter = ImageFilter { name: Some(name), ..ImageFilter::default() };
    let mut patience = context.patience();
    while patience.lasts().await {
        let images = context.provider.images(&filter).await?;
        if images.iter().any(|image| image.id == id && image.available) {
            return Ok(());
        }
    }
    Err(Stop::Fail(format!("the image {id} does not come")))
}

/// Shapes and images list what a launch uses, and an image's name is matched exactly.
pub(super) async fn catalog_knows_what_can_be_launched(context: &Context<'_>) -> CaseResult {
    if !context.provider.describe().can(Capability::Catalog) {
        return skip("it lists no shapes and images");
    }
    let spec = context.fixture.spec("vm-1");
    let shapes = context.provider.shapes().await?;
    ensure(shapes.iter().any(|shape| shape.offers(&spec.shape)), "no such shape is listed")?;
    let images = context.provider.images(&ImageFilter::default()).await?;
    let Some(image) = images.iter().find(|image| image.id == spec.image) else {
        return Err(Stop::Fail("no such image is listed".to_owned()));
    };
    let filter = ImageFilter { name: Some(image.name.clone()), ..ImageFilter::default() };
    let named = context.provider.images(&filter).await?;
    ensure(named.iter().any(|named| named.id == image.id), "the image is not found by its name")?;
    ensure(named.iter().all(|named| named.name == image.name), "an image of another name")
}

/// What a cloud says it cannot do is answered with [`ErrorKind::Unsupported`], and what it says
/// it can do is not; where that has a case of its own, it is not tried again here.
pub(super) async fn missing_capabilities_are_typed(context: &Context<'_>) -> CaseResult {
    let id = context.running(&context.spec("vm-1")).await?.id;
    let capabilities = context.provider.describe().capabilities;
    let name = ImageName::new("missing_capabilities_are_typed");
    let missing = |capability| !capabilities.has(capability);
    let mut responses = vec![(Capability::Limits, context.provider.limits().await.err())];
    if missing(Capability::Rebuild) {
        let error = context.provider.rebuild(&id, &context.fixture.other_image()).await.err();
        responses.push((Capability::Rebuild, error));
    }
    if missing(Capability::SoftReboot) {
        responses
            .push((Capability::SoftReboot, context.provider.reboot(&id, Reboot::Soft).await.err()));
    }
    if missing(Capability::Stop) {
        responses.push((Capability::Stop, context.provider.stop(&id).await.err()));
        responses.push((Capability::Stop, context.provider.start(&id).await.err()));
    }
    if missing(Capability::Snapshot) {
        responses.push((Capability::Snapshot, context.provider.snapshot(&id, &name).await.err()));
    }
    let mut preemptible = context.spec("vm-2");
    preemptible.preemptible = true;
    responses.push((Capability::Preemptible, tried(context, &preemptible).await?));
    let mut placed = context.spec("vm-3");
    placed.fault_domain = Some(FaultDomain::new("1"));
    responses.push((Capability::FaultDomain, tried(context, &placed).await?));
    for (capability, error) in responses {
        let unsupported = error.is_some_and(|error| error.kind() == ErrorKind::Unsupported);
        let wrong = format!("{capability:?}: what it says and what it does are two things");
        ensure(unsupported == missing(capability), wrong)?;
    }
    Ok(())
}

/// The error of a launch; what it launches is terminated.
async fn tried(context: &Context<'_>, spec: &InstanceSpec) -> CaseResult<Option<Error>> {
    match context.provider.launch(spec).await {
        Ok(instance) => {
            context.provider.terminate(&instance.id).await?;
            Ok(None)
        }
        Err(error) => Ok(Some(error)),
    }
}

/// Checks that id, name, tags and address are as before.
async fn ensure_same(context: &Context<'_>, before: &Instance, after: &Instance) -> CaseResult {
    ensure(after.id == before.id, "it has another id")?;
    ensure(after.name == before.name, "it has another name")?;
    ensure(after.tags == before.tags, "it has other tags")?;
    let now = context.reached(&before.id, Goal::Addressed).await?;
    let same = before.address.is_none_or(|address| now.address == Some(address));
    ensure(same, "it has another address")
}
