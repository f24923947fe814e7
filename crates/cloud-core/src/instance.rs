//! An instance as it is, and as it is asked for.

use crate::{
    ErrorKind, FaultDomain, ImageId, InstanceId, InstanceName, InstanceState, LaunchToken, Secret,
    ShapeName, SubnetId, Tags, Zone,
};
use std::net::IpAddr;
use std::time::SystemTime;

/// An instance as the cloud shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    /// The cloud's id.
    pub id: InstanceId,
    /// The name shown; not unique.
    pub name: InstanceName,
    /// What it is doing.
    pub state: InstanceState,
    /// Its tags, complete.
    pub tags: Tags,
    /// Its shape.
    pub shape: Option<ShapeName>,
    /// Where it is.
    pub zone: Option<Zone>,
    /// Where it is inside of its zone, from the widest unit to the narrowest, as far as the cloud shows it.
    pub location: Vec<String>,
    /// The image on its boot disk. Nova shows the new one as soon as a rebuild begins, so it
    /// says nothing until the state is running again.
    pub image: Option<ImageId>,
    /// Its first private address, where the cloud shows it in a listing;
    /// [`Provider::addresses`](crate::Provider::addresses) always knows.
    pub address: Option<IpAddr>,
    /// When it was made.
    pub created: Option<SystemTime>,
    /// Why it failed, if it did.
    pub fault: Option<Fault>,
}

impl Instance {
    /// An instance of which only this is known; the fields take the rest.
    #[must_use]
    pub fn new(id: InstanceId, name: InstanceName, state: InstanceState) -> Self {
        Self {
            id,
            name,
            state,
            tags: Tags::new(),
            shape: None,
            zone: None,
            location: Vec::new(),
            image: None,
            address: None,
            created: None,
            fault: None,
        }
    }

    /// An instance just launched, for clouds whose answer tells little more than the id.
    #[must_use]
    pub fn launched(id: InstanceId, spec: &InstanceSpec) -> Self {
        Self {
            tags: spec.tags.clone(),
            shape: Some(spec.shape.clone()),
            zone: spec.zone.clone(),
            image: Some(spec.image.clone()),
            ..Self::new(id, spec.name.clone(), InstanceState::Pending)
        }
    }
}

/// Why an instance failed after its launch had been accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind that the launch itself would have failed with, such as
    /// [`Capacity`](ErrorKind::Capacity).
    pub kind: ErrorKind,
    /// The cloud's words.
    pub message: String,
}

/// An instance as it is asked for.
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
    /// The name to show, also the host name where the cloud sets one.
    pub name: InstanceName,
    /// The shape, with its size where it leaves that open.
    pub shape: ShapeName,
    /// The image to boot from.
    pub image: ImageId,
    /// Where; the cloud or the provider's configuration chooses if none is given.
    pub zone: Option<Zone>,
    /// Which network; the provider's configuration chooses if none is given.
    pub subnet: Option<SubnetId>,
    /// Tags, set in the launch call itself, so that there is no moment without them.
    pub tags: Tags,
    /// Lines for the login user's `authorized_keys`.
    pub ssh_keys: Vec<String>,
    /// The key pair that the cloud keeps under this name; a cloud that keeps none takes `ssh_keys` alone.
    pub keypair: Option<String>,
    /// What cloud-init gets, not yet encoded; it may hold secrets.
    pub user_data: Option<Secret<String>>,
    /// Marks repeats of this launch.
    pub token: Option<LaunchToken>,
    /// May be taken away at any time, for a lower price.
    pub preemptible: bool,
    /// Where in the zone.
    pub fault_domain: Option<FaultDomain>,
}

impl InstanceSpec {
    /// The least that every launch needs; the fields take the rest.
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
