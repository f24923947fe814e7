//! Instances, and specifications of launches.

use crate::{
    ErrorKind, FaultDomain, ImageId, InstanceId, InstanceName, InstanceState, LaunchToken, Secret,
    ShapeName, SubnetId, Tags, Zone,
};
use std::net::IpAddr;
use std::time::SystemTime;

/// An instance as the cloud reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    /// The cloud's id.
    pub id: InstanceId,
    /// The display name; not unique.
    pub name: InstanceName,
    /// Its state.
    pub state: InstanceState,
    /// Its tags, complete.
    pub tags: Tags,
    /// Its shape.
    pub shape: Option<ShapeName>,
    /// Its zone.
    pub zone: Option<Zone>,
    /// True if the cloud shows that it may take the instance away at any time.
    pub preemptible: bool,
    /// Where it is inside of its zone, from the widest unit to the narrowest, as far as the cloud shows it.
    pub location: Vec<String>,
    /// The image on its boot disk. Nova reports the new one as soon as a rebuild starts, so it is meaningful only while the
    /// instance is running.
    pub image: Option<ImageId>,
    /// Its first private address, if the cloud's listing has it. [`Provider::addresses`](crate::Provider::addresses) always
    /// returns it.
    pub address: Option<IpAddr>,
    /// Time of creation.
    pub created: Option<SystemTime>,
    /// Why it failed, if it did.
    pub fault: Option<Fault>,
}

impl Instance {
    /// Creates an instance. Set other properties in the fields.
    #[must_use]
    pub fn new(id: InstanceId, name: InstanceName, state: InstanceState) -> Self {
        Self {
            id,
            name,
            state,
            tags: Tags::new(),
            shape: None,
            zone: None,
            preemptible: false,
            location: Vec::new(),
            image: None,
            address: None,
            created: None,
            fault: None,
        }
    }

    /// Creates a newly launched instance, for clouds whose response has little more than the id.
    #[must_use]
    pub fn launched(id: InstanceId, spec: &InstanceSpec) -> Self {
        Self {
            tags: spec.tags.clone(),
            shape: Some(spec.shape.clone()),
            zone: spec.zone.clone(),
            preemptible: spec.preemptible,
            image: Some(spec.image.clone()),
            ..Self::new(id, spec.name.clone(), InstanceState::Pending)
        }
    }
}

/// Why an instance failed after its launch had been accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of error, as if the launch itself had failed, such as [`Capacity`](ErrorKind::Capacity).
    pub kind: ErrorKind,
    /// The cloud's message.
    pub message: String,
}

/// The specification of an instance to launch.
///
/// ```
/// use cloud_core::{ImageId, InstanceName, InstanceSpec, Secret, ShapeName, Tags, Zone};
///
/// let mut spec = InstanceSpec::new(
///     InstanceName::new("vm-0001"),
///     ShapeName::new("VM.Standard2.1"),
///     ImageId::new("image-1"),
/// );
/// spec.zone = Some(Zone::new("AD-1"));
/// spec.tags = Tags::from([("cluster", "blue")]);
/// spec.user_data = Some(Secret::new("#!/bin/sh".to_owned()));
/// assert!(!format!("{spec:?}").contains("/bin/sh"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceSpec {
    /// The display name, which is also the host name if the cloud sets one.
    pub name: InstanceName,
    /// The shape, with the size of a flexible shape.
    pub shape: ShapeName,
    /// The image to boot from.
    pub image: ImageId,
    /// The zone; by default, the cloud or the provider's configuration chooses.
    pub zone: Option<Zone>,
    /// The network; by default, the provider's configuration chooses.
    pub subnet: Option<SubnetId>,
    /// Tags, set in the launch call itself, so that the instance is never without them.
    pub tags: Tags,
    /// Lines for the login user's `authorized_keys`.
    pub ssh_keys: Vec<String>,
    /// The name of a key pair in the cloud. Clouds without key pairs use only `ssh_keys`.
    pub keypair: Option<String>,
    /// User data for cloud-init, not encoded. It may contain secrets.
    pub user_data: Option<Secret<String>>,
    /// The idempotency token of this launch.
    pub token: Option<LaunchToken>,
    /// True for a preemptible instance.
    pub preemptible: bool,
    /// The fault domain in the zone.
    pub fault_domain: Option<FaultDomain>,
}

impl InstanceSpec {
    /// Creates a specification with the minimum that every launch needs. Set other properties in the fields.
    #[must_use]
    pub fn new(name: InstanceName, shape: ShapeName, image: ImageId) -> Self {
        Self {
            name,
            shape,
            image,
            zone: None,
            subnet: None,
            tags: Tags::new(),
            ssh_keys: Vec::new(),
            keypair: None,
            user_data: None,
            token: None,
            preemptible: false,
            fault_domain: None,
        }
    }
}
