//! Clouds that are wrong, each in one way.

use async_trait::async_trait;
use cloud_core::memory::MemoryCloud;
use cloud_core::{
    ApiOperation, Capability, Description, Error, ErrorKind, Image, ImageFilter, ImageId,
    ImageName, Instance, InstanceFilter, InstanceId, InstanceName, InstanceSpec, InstanceState,
    LaunchToken, Limit, Provider, Reboot, Result, Shape, ShapeName, Tags,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;

const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));

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
    FaultOfWrongKind,
    GetInventsInstances,
    GetShowsAnOldState,
    ImageNameFindsNothing,
    ImagesOfAnyName,
    LaunchForgetsTags,
    LaunchIgnoresToken,
    LaunchManyMixesUp,
    ListIgnoresTags,
    ListIsEmpty,
    ListIsTheFirstPage,
    ListRepeatsPages,
    LostAnswerCalledUnavailable,
    LostLaunchRepeatedBlindly,
    NamesArePrefixes,
    PreemptibleRefused,
    PreemptibleSilentlyIgnored,
    QuotaCalledForbidden,
    RebootDoesNothing,
    RebootTerminates,
    RebuildCalledInvalid,
    RebuildChangesAddress,
    RebuildIgnoresImage,
    RebuildLosesTags,
    RebuildMakesAnother,
    RefusedLaunchLeavesAnInstance,
    ShapesAreEmpty,
    SnapshotNeverReady,
    StartDoesNothing,
    StoppedCalledRunning,
    TerminateAfterLostAnswerFails,
    TerminateDoesNothing,
    TerminateOfTheGoneFails,
    TerminateOfUnknownFails,
    TerminateWhileGoingFails,
    ThrottleCalledProtocol,
    ThrottledLaunchIsDone,
    TokensAllTheSame,
    UnsupportedCalledInvalid,
}

#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) cloud: MemoryCloud,
    pub(crate) bug: Bug,
    /// Whom something has happened to that the cloud gets wrong from then on.
    touched: Mutex<BTreeSet<InstanceId>>,
}

impl Broken {
    pub(crate) fn new(cloud: MemoryCloud, bug: Bug) -> Self {
        Self { cloud, bug, touched: Mutex::default() }
    }

    fn touch(&self, id: &InstanceId) {
        self.touched.lock().expect("not poisoned").insert(id.clone());
    }

    fn is_touched(&self, id: &InstanceId) -> bool {
        self.touched.lock().expect("not poisoned").contains(id)
    }

    /// Shows an instance wrongly, if that is the bug.
    fn distort(&self, instance: &mut Instance) {
        let touched = self.is_touched(&instance.id);
        match (self.bug, &mut instance.fault) {
            (Bug::FaultForgotten, fault) => *fault = None,
            (Bug::FaultOfWrongKind, Some(fault)) => fault.kind = ErrorKind::Quota,
            (Bug::AddressesNeverCome, _) => instance.address = None,
            (Bug::RebuildLosesTags, _) if touched => instance.tags = Tags::new(),
            (Bug::RebuildChangesAddress, _) if touched => instance.address = Some(ELSEWHERE),
            _ => {}
        }
    }

    /// How a terminate is refused that should not be, if that is the bug.
    async fn refusal(&self, id: &InstanceId) -> Option<ErrorKind> {
        let state = self.cloud.get(id).await.map(|instance| instance.state);
        match (self.bug, state) {
            (Bug::TerminateWhileGoingFails, Ok(InstanceState::Terminating))
            | (Bug::TerminateOfTheGoneFails, Ok(InstanceState::Terminated)) => {
                Some(ErrorKind::Conflict)
            }
            (Bug::TerminateOfUnknownFails, Err(error)) => Some(error.kind()),
            (Bug::TerminateAfterLostAnswerFails, _) if self.is_touched(id) => {
                Some(ErrorKind::Conflict)
            }
            _ => None,
        }
    }

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
    fn describe(&self) -> Description {
        let mut description = self.cloud.describe();
        if self.has(Bug::CapabilitiesDenied) {
            description.capabilities = description.capabilities.without(Capability::Limits);
        }
        description
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
            self.distort(instance);
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
            self.distort(instance);
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

    async fn launch_many(&self, specs: &[InstanceSpec]) -> Vec<Result<Instance>> {
        let mut results = self.cloud.launch_many(specs).await;
        if self.has(Bug::LaunchManyMixesUp) {
            results.reverse();
        }
        results
    }

    async fn launch(&self, spec: &InstanceSpec) -> Result<Instance> {
        let mut spec = spec.clone();
        match self.bug {
            Bug::LaunchForgetsTags => spec.tags = Tags::new(),
            Bug::LaunchIgnoresToken => spec.token = None,
            Bug::TokensAllTheSame => {
                spec.token = spec.token.and_then(|_| LaunchToken::new("same").ok());
            }
            Bug::PreemptibleSilentlyIgnored => spec.preemptible = false,
            Bug::PreemptibleRefused if spec.preemptible => {
                return Err(Error::unsupported(ApiOperation::Launch));
            }
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
        if let Some(kind) = self.refusal(id).await {
            return Err(Error::new(kind, ApiOperation::Terminate));
        }
        let result = self.cloud.terminate(id).await;
        if result.is_err() {
            self.touch(id);
        }
        self.misname(result)
    }

    async fn rebuild(&self, id: &InstanceId, image: &ImageId) -> Result<()> {
        match self.bug {
            Bug::RebuildIgnoresImage => self.cloud.reboot(id, Reboot::Hard).await,
            Bug::RebuildMakesAnother => {
                let old = self.cloud.get(id).await?;
                self.cloud.terminate(id).await?;
                let shape = ShapeName::new("small");
                let mut spec = InstanceSpec::new(old.name, shape, image.clone());
                spec.tags = old.tags;
                self.cloud.launch(&spec).await.map(|_another| ())
            }
            Bug::RebuildCalledInvalid => {
                let result = self.cloud.rebuild(id, image).await;
                result.map_err(|error| error.with_kind(ErrorKind::Invalid))
            }
            _ => {
                self.touch(id);
                self.misname(self.cloud.rebuild(id, image).await)
            }
        }
    }

    async fn reboot(&self, id: &InstanceId, how: Reboot) -> Result<()> {
        match self.bug {
            Bug::RebootDoesNothing => Ok(()),
            Bug::RebootTerminates => self.cloud.terminate(id).await,
            _ => self.misname(self.cloud.reboot(id, how).await),
        }
    }

    async fn stop(&self, id: &InstanceId) -> Result<()> {
        self.misname(self.cloud.stop(id).await)
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
        for (id, address) in &mut addresses {
            let moved = self.has(Bug::RebuildChangesAddress) && self.is_touched(id);
            if moved || self.has(Bug::AddressesAreAllTheSame) {
                *address = ELSEWHERE;
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
        if self.has(Bug::ImageNameFindsNothing) && filter.name.is_some() {
            images.clear();
        }
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
