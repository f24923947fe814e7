//! Clouds that are wrong, each in one way.

use async_trait::async_trait;
use cloud_core::memory::MemoryCloud;
use cloud_core::{
    Capabilities, Capability, Error, ErrorKind, Image, ImageFilter, ImageId, ImageName, Instance,
    InstanceFilter, InstanceId, InstanceName, InstanceSpec, InstanceState, Limit, Operation,
    Provider, Reboot, Result, Shape, Tags,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Nothing: shows that the wrapping alone breaks no case.
    None,
    AddressesAreAllTheSame,
    AddressesNeverCome,
    CapabilitiesDenied,
    CapacityCalledUnavailable,
    FaultForgotten,
    GetInventsInstances,
    GetShowsAnOldState,
    ImagesOfAnyName,
    LaunchForgetsTags,
    LaunchIgnoresToken,
    ListIgnoresTags,
    ListIsEmpty,
    ListIsTheFirstPage,
    ListRepeatsPages,
    LostAnswerCalledUnavailable,
    LostLaunchRepeatedBlindly,
    NamesArePrefixes,
    QuotaCalledForbidden,
    RebootDoesNothing,
    RebootTerminates,
    RebuildIgnoresImage,
    RebuildMakesAnother,
    RefusedLaunchLeavesAnInstance,
    ShapesAreEmpty,
    SnapshotNeverReady,
    StartDoesNothing,
    StoppedCalledRunning,
    TerminateDoesNothing,
    TerminateOfTheGoneFails,
    ThrottleCalledProtocol,
    ThrottledLaunchIsDone,
    UnsupportedCalledInvalid,
}

#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) cloud: MemoryCloud,
    pub(crate) bug: Bug,
}

impl Broken {
    fn has(&self, bug: Bug) -> bool {
        self.bug == bug
    }

    /// Calls an error by another name, if that is the bug.
    fn misname<T>(&self, result: Result<T>) -> Result<T> {
        let renamed = match self.bug {
            Bug::CapacityCalledUnavailable => (ErrorKind::Capacity, ErrorKind::Unavailable),
            Bug::QuotaCalledForbidden => (ErrorKind::Quota, ErrorKind::Forbidden),
            Bug::ThrottleCalledProtocol => (ErrorKind::Throttled, ErrorKind::Protocol),
            Bug::LostAnswerCalledUnavailable => (ErrorKind::Ambiguous, ErrorKind::Unavailable),
            Bug::UnsupportedCalledInvalid => (ErrorKind::Unsupported, ErrorKind::Invalid),
            _ => return result,
        };
        result.map_err(|error| {
            let wrong = error.kind() == renamed.0;
            if wrong { error.with_kind(renamed.1) } else { error }
        })
    }

    /// Launches behind everybody's back, without the scene that the suite has set.
    async fn launch_regardless(&self, spec: &InstanceSpec) -> Result<Instance> {
        let mut spec = spec.clone();
        spec.token = None;
        spec.zone = None;
        self.cloud.set_quota(None);
        self.cloud.set_throttle(None);
        self.cloud.launch(&spec).await
    }
}

#[async_trait]
impl Provider for Broken {
    fn capabilities(&self) -> Capabilities {
        let capabilities = self.cloud.capabilities();
        if self.has(Bug::CapabilitiesDenied) {
            return capabilities.without(Capability::Limits);
        }
        capabilities
    }

    async fn list(&self, filter: &InstanceFilter) -> Result<Vec<Instance>> {
        let everything = InstanceFilter::default();
        let mut listed = match self.bug {
            Bug::ListIgnoresTags => {
                let mut listed = self.cloud.list(&everything).await?;
                listed.retain(|instance| filter.name.as_ref().is_none_or(|n| *n == instance.name));
                listed
            }
            Bug::NamesArePrefixes => {
                let name = filter.name.clone().unwrap_or(InstanceName::new(""));
                let tagged = InstanceFilter::tagged(filter.tags.clone());
                let mut listed = self.cloud.list(&tagged).await?;
                listed.retain(|instance| instance.name.as_str().starts_with(name.as_str()));
                listed
            }
            _ => self.cloud.list(filter).await?,
        };
        match self.bug {
            Bug::ListIsEmpty => listed.clear(),
            Bug::ListIsTheFirstPage => listed.truncate(3),
            Bug::ListRepeatsPages => listed.extend(listed.clone().into_iter().take(1)),
            _ => {}
        }
        for instance in &mut listed {
            match self.bug {
                Bug::FaultForgotten => instance.fault = None,
                Bug::AddressesNeverCome => instance.address = None,
                _ => {}
            }
        }
        Ok(listed)
    }

    async fn get(&self, id: &InstanceId) -> Result<Instance> {
        let mut got = self.cloud.get(id).await;
        if self.has(Bug::GetInventsInstances) && got.is_err() {
            let name = InstanceName::new("invented");
            return Ok(Instance::new(id.clone(), name, InstanceState::Running));
        }
        if let Ok(instance) = &mut got {
            match self.bug {
                Bug::GetShowsAnOldState => instance.state = InstanceState::Pending,
                Bug::StoppedCalledRunning if instance.state == InstanceState::Stopped => {
                    instance.state = InstanceState::Running;
                }
                _ => {}
            }
        }
        got
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let mut spec = spec.clone();
        match self.bug {
            Bug::LaunchForgetsTags => spec.tags = Tags::new(),
            Bug::LaunchIgnoresToken => spec.token = None,
            _ => {}
        }
        let result = self.cloud.launch(&spec).await;
        let kind = result.as_ref().err().map(Error::kind);
        match (self.bug, kind) {
            (Bug::LostLaunchRepeatedBlindly, Some(ErrorKind::Ambiguous)) => {
                return self.launch_regardless(&spec).await;
            }
            (Bug::ThrottledLaunchIsDone, Some(ErrorKind::Throttled))
            | (Bug::RefusedLaunchLeavesAnInstance, Some(ErrorKind::Quota | ErrorKind::Capacity)) => {
                self.launch_regardless(&spec).await?;
            }
            _ => {}
        }
        self.misname(result)
    }

    async fn terminate(&self, id: &InstanceId) -> Result<()> {
        if self.has(Bug::TerminateDoesNothing) {
            return Ok(());
        }
        if self.has(Bug::TerminateOfTheGoneFails) {
            let state = self.cloud.get(id).await?.state;
            if state.is_leaving() {
                return Err(Error::new(ErrorKind::Conflict, Operation::Terminate));
            }
        }
        self.misname(self.cloud.terminate(id).await)
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        match self.bug {
            Bug::RebuildIgnoresImage => self.cloud.reboot(id, Reboot::Hard).await,
            Bug::RebuildMakesAnother => self.cloud.terminate(id).await,
            _ => self.misname(self.cloud.rebuild(id, image).await),
        }
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        match self.bug {
            Bug::RebootDoesNothing => Ok(()),
            Bug::RebootTerminates => self.cloud.terminate(id).await,
            _ => self.misname(self.cloud.reboot(id, how).await),
        }
    }

    async fn start(&self, id: &InstanceId) -> Result<()> {
        if self.has(Bug::StartDoesNothing) {
            return Ok(());
        }
        self.misname(self.cloud.start(id).await)
    }

    async fn addresses(&self, ids: &[InstanceId]) -> Result<BTreeMap<InstanceId, IpAddr>> {
        let mut addresses = self.cloud.addresses(ids).await?;
        if self.has(Bug::AddressesNeverCome) {
            addresses.clear();
        }
        if self.has(Bug::AddressesAreAllTheSame) {
            for address in addresses.values_mut() {
                *address = IpAddr::from([10, 0, 0, 1]);
            }
        }
        Ok(addresses)
    }

    async fn shapes(&self) -> Result<Vec<Shape>> {
        if self.has(Bug::ShapesAreEmpty) {
            return Ok(Vec::new());
        }
        self.cloud.shapes().await
    }

    async fn images(&self, filter: &ImageFilter) -> Result<Vec<Image>> {
        let everything = ImageFilter::default();
        let any = self.has(Bug::ImagesOfAnyName);
        let mut images = self.cloud.images(if any { &everything } else { filter }).await?;
        for image in &mut images {
            image.available &= !self.has(Bug::SnapshotNeverReady);
        }
        Ok(images)
    }

    async fn limits(&self) -> Result<Vec<Limit>> {
        self.misname(self.cloud.limits().await)
    }

    async fn snapshot(&self, id: &InstanceId, name: &ImageName) -> Result<ImageId> {
        self.misname(self.cloud.snapshot(id, name).await)
    }
}
