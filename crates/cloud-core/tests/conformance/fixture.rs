//! The stage of the cloud in memory.

use async_trait::async_trait;
use cloud_core::conformance::{Condition, Fixture};
use cloud_core::memory::{InjectedFault, MemoryCloud, MemoryCloudSettings, Throttle};
use cloud_core::{
    Capabilities, Capability, ImageId, InstanceId, InstanceName, InstanceSpec, Poll, ShapeName,
    Zone,
};
use std::time::Duration;

pub(crate) struct MemoryFixture(pub(crate) MemoryCloud);

const PAGE: usize = 3;

/// As OCI: tokens, addresses apart, and what is terminated is shown for a while.
pub(crate) fn like_oci(seed: u64) -> MemoryCloudSettings {
    let mut settings = MemoryCloudSettings::default();
    settings.seed = seed;
    settings.page = PAGE;
    settings.shows_addresses = false;
    settings
}

/// As Nova: addresses with the instances, no tokens, no fault domains, and what is deleted is gone at once.
pub(crate) fn like_nova(seed: u64) -> MemoryCloudSettings {
    let mut settings = like_oci(seed);
    settings.capabilities = Capabilities::all()
        .without(Capability::LaunchToken)
        .without(Capability::FaultDomain)
        .without(Capability::Preemptible);
    settings.shows_addresses = true;
    settings.linger = Duration::ZERO;
    settings.late_capacity = true;
    settings
}

/// A cloud that can do nothing but what all can.
pub(crate) fn bare(seed: u64) -> MemoryCloudSettings {
    let mut settings = like_nova(seed);
    settings.capabilities = Capabilities::default();
    settings.lag = Duration::ZERO;
    settings
}

#[async_trait]
impl Fixture for MemoryFixture {
    fn spec(&self, name: &str) -> InstanceSpec {
        let mut spec = InstanceSpec::new(
            InstanceName::new(name),
            ShapeName::new("small"),
            ImageId::new("image-1"),
        );
        spec.zone = Some(Zone::new("zone-1"));
        spec
    }

    fn other_image(&self) -> ImageId {
        ImageId::new("image-2")
    }

    fn run(&self) -> String {
        "run7".to_owned()
    }

    fn poll(&self) -> Poll {
        Poll::until(Duration::from_mins(10))
    }

    fn more_than_a_page(&self) -> Option<usize> {
        Some(2 * PAGE + 1)
    }

    fn boots(&self, id: &InstanceId) -> Option<usize> {
        self.0.boots(id)
    }

    async fn set(&self, condition: Condition) -> bool {
        let cloud = &self.0;
        let full = |late| {
            cloud.set_late_capacity(late);
            cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), Some(0));
        };
        match condition {
            Condition::Normal => {
                cloud.clear_faults();
                cloud.set_quota(None);
                cloud.set_throttle(None);
                cloud.set_capacity(ShapeName::new("small"), Some(Zone::new("zone-1")), None);
            }
            Condition::NoCapacity => full(false),
            Condition::NoCapacityLater => full(true),
            Condition::NoQuota => cloud.set_quota(Some(0)),
            Condition::Throttled => cloud.set_throttle(Some(Throttle { rate: 0.1, burst: 0.5 })),
            Condition::ResponseLost(operation) => {
                cloud.inject(operation, InjectedFault::LoseResponse);
            }
        }
        true
    }
}
