//! A machine as a list of past and future changes, so that its state is a function of time.

use crate::{ErrorKind, Fault, ImageId, Instance, InstanceId, InstanceSpec, InstanceState};
use std::net::IpAddr;
use std::time::SystemTime;
use tokio::time::Instant;

/// The life of an instance, whether it is still listed or not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MachineTimeline {
    /// The instance as it was launched.
    pub instance: Instance,
    /// Its states so far, with when each began.
    pub states: Vec<(Instant, InstanceState)>,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) id: InstanceId,
    pub(super) spec: InstanceSpec,
    created: SystemTime,
    address: IpAddr,
    addressed: Option<Instant>,
    fault: Option<Fault>,
    /// The states with their start; the first is the launch.
    states: Vec<(Instant, InstanceState)>,
    /// The images with their start.
    images: Vec<(Instant, ImageId)>,
    forgotten: Option<Instant>,
}

impl Machine {
    pub(super) fn new(
        id: InstanceId,
        spec: InstanceSpec,
        (now, created): (Instant, SystemTime),
        address: IpAddr,
    ) -> Self {
        let images = vec![(now, spec.image.clone())];
        Self {
            id,
            spec,
            created,
            address,
            addressed: None,
            fault: None,
            states: vec![(now, InstanceState::Pending)],
            images,
            forgotten: None,
        }
    }

    /// Runs from a time on, and gets its address later.
    pub(super) fn run_at(&mut self, running: Instant, addressed: Instant) {
        self.states.push((running, InstanceState::Running));
        self.addressed = Some(addressed);
    }

    /// Fails at a time.
    pub(super) fn fail_at(&mut self, at: Instant, kind: ErrorKind) {
        self.states.push((at, InstanceState::Failed));
        let message = match kind {
            ErrorKind::Capacity => "No valid host was found.".to_owned(),
            other => format!("the launch went wrong: {other}"),
        };
        self.fault = Some(Fault { kind, message });
    }

    /// Replaces the future states by these.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        way: impl IntoIterator<Item = (Instant, InstanceState)>,
    ) {
        self.states.retain(|(begin, _)| *begin <= now);
        self.states.extend(way);
    }

    pub(super) fn set_image(&mut self, now: Instant, image: ImageId) {
        self.images.push((now, image));
    }

    pub(super) fn forget_at(&mut self, at: Instant) {
        self.forgotten = Some(at);
    }

    pub(super) fn state(&self, at: Instant) -> Option<&InstanceState> {
        if self.forgotten.is_some_and(|forgotten| forgotten <= at) {
            return None;
        }
        latest(&self.states, at)
    }

    pub(super) fn boots_until(&self, at: Instant) -> usize {
        let up = |(begin, state): &&(Instant, InstanceState)| {
            *begin <= at && *state == InstanceState::Running
        };
        self.states.iter().filter(up).count()
    }

    pub(super) fn address(&self, at: Instant) -> Option<IpAddr> {
        let live = self.state(at)?.is_live();
        (live && self.addressed.is_some_and(|addressed| addressed <= at)).then_some(self.address)
    }

    /// Its states until a time, with when each began.
    pub(super) fn timeline(&self, until: Instant) -> MachineTimeline {
        let begun = self.states.iter().filter(|(begin, _)| *begin <= until);
        let instance = Instance::launched(self.id.clone(), &self.spec);
        MachineTimeline { instance, states: begun.cloned().collect() }
    }

    /// The instance at a time; none before its launch and after it is forgotten.
    pub(super) fn view(&self, at: Instant) -> Option<Instance> {
        let state = self.state(at)?.clone();
        let failed = state == InstanceState::Failed;
        let mut instance = Instance::launched(self.id.clone(), &self.spec);
        instance.state = state;
        instance.image = latest(&self.images, at).cloned();
        instance.address = self.address(at);
        instance.created = Some(self.created);
        instance.fault = self.fault.clone().filter(|_| failed);
        Some(instance)
    }
}

/// The last entry that has started.
fn latest<T>(timeline: &[(Instant, T)], at: Instant) -> Option<&T> {
    timeline.iter().rev().find(|(begin, _)| *begin <= at).map(|(_, value)| value)
}
