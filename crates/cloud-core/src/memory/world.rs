//! The state of a cloud in memory, and the effect of each request, without a clock.

use super::cloud::Call;
use super::fault::{InjectedFault, InjectedFaults};
use super::history::{Moment, Watcher};
use super::machine::{Machine, MachineTimeline};
use super::settings::{MemoryCloudSettings, Throttle};
use super::{LoggedRequest, RequestOutcome};
use crate::clock::after;
use crate::{
    ApiOperation, Capability, Error, ErrorKind, Image, ImageId, ImageName, Instance, InstanceId,
    InstanceSpec, InstanceState, LaunchToken, Result, Shape, ShapeName, Zone,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct World {
    pub(super) settings: MemoryCloudSettings,
    pub(super) random: fastrand::Rng,
    pub(super) faults: InjectedFaults,
    pub(super) history: Vec<LoggedRequest>,
    begun: Instant,
    machines: Vec<Machine>,
    images: Vec<(Image, Instant)>,
    tokens: BTreeMap<LaunchToken, Used>,
    capacity: BTreeMap<(ShapeName, Option<Zone>), u32>,
    /// No preemptible machine is left anywhere.
    pub(super) no_preemptible: bool,
    bucket: Option<(f64, Instant)>,
    pub(super) watcher: Option<Watcher>,
}

/// The launch of a token.
#[derive(Debug)]
struct Used {
    at: Instant,
    spec: InstanceSpec,
    id: InstanceId,
}

impl World {
    pub(super) fn new(settings: MemoryCloudSettings, now: Instant) -> Self {
        let images = settings.images.iter().map(|image| (image.clone(), now)).collect();
        Self {
            random: fastrand::Rng::with_seed(settings.seed),
            settings,
            faults: InjectedFaults::default(),
            history: Vec::new(),
            begun: now,
            machines: Vec::new(),
            images,
            tokens: BTreeMap::new(),
            capacity: BTreeMap::new(),
            no_preemptible: false,
            bucket: None,
            watcher: None,
        }
    }

    pub(super) fn record(
        &mut self,
        now: Instant,
        Call { operation, subject }: Call<'_>,
        outcome: RequestOutcome,
        before: Option<Instance>,
    ) {
        let subject = subject.map(str::to_owned);
        let event = LoggedRequest { at: now - self.begun, operation, subject, outcome };
        if let Some(Watcher(watcher)) = &self.watcher {
            watcher(&Moment::new(&event, before, self, now));
        }
        self.history.push(event);
    }

    /// The instance that a request names, for watchers.
    pub(super) fn watched(&self, now: Instant, subject: Option<&str>) -> Option<Instance> {
        let subject = subject.filter(|_| self.watcher.is_some())?;
        let named = |machine: &&Machine| machine.id.as_str() == subject;
        self.machines.iter().find(named).and_then(|machine| machine.view(now))
    }

    /// Accepts a request, or returns the time to wait.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), Duration> {
        let Some(Throttle { rate, burst }) = self.settings.throttle else {
            self.bucket = None;
            return Ok(());
        };
        let (tokens, filled) = self.bucket.unwrap_or((burst, now));
        let tokens = (tokens + (now - filled).as_secs_f64() * rate).min(burst);
        let taken = tokens >= 1.0;
        self.bucket = Some((if taken { tokens - 1.0 } else { tokens }, now));
        if taken {
            return Ok(());
        }
        // Like real clouds, in whole seconds.
        let pause = Duration::try_from_secs_f64((1.0 / rate).ceil());
        Err(pause.unwrap_or(LONGEST_PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE))
    }

    pub(super) fn set_capacity(
        &mut self,
        shape: ShapeName,
        zone: Option<Zone>,
        machines: Option<u32>,
    ) {
        match machines {
            Some(machines) => self.capacity.insert((shape, zone), machines),
            None => self.capacity.remove(&(shape, zone)),
        };
    }

    /// A page of a listing, in the order of launches, and the position of the next page.
    pub(super) fn page(&mut self, now: Instant, from: usize) -> (Vec<Instance>, Option<usize>) {
        let lag = self.settings.lag;
        if !self.settings.reorders {
            return self.page_before(now, lag, from);
        }
        let lag = lag.mul_f64(self.random.f64());
        let (mut shown, next) = self.page_before(now, lag, from);
        self.random.shuffle(&mut shown);
        (shown, next)
    }

    fn page_before(
        &self,
        now: Instant,
        lag: Duration,
        from: usize,
    ) -> (Vec<Instance>, Option<usize>) {
        let then = now.checked_sub(lag).filter(|then| *then >= self.begun);
        let mut instances = Vec::new();
        for (place, machine) in self.machines.iter().enumerate().skip(from) {
            if instances.len() >= self.settings.page.max(1) {
                return (instances, Some(place));
            }
            instances.extend(then.and_then(|then| machine.view(then)).map(|one| self.shown(one)));
        }
        (instances, None)
    }

    /// An instance as in a response.
    pub(super) fn shown(&self, mut instance: Instance) -> Instance {
        instance.address = instance.address.filter(|_| self.settings.shows_addresses);
        instance
    }

    /// All instances, for assertions.
    pub(super) fn all(&self, now: Instant) -> Vec<Instance> {
        self.machines.iter().filter_map(|machine| machine.view(now)).collect()
    }

    /// The lives of all instances.
    pub(super) fn timelines(&self, now: Instant) -> Vec<MachineTimeline> {
        self.machines.iter().map(|machine| machine.timeline(now)).collect()
    }

    pub(super) fn find(&mut self, now: Instant, id: &InstanceId) -> Option<&mut Machine> {
        let known = |machine: &&mut Machine| machine.id == *id && machine.state(now).is_some();
        self.machines.iter_mut().find(known)
    }

    pub(super) fn launch(
        &mut self,
        now: Instant,
        spec: &InstanceSpec,
        fault: Option<InjectedFault>,
    ) -> Result<Instance> {
        let refused = |kind| Error::new(kind, ApiOperation::Launch);
        self.check(now, spec)?;
        if let Some(first) = self.first_launch(now, spec)? {
            return Ok(first);
        }
        let late = match fault {
            Some(InjectedFault::Refuse(kind)) => return Err(refused(kind)),
            Some(InjectedFault::FailLater(kind)) => Some(kind),
            Some(
                InjectedFault::LoseResponse
                | InjectedFault::LoseRequest
                | InjectedFault::Delay(_)
                | InjectedFault::DoneLater(_)
                | InjectedFault::Flap,
            )
            | None => None,
        };
        if self.settings.quota.is_some_and(|quota| self.live(now) >= quota) {
            return Err(refused(ErrorKind::Quota).because("limit of instances exceeded"));
        }
        let (placed, full) = self.place(now, spec);
        let full = full || (spec.preemptible && self.no_preemptible);
        if full && !self.settings.late_capacity {
            return Err(refused(ErrorKind::Capacity).because("Out of host capacity."));
        }
        let late = late.or(full.then_some(ErrorKind::Capacity));
        let instance = self.create(now, &placed, late);
        if let Some(token) = self.token(spec) {
            let used = Used { at: now, spec: spec.clone(), id: instance.id.clone() };
            self.tokens.insert(token, used);
        }
        Ok(instance)
    }

    fn check(&self, now: Instant, spec: &InstanceSpec) -> Result<()> {
        let invalid = |why| Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch).because(why));
        let unsupported = |why| Err(Error::unsupported(ApiOperation::Launch).because(why));
        let capabilities = &self.settings.capabilities;
        let Some(shape) = self.settings.shapes.iter().find(|shape| shape.offers(&spec.shape))
        else {
            return invalid("no such shape; a flexible one has its size behind its name");
        };
        if spec.zone.as_ref().is_some_and(|zone| !shape.zones.contains(zone)) {
            return invalid("no such shape in this zone");
        }
        if self.image(now, &spec.image).is_none() {
            return invalid("no such image");
        }
        if spec.preemptible && !capabilities.has(Capability::Preemptible) {
            return unsupported("preemptible instances");
        }
        if spec.fault_domain.is_some() && !capabilities.has(Capability::FaultDomain) {
            return unsupported("fault domains");
        }
        Ok(())
    }

    /// The token, if the cloud supports tokens.
    fn token(&self, spec: &InstanceSpec) -> Option<LaunchToken> {
        let known = self.settings.capabilities.has(Capability::LaunchToken);
        spec.token.clone().filter(|_| known)
    }

    /// The instance of an earlier launch with the same token.
    fn first_launch(&self, now: Instant, spec: &InstanceSpec) -> Result<Option<Instance>> {
        let used = self.token(spec).and_then(|token| self.tokens.get(&token));
        let life = self.settings.token_life;
        let Some(used) = used.filter(|used| now < after(used.at, life)) else {
            return Ok(None);
        };
        if used.spec != *spec {
            return Err(Error::new(ErrorKind::Invalid, ApiOperation::Launch)
                .because("the token was used with another request"));
        }
        let first = self.machines.iter().find(|machine| machine.id == used.id);
        // An instance in progress counts as its final state.
        match first.and_then(|machine| machine.view(now.max(used.at))) {
            Some(instance) if !instance.state.is_leaving() => Ok(Some(instance)),
            Some(_) | None => Err(Error::new(ErrorKind::TokenUsedUp, ApiOperation::Launch)
                .because("the instance made with the token was deleted")),
        }
    }

    fn create(&mut self, now: Instant, spec: &InstanceSpec, late: Option<ErrorKind>) -> Instance {
        let serial = u32::try_from(self.machines.len()).unwrap_or(u32::MAX).saturating_add(1);
        let id = InstanceId::new(format!("instance-{:x}-{serial}", self.settings.seed));
        let address = Ipv4Addr::from_bits(0x0a00_0000 | (serial & 0x00ff_ffff));
        let created = SystemTime::UNIX_EPOCH + EPOCH + (now - self.begun);
        let mut machine =
            Machine::new(id.clone(), spec.clone(), (now, created), IpAddr::V4(address));
        let booted = after(now, self.settings.boot.draw(&mut self.random));
        let addressed = after(booted, self.settings.address.draw(&mut self.random));
        match late {
            Some(kind) => machine.fail_at(booted, kind),
            None => machine.run_at(booted, addressed),
        }
        let shown = machine.view(now);
        self.machines.push(machine);
        shown.unwrap_or_else(|| Instance::launched(id, spec))
    }

    /// Assigns a zone to a launch: the requested one, or the first with capacity. Returns true if there is no capacity.
    fn place(&self, now: Instant, spec: &InstanceSpec) -> (InstanceSpec, bool) {
        let shape = self.settings.shapes.iter().find(|shape| shape.offers(&spec.shape));
        let all = shape.map(|shape| shape.zones.as_slice()).unwrap_or_default();
        let zones = spec.zone.as_ref().map_or(all, std::slice::from_ref);
        let free = zones.iter().find(|zone| !self.is_full(now, &spec.shape, Some(zone)));
        let full = (free.is_none() && !zones.is_empty()) || self.is_full(now, &spec.shape, None);
        let mut placed = spec.clone();
        placed.zone = free.or(zones.first()).cloned();
        (placed, full)
    }

    /// True if the shape has no capacity in the zone or in all zones together.
    fn is_full(&self, now: Instant, shape: &ShapeName, zone: Option<&Zone>) -> bool {
        let Some(capacity) = self.capacity.get(&(shape.clone(), zone.cloned())) else {
            return false;
        };
        let there = |machine: &Machine| {
            machine.spec.shape == *shape
                && (zone.is_none() || machine.spec.zone.as_ref() == zone)
                && machine.state(now) != Some(&InstanceState::Failed)
        };
        self.count(now, there) >= *capacity
    }

    fn count(&self, now: Instant, wanted: impl Fn(&Machine) -> bool) -> u32 {
        let live = |machine: &&Machine| machine.state(now).is_some_and(InstanceState::is_live);
        let count = self.machines.iter().filter(live).filter(|machine| wanted(machine)).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    pub(super) fn live(&self, now: Instant) -> u32 {
        self.count(now, |_| true)
    }

    pub(super) fn shapes(&self) -> Vec<Shape> {
        self.settings.shapes.clone()
    }

    /// An image that is available now.
    pub(super) fn image(&self, now: Instant, id: &ImageId) -> Option<&Image> {
        let usable = |(image, from): &&(Image, Instant)| image.id == *id && *from <= now;
        self.images.iter().find(usable).map(|(image, _)| image)
    }

    /// All images, newest first.
    pub(super) fn images(&self, now: Instant) -> Vec<Image> {
        let shown = self.images.iter().rev().map(|(image, from)| {
            let mut image = image.clone();
            image.available = *from <= now;
            image
        });
        shown.collect()
    }

    pub(super) fn add_image(&mut self, name: ImageName, usable: Instant) -> ImageId {
        let id = ImageId::new(format!("image-{}", self.images.len() + 1));
        self.images.push((Image::new(id.clone(), name), usable));
        id
    }
}

/// The time that a throttled request is told to wait.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The epoch of creation times, since 1970.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);
