//! The description of OpenStack.

use cloud_core::{Architecture, Capability, Description, is_uuid};

/// Describes OpenStack, without a request.
#[must_use]
pub fn describe() -> Description {
    let mut description = Description::new("OpenStack");
    description.capabilities = [
        Capability::Rebuild,
        Capability::SoftReboot,
        Capability::Stop,
        Capability::Snapshot,
        Capability::Catalog,
        Capability::Limits,
    ]
    .into();
    description.is_id = is_uuid;
    description.zone_term = "availability zone";
    description.architectures = ["x86_64", "aarch64"].map(Architecture::new).to_vec();
    description
}
