//! The cloud in memory: controls for tests, and the execution of a request.

use super::fault::InjectedFault;
use super::history::{LoggedRequest, Moment, RequestOutcome, Watcher};
use super::machine::MachineTimeline;
use super::settings::{MemoryCloudSettings, Throttle};
use super::world::World;
use crate::clock::after;
use crate::{
    ApiOperation, Capability, Error, ErrorKind, ImageId, Instance, InstanceId, InstanceState,
    Provider as _, Result, ShapeName, Zone,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A cloud in memory. Clones share it.
///
/// In addition to [`Provider`](crate::Provider), it has controls for tests: injected faults; capacity, quota and throttling
/// that can change; and a full history.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
/// use cloud_core::memory::{MemoryCloud, MemoryCloudSettings};
/// use cloud_core::{
///     Goal, ImageId, InstanceName, InstanceSpec, Poll, Provider, ShapeName, WaitOutcome, wait_until,
/// };
/// use std::time::Duration;
///
/// let cloud = MemoryCloud::new(MemoryCloudSettings::default());
/// let spec = InstanceSpec::new(
///     InstanceName::new("vm-0001"),
///     ShapeName::new("small"),
///     ImageId::new("image-1"),
/// );
/// let ids = [cloud.launch(&spec).await?.id];
/// let poll = Poll::until(Duration::from_secs(300));
/// let waited = wait_until(&cloud, &ids, Goal::Addressed, poll).await;
/// let outcome = &waited.outcomes[&ids[0]];
/// assert!(matches!(outcome, WaitOutcome::Reached(instance) if instance.address.is_some()));
/// # Ok::<(), cloud_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct MemoryCloud(Arc<Mutex<World>>);

/// A request before its outcome is known.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) operation: ApiOperation,
    pub(super) subject: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub(super) fn new(operation: ApiOperation, subject: Option<&'a str>) -> Self {
        Self { operation, subject }
    }
}

impl MemoryCloud {
    /// Creates a cloud without instances. Call it in a tokio runtime, whose clock it uses.
    #[must_use]
    pub fn new(settings: MemoryCloudSettings) -> Self {
        Self(Arc::new(Mutex::new(World::new(settings, Instant::now()))))
    }

    /// Injects a fault into the next request of this operation. Several faults apply in order.
    pub fn inject(&self, operation: ApiOperation, fault: InjectedFault) {
        self.world().faults.script(operation, fault);
    }

    /// Injects a fault into each request, or each of this operation, with this probability.
    pub fn inject_randomly(
        &self,
        operation: Option<ApiOperation>,
        fault: InjectedFault,
        probability: f64,
    ) {
        self.world().faults.chance(operation, fault, probability);
    }

    /// Removes all faults, scripted and random.
    pub fn clear_faults(&self) {
        self.world().faults.clear();
    }

    /// Sets the capacity for a shape in a zone, or in all zones together; without a number it is unbounded. A launch
    /// without a zone goes to the first one with capacity.
    pub fn set_capacity(&self, shape: ShapeName, zone: Option<Zone>, machines: Option<u32>) {
        self.world().set_capacity(shape, zone, machines);
    }

    /// From now on there are preemptible machines, or none at all.
    pub fn set_preemptible(&self, available: bool) {
        self.world().no_preemptible = !available;
    }

    /// From now on a launch without capacity is refused at once, or accepted and fails later.
    pub fn set_late_capacity(&self, late: bool) {
        self.world().settings.late_capacity = late;
    }

    /// Sets the maximum number of instances.
    pub fn set_quota(&self, quota: Option<u32>) {
        self.world().settings.quota = quota;
    }

    /// Sets the maximum rate of requests.
    pub fn set_throttle(&self, throttle: Option<Throttle>) {
        self.world().settings.throttle = throttle;
    }

    /// Sets the state of an instance, as if by an administrator. Returns false if it does not exist.
    #[must_use]
    pub fn force(&self, id: &InstanceId, state: InstanceState) -> bool {
        let now = Instant::now();
        let mut world = self.world();
        let machine = world.find(now, id);
        machine.map(|machine| machine.follow(now, [(now, state)])).is_some()
    }

    /// All instances now, without lag, latency or faults.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.world().all(Instant::now())
    }

    /// The lives of all instances so far, in the order of their launches.
    #[must_use]
    pub fn timelines(&self) -> Vec<MachineTimeline> {
        self.world().timelines(Instant::now())
    }

    /// Number of boots of an instance so far.
    #[must_use]
    pub fn boots(&self, id: &InstanceId) -> Option<usize> {
        let now = Instant::now();
        self.world().find(now, id).map(|machine| machine.boots_until(now))
    }

    /// Every request so far.
    #[must_use]
    pub fn history(&self) -> Vec<LoggedRequest> {
        self.world().history.clone()
    }

    /// Calls this watcher for every request from now on, when it is carried out, refused or lost. The watcher must not use
    /// the cloud itself; it gets its state.
    pub fn watch(&self, watcher: impl Fn(&Moment<'_>) + Send + Sync + 'static) {
        self.world().watcher = Some(Watcher(Arc::new(watcher)));
    }

    pub(super) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) -> Duration {
        let mut world = self.world();
        let latency = world.settings.latency;
        latency.draw(&mut world.random)
    }

    /// Carries out a request with its latency and fault.
    pub(super) async fn call<T>(
        &self,
        call: Call<'_>,
        work: impl FnOnce(&mut World, Instant, Option<InjectedFault>) -> Result<T> + Send,
    ) -> Result<T> {
        let Call { operation, subject } = call;
        let latency = self.draw();
        sleep(latency / 2).await;
        let fault = {
            let world = &mut *self.world();
            world.faults.next(operation, &mut world.random)
        };
        if let Some(InjectedFault::Delay(pause)) = fault {
            sleep(pause).await;
        }
        let result = self.serve(call, fault, work);
        if let Some(InjectedFault::DoneLater(pause)) = fault {
            sleep(pause).await;
        }
        sleep(latency / 2).await;
        result.map_err(|error| match subject {
            Some(subject) => error.on(subject),
            None => error,
        })
    }

    fn serve<T>(
        &self,
        call: Call<'_>,
        fault: Option<InjectedFault>,
        work: impl FnOnce(&mut World, Instant, Option<InjectedFault>) -> Result<T>,
    ) -> Result<T> {
        let taken = Instant::now();
        // The world is a function of time, so future changes can be recorded now.
        let now = if let Some(InjectedFault::DoneLater(pause)) = fault {
            after(taken, pause)
        } else {
            taken
        };
        let operation = call.operation;
        let world = &mut *self.world();
        let before = world.watched(now, call.subject);
        let (result, outcome) = match (world.admit(taken), fault) {
            (Err(pause), _) => {
                let error = Error::new(ErrorKind::Throttled, operation).with_retry_after(pause);
                (Err(error), RequestOutcome::Refused(ErrorKind::Throttled))
            }
            (Ok(()), Some(InjectedFault::Refuse(kind))) if !is_for_room(operation, kind) => {
                (Err(Error::new(kind, operation)), RequestOutcome::Refused(kind))
            }
            (Ok(()), Some(InjectedFault::LoseRequest)) => {
                (Err(unanswered(operation)), RequestOutcome::Lost)
            }
            (Ok(()), Some(InjectedFault::LoseResponse)) => match work(world, now, fault) {
                Ok(_) => (Err(unanswered(operation)), RequestOutcome::DoneUnacknowledged),
                Err(error) => (Err(unanswered(operation)), RequestOutcome::Refused(error.kind())),
            },
            (
                Ok(()),
                None
                | Some(
                    InjectedFault::Refuse(_)
                    | InjectedFault::Delay(_)
                    | InjectedFault::DoneLater(_)
                    | InjectedFault::FailLater(_)
                    | InjectedFault::Flap,
                ),
            ) => heard(work(world, now, fault)),
        };
        world.record(now, call, outcome, before);
        let id = format!("memory-{}", world.history.len());
        result.map_err(|error| error.with_request_id(id))
    }

    /// Starts an operation on an instance, if its state allows it.
    pub(super) async fn act(
        &self,
        call: Call<'_>,
        id: &InstanceId,
        (allowed, way): (&[InstanceState], [InstanceState; 2]),
        image: Option<&ImageId>,
    ) -> Result<()> {
        let operation = call.operation;
        self.call(call, |world, now, _| {
            if image.is_some_and(|image| world.image(now, image).is_none()) {
                return Err(Error::new(ErrorKind::Invalid, operation).because("no such image"));
            }
            let done = after(now, world.settings.work.draw(&mut world.random));
            let machine = world.find(now, id).ok_or(Error::new(ErrorKind::NotFound, operation))?;
            if !machine.state(now).is_some_and(|state| allowed.contains(state)) {
                return Err(Error::new(ErrorKind::Conflict, operation)
                    .because("the state of the instance does not allow it"));
            }
            let [first, last] = way;
            machine.follow(now, [(now, first), (done, last)]);
            if let Some(image) = image {
                machine.set_image(now, image.clone());
            }
            Ok(())
        })
        .await
    }

    pub(super) fn require(
        &self,
        capability: Capability,
        operation: ApiOperation,
        subject: &str,
    ) -> Result<()> {
        if self.describe().can(capability) {
            return Ok(());
        }
        Err(Error::unsupported(operation).on(subject))
    }
}

/// True for a refusal that a cloud decides only for a launch which it does not know by its token.
fn is_for_room(operation: ApiOperation, kind: ErrorKind) -> bool {
    operation == ApiOperation::Launch && matches!(kind, ErrorKind::Capacity | ErrorKind::Quota)
}

/// The outcome of a request with a response.
fn heard<T>(result: Result<T>) -> (Result<T>, RequestOutcome) {
    let outcome = result
        .as_ref()
        .map_or_else(|error| RequestOutcome::Refused(error.kind()), |_| RequestOutcome::Done);
    (result, outcome)
}

/// The error without a response: a request that changes something may have been carried out.
fn unanswered(operation: ApiOperation) -> Error {
    let kind = match operation {
        ApiOperation::Launch
        | ApiOperation::Terminate
        | ApiOperation::Rebuild
        | ApiOperation::Reboot
        | ApiOperation::Start
        | ApiOperation::Stop
        | ApiOperation::Snapshot => ErrorKind::Ambiguous,
        ApiOperation::Authenticate
        | ApiOperation::List
        | ApiOperation::Get
        | ApiOperation::Addresses
        | ApiOperation::Shapes
        | ApiOperation::Images
        | ApiOperation::Limits
        | ApiOperation::Metadata
        | ApiOperation::Configure => ErrorKind::Unavailable,
    };
    Error::new(kind, operation).because("no answer")
}
