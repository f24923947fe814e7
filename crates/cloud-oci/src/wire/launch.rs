//! What we send. What is none is left out, never sent as null.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What cloud-init reads, by key; `Debug` shows no values, as one of them is the user data.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Metadata(pub BTreeMap<String, String>);

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

macro_rules! details {
    ($($(#[$docs:meta])+ $name:ident { $($(#[$field_docs:meta])+ $field:ident: $type:ty,)+ })+) => {$(
        $(#[$docs])+
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $(
                $(#[$field_docs])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$type>,
            )+
        }
    )+};
}

details! {
    /// The body of a launch; also a template, of which a launch fills in what it knows.
    LaunchDetails {
        /// Where.
        availability_domain: String,
        /// In which compartment.
        compartment_id: String,
        /// The network card.
        create_vnic_details: CreateVnicDetails,
        /// Tags of the tenancy's own name spaces.
        defined_tags: BTreeMap<String, BTreeMap<String, String>>,
        /// The name shown.
        display_name: String,
        /// Where in the availability domain.
        fault_domain: String,
        /// Tags.
        freeform_tags: BTreeMap<String, String>,
        /// The group of machines with a fast network between them.
        compute_cluster_id: String,
        /// The machine's devices.
        launch_options: LaunchOptions,
        /// What the machine may do.
        instance_options: InstanceOptions,
        /// What happens when its host fails.
        availability_config: AvailabilityConfig,
        /// That it may be taken away.
        preemptible_instance_config: PreemptibleConfig,
        /// What cloud-init reads.
        metadata: Metadata,
        /// Oracle's agent on the machine.
        agent_config: AgentConfig,
        /// The kind of machine.
        shape: String,
        /// Its size, if the kind leaves that open.
        shape_config: ShapeConfig,
        /// What it boots from.
        source_details: SourceDetails,
        /// Encryption between machine and volume.
        is_pv_encryption_in_transit_enabled: bool,
        /// Settings of the processor.
        platform_config: PlatformConfig,
    }

    /// The network card of a launch.
    CreateVnicDetails {
        /// Whether it gets a public address.
        assign_public_ip: bool,
        /// Whether it gets a name in the private DNS.
        assign_private_dns_record: bool,
        /// The name shown.
        display_name: String,
        /// The host name, unique in the subnet.
        hostname_label: String,
        /// Network security groups.
        nsg_ids: Vec<String>,
        /// The address to ask for.
        private_ip: String,
        /// Whether it may forward.
        skip_source_dest_check: bool,
        /// The subnet.
        subnet_id: String,
    }

    /// The devices of a machine.
    LaunchOptions {
        /// How the network card is emulated, such as `VFIO`.
        network_type: String,
    }

    /// What a machine may do.
    InstanceOptions {
        /// True to answer only the metadata service's version 2, which other machines' requests
        /// cannot be tricked into.
        are_legacy_imds_endpoints_disabled: bool,
    }

    /// What happens when the host of a machine fails.
    AvailabilityConfig {
        /// Move it while it runs.
        is_live_migration_preferred: bool,
        /// `RESTORE_INSTANCE` or `STOP_INSTANCE`.
        recovery_action: String,
    }

    /// That a machine may be taken away.
    PreemptibleConfig {
        /// What happens then.
        preemption_action: PreemptionAction,
    }

    /// Oracle's agent on the machine.
    AgentConfig {
        /// No metrics.
        is_monitoring_disabled: bool,
        /// No management.
        is_management_disabled: bool,
        /// No plugins.
        are_all_plugins_disabled: bool,
        /// Which plugins.
        plugins_config: Vec<AgentPlugin>,
    }

    /// A plugin of Oracle's agent.
    AgentPlugin {
        /// Its name.
        name: String,
        /// `ENABLED` or `DISABLED`.
        desired_state: String,
    }

    /// The size of a machine.
    ShapeConfig {
        /// Physical cores.
        ocpus: f64,
        /// Memory.
        #[serde(rename = "memoryInGBs")]
        memory_in_gbs: f64,
        /// How much of a core is promised, such as `BASELINE_1_1`.
        baseline_ocpu_utilization: String,
    }

    /// What a machine boots from.
    SourceDetails {
        /// `image` or `bootVolume`.
        source_type: String,
        /// Size of the boot volume.
        #[serde(rename = "bootVolumeSizeInGBs")]
        boot_volume_size_in_gbs: u64,
        /// The image.
        image_id: String,
        /// Speed of the boot volume.
        #[serde(rename = "bootVolumeVpusPerGB")]
        boot_volume_vpus_per_gb: u64,
    }

    /// What happens to a machine that is taken away.
    PreemptionAction {
        /// `TERMINATE`.
        r#type: String,
        /// Whether its boot volume stays.
        preserve_boot_volume: bool,
    }

    /// Settings of the processor.
    PlatformConfig {
        /// Such as `AMD_VM`.
        r#type: String,
        /// Two threads on each core.
        is_symmetric_multi_threading_enabled: bool,
    }
}

/// A change of an instance: another image on its boot volume.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UpdateInstanceDetails {
    pub(crate) source_details: ReplaceBootVolume,
    pub(crate) update_operation_constraint: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplaceBootVolume {
    pub(crate) source_type: ReplaceSource,
    pub(crate) is_preserve_boot_volume_enabled: bool,
    #[serde(rename = "bootVolumeSizeInGBs", skip_serializing_if = "Option::is_none")]
    pub(crate) boot_volume_size_in_gbs: Option<u64>,
    pub(crate) image_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ReplaceSource {
    Image,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateImageDetails<'a> {
    pub(crate) compartment_id: &'a str,
    pub(crate) display_name: &'a str,
    pub(crate) instance_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapacityReportDetails<'a> {
    pub(crate) compartment_id: &'a str,
    pub(crate) availability_domain: &'a str,
    pub(crate) shape_availabilities: Vec<ShapeAvailabilityRequest<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShapeAvailabilityRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault_domain: Option<String>,
    pub(crate) instance_shape: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instance_shape_config: Option<ShapeConfig>,
}
