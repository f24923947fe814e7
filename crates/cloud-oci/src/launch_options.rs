//! Where instances go and how they are made, for all launches of a provider.

use cloud_core::{Secret, SubnetId, Zone};
use serde_json::{Map, Value};
use std::time::Duration;

/// Where instances go and how they are made; what a launch says itself goes before it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The compartment of instances and images.
    pub compartment: String,
    /// The subnet.
    pub subnet: Option<SubnetId>,
    /// The availability domain.
    pub zone: Option<Zone>,
    /// Whether the host name of an instance is its name. OCI wants it unique in the subnet, and the
    /// subnet's DNS answers to it.
    pub hostname: bool,
    /// The compute cluster of bare metal machines, for RDMA between them.
    pub compute_cluster: Option<String>,
    /// How many things to ask for at a time when things are listed, at most 1000.
    pub page_size: u16,
    /// How long a listing waits for the reasons of launches that were lost. Instances that run are not to
    /// wait for what became of others: what is not known by then is asked for at the next listing.
    pub longest_explanation: Duration,
    /// Any other fields of OCI's `LaunchInstanceDetails`; what a launch says itself goes before
    /// them. Secret, because user data may be among them. `preemptibleInstanceConfig` counts only
    /// for launches that are preemptible.
    pub template: Secret<Map<String, Value>>,
}

impl LaunchOptions {
    /// A site of which only the compartment is known; the fields take the rest.
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
