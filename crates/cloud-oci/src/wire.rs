//! The used parts of OCI's responses. Unknown fields are ignored, and missing ones are none.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A map that may be missing or null.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map: Option<BTreeMap<String, String>> = Option::deserialize(from)?;
    Ok(map.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Instance {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    pub(crate) lifecycle_state: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(crate) freeform_tags: BTreeMap<String, String>,
    pub(crate) shape: Option<String>,
    pub(crate) availability_domain: Option<String>,
    pub(crate) fault_domain: Option<String>,
    pub(crate) preemptible_instance_config: Option<IgnoredAny>,
    pub(crate) image_id: Option<String>,
    pub(crate) source_details: Option<Source>,
    pub(crate) time_created: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Source {
    pub(crate) image_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VnicAttachment {
    pub(crate) instance_id: Option<String>,
    pub(crate) lifecycle_state: Option<String>,
    pub(crate) nic_index: Option<u32>,
    pub(crate) subnet_id: Option<String>,
    pub(crate) time_created: Option<String>,
    pub(crate) vnic_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Vnic {
    pub(crate) is_primary: Option<bool>,
    pub(crate) private_ip: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrivateIp {
    pub(crate) ip_address: Option<String>,
    pub(crate) is_primary: Option<bool>,
    pub(crate) vnic_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Image {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(crate) freeform_tags: BTreeMap<String, String>,
    pub(crate) lifecycle_state: Option<String>,
    pub(crate) time_created: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Shape {
    #[serde(rename = "shape")]
    pub(crate) name: String,
    pub(crate) ocpus: Option<f64>,
    #[serde(rename = "memoryInGBs")]
    pub(crate) memory_in_gbs: Option<f64>,
    pub(crate) gpus: Option<u32>,
    pub(crate) local_disks: Option<u32>,
    #[serde(rename = "localDisksTotalSizeInGBs")]
    pub(crate) local_disks_total_size_in_gbs: Option<f64>,
    pub(crate) is_flexible: Option<bool>,
    pub(crate) ocpu_options: Option<OcpuOptions>,
    pub(crate) memory_options: Option<MemoryOptions>,
}

#[derive(Deserialize)]
pub(crate) struct OcpuOptions {
    pub(crate) min: Option<f64>,
}

#[derive(Deserialize)]
pub(crate) struct MemoryOptions {
    #[serde(rename = "minInGBs")]
    pub(crate) min_in_gbs: Option<f64>,
}

/// An availability domain or a fault domain.
#[derive(Deserialize)]
pub(crate) struct Domain {
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LimitValue {
    pub(crate) name: String,
    pub(crate) availability_domain: Option<String>,
    pub(crate) value: Option<i64>,
}

#[derive(Deserialize)]
pub(crate) struct ResourceAvailability {
    pub(crate) used: Option<i64>,
    pub(crate) available: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subnet {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    pub(crate) availability_domain: Option<String>,
    pub(crate) vcn_id: Option<String>,
    pub(crate) lifecycle_state: Option<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(crate) freeform_tags: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkRequest {
    pub(crate) id: Option<String>,
    pub(crate) operation_type: Option<String>,
    pub(crate) status: Option<String>,
    pub(crate) time_accepted: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WorkRequestError {
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CapacityReport {
    #[serde(default)]
    pub(crate) shape_availabilities: Vec<ShapeAvailability>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShapeAvailability {
    pub(crate) instance_shape: Option<String>,
    pub(crate) fault_domain: Option<String>,
    pub(crate) availability_status: Option<String>,
    pub(crate) available_count: Option<u64>,
}
