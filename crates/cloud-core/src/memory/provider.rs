//! [`MemoryCloud`] as a [`Provider`].

use super::cloud::{Call, MemoryCloud};
use super::fault::InjectedFault;
use crate::clock::after;
use crate::{
    ApiOperation, Capability, Description, Error, ErrorKind, Image, ImageFilter, ImageId,
    ImageName, Instance, InstanceFilter, InstanceId, InstanceSpec, InstanceState, Limit, Provider,
    Reboot, Result, Shape,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The states of an instance that boots.
const BOOT: [InstanceState; 2] = [InstanceState::Pending, InstanceState::Running];

#[async_trait]
impl Provider for MemoryCloud {
    fn describe(&self) -> Description {
        let settings = &self.world().settings;
        let mut description = Description::new("memory");
        description.capabilities.clone_from(&settings.capabilities);
        description.is_id = |text| text.starts_with("instance-") || text.starts_with("image-");
        description.batch = settings.batch;
        description
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let mut instances = Vec::new();
        let mut next = Some(0);
        while let Some(from) = next {
            let call = Call::new(ApiOperation::List, None);
            let page = self.call(call, |world, now, fault| {
                let (shown, next) = world.page(now, from);
                Ok((if fault == Some(InjectedFault::Flap) { Vec::new() } else { shown }, next))
            });
            let (shown, after) = page.await?;
            instances.extend(shown);
            next = after;
        }
        Ok(filter.keep(instances))
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        self.call(Call::new(ApiOperation::Get, Some(id.as_str())), |world, now, _| {
            let found = world.find(now, id).and_then(|machine| machine.view(now));
            let found = found.map(|instance| world.shown(instance));
            found.ok_or(Error::new(ErrorKind::NotFound, ApiOperation::Get))
        })
        .await
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let call = Call::new(ApiOperation::Launch, Some(spec.name.as_str()));
        self.call(call, |world, now, fault| world.launch(now, spec, fault)).await
    }

    /// Launches in batches. The fault of a request applies to all its launches.
    async fn launch_many(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        let batch = self.world().settings.batch.max(1);
        let mut results = Vec::with_capacity(specs.len());
        for specs in specs.chunks(batch) {
            let [first, ..] = specs else { continue };
            let call = Call::new(ApiOperation::Launch, Some(first.name.as_str()));
            let answer = self.call(call, |world, now, fault| {
                let launched = specs.iter().map(|spec| world.launch(now, spec, fault));
                Ok(launched.collect::<Vec<_>>())
            });
            match answer.await {
                Ok(launched) => results.extend(launched),
                Err(error) => {
                    results.extend(specs.iter().map(|spec| Err(error.clone().on(&spec.name))));
                }
            }
        }
        results
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        self.call(Call::new(ApiOperation::Terminate, Some(id.as_str())), |world, now, _| {
            let gone = after(now, world.settings.terminate.draw(&mut world.random));
            let forgotten = after(gone, world.settings.linger);
            let Some(machine) = world.find(now, id) else {
                return Ok(());
            };
            if machine.state(now).is_some_and(|state| !state.is_leaving()) {
                let way = [(now, InstanceState::Terminating), (gone, InstanceState::Terminated)];
                machine.follow(now, way);
                machine.forget_at(forgotten);
            }
            Ok(())
        })
        .await
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        self.require(Capability::Rebuild, ApiOperation::Rebuild, id.as_str())?;
        let call = Call::new(ApiOperation::Rebuild, Some(id.as_str()));
        let allowed = [InstanceState::Running, InstanceState::Stopped];
        self.act(call, id, (&allowed, BOOT), Some(image)).await
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        if how == Reboot::Soft {
            self.require(Capability::SoftReboot, ApiOperation::Reboot, id.as_str())?;
        }
        let call = Call::new(ApiOperation::Reboot, Some(id.as_str()));
        self.act(call, id, (&[InstanceState::Running], BOOT), None).await
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.require(Capability::Stop, ApiOperation::Stop, id.as_str())?;
        let call = Call::new(ApiOperation::Stop, Some(id.as_str()));
        let way = [InstanceState::Stopping, InstanceState::Stopped];
        self.act(call, id, (&[InstanceState::Running], way), None).await
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        self.require(Capability::Stop, ApiOperation::Start, id.as_str())?;
        let call = Call::new(ApiOperation::Start, Some(id.as_str()));
        self.act(call, id, (&[InstanceState::Stopped], BOOT), None).await
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        self.call(Call::new(ApiOperation::Addresses, None), |world, now, _| {
            let known = ids.iter().filter_map(|id| {
                let address = world.find(now, id)?.address(now)?;
                Some((id.clone(), address))
            });
            Ok(known.collect())
        })
        .await
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        self.call(Call::new(ApiOperation::Shapes, None), |world, _, _| Ok(world.shapes())).await
    }

    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let call = Call::new(ApiOperation::Images, None);
        let mut images = self.call(call, |world, now, _| Ok(world.images(now))).await?;
        images.retain(|image| filter.matches(image));
        Ok(images)
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.require(Capability::Limits, ApiOperation::Limits, "instances")?;
        self.call(Call::new(ApiOperation::Limits, None), |world, now, _| {
            let most = world.settings.quota.map(u64::from);
            let used = Some(u64::from(world.live(now)));
            Ok(vec![Limit { name: "instances".to_owned(), zone: None, most, used }])
        })
        .await
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        self.require(Capability::Snapshot, ApiOperation::Snapshot, id.as_str())?;
        self.call(Call::new(ApiOperation::Snapshot, Some(id.as_str())), |world, now, _| {
            if world.find(now, id).is_none() {
                return Err(Error::new(ErrorKind::NotFound, ApiOperation::Snapshot));
            }
            let usable = after(now, world.settings.work.draw(&mut world.random));
            Ok(world.add_image(name.clone(), usable))
        })
        .await
    }
}
