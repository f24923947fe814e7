//! Options of all launches of a provider.

use cloud_core::{Secret, SubnetId, Zone};
use serde_json::{Map, Value};
use std::time::Duration;

/// Options of all launches of a provider. The spec of a launch overrides them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The compartment of instances and images.
    pub compartment: String,
    /// The subnet.
    pub subnet: Option<SubnetId>,
    /// The availability domain.
    pub zone: Option<Zone>,
    /// True to set the name of an instance as its host name, which the subnet's DNS resolves. It must be unique in the
    /// subnet.
    pub hostname: bool,
    /// The compute cluster of bare metal machines, for RDMA between them.
    pub compute_cluster: Option<String>,
    /// Page size of listings, at most 1000.
    pub page_size: u16,
    /// How long a listing waits for the reasons of failed launches. The next listing continues, so that running instances
    /// do not wait for failed ones.
    pub longest_explanation: Duration,
    /// Any other fields of OCI's `LaunchInstanceDetails`, which the launch overrides. It is secret, because it may contain
    /// user data. `preemptibleInstanceConfig` counts only for preemptible launches.
    pub template: Secret<Map<String, Value>>,
}

impl LaunchOptions {
    /// Creates options with a compartment. Set other options in the fields.
    #[must_use]
    pub fn new(compartment: impl Into<String>) -> Self {
        Self {
            compartment: compartment.into(),
            subnet: None,
            zone: None,
            hostname: true,
            compute_cluster: None,
            page_size: 1000,
            longest_explanation: Duration::from_secs(5),
            template: Secret::default(),
        }
    }
}
