//! Options of all launches of a provider.

use crate::launch::overlay;
use cloud_core::{Secret, SubnetId, Zone};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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
    /// The network security groups, by id.
    pub network_security_groups: Vec<String>,
    /// Size of the boot volume.
    pub boot_volume_gb: Option<u32>,
    /// True to allow version 1 of the metadata service, which is open to server-side request forgery.
    pub legacy_imds: bool,
    /// Free-form tags in addition to those of the launch.
    pub freeform_tags: BTreeMap<String, String>,
    /// Defined tags, by tag namespace.
    pub defined_tags: BTreeMap<String, BTreeMap<String, String>>,
    /// Page size of listings, at most 1000.
    pub page_size: u16,
    /// How long a listing waits for the reasons of failed launches. The next listing continues, so that running instances
    /// do not wait for failed ones.
    pub longest_explanation: Duration,
    /// Any other fields of OCI's `LaunchInstanceDetails`, which the options and the launch override. It is secret, because it may contain
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
            network_security_groups: Vec::new(),
            boot_volume_gb: None,
            legacy_imds: false,
            freeform_tags: BTreeMap::new(),
            defined_tags: BTreeMap::new(),
            page_size: 1000,
            longest_explanation: Duration::from_secs(5),
            template: Secret::default(),
        }
    }

    /// The fields of OCI's `LaunchInstanceDetails` that all launches share: the template, overlaid with the options.
    pub(crate) fn shared_fields(&self) -> Value {
        let mut fields = Value::Object(self.template.expose().clone());
        let groups = Some(&self.network_security_groups).filter(|groups| !groups.is_empty());
        let defined = Some(&self.defined_tags).filter(|tags| !tags.is_empty());
        let imds = self.legacy_imds.then(|| json!({"areLegacyImdsEndpointsDisabled": false}));
        overlay(
            &mut fields,
            json!({
                "createVnicDetails": {"nsgIds": groups},
                "definedTags": defined,
                "freeformTags": self.freeform_tags,
                "instanceOptions": imds,
                "sourceDetails": {"bootVolumeSizeInGBs": self.boot_volume_gb},
            }),
        );
        fields
    }
}
