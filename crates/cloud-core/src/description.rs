//! What a cloud says about itself, before anything is asked of it.

use crate::{
    ApiOperation, Architecture, Capabilities, Capability, Error, InstanceSpec, Result, ShapeName,
};

/// What a cloud says about itself: facts of the cloud and of how its provider is set up.
///
/// Callers ask here and never for the name of a cloud. A stand-in for a cloud that cannot be reached says
/// the same as the cloud itself ([`Unreachable::describing`](crate::Unreachable::describing)).
///
/// ```
/// use cloud_core::{Capability, Description, is_uuid};
///
/// let mut nova = Description::new("OpenStack");
/// nova.capabilities = [Capability::Rebuild].into();
/// nova.is_id = is_uuid;
/// assert!(nova.can(Capability::Rebuild) && !nova.can(Capability::LaunchToken));
/// assert!((nova.is_id)("6b7f2c9e-0a8d-4a51-9a39-0e5f3b1c2d4e") && !(nova.is_id)("rocky-9.5"));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The cloud's name, for people.
    pub name: &'static str,
    /// What it can do beyond the minimum.
    pub capabilities: Capabilities,
    /// True for text that can only be an id of this cloud, and is no name: of an instance, an image, a subnet.
    pub is_id: fn(&str) -> bool,
    /// What it calls a zone, for people: `availability domain`.
    pub zone_term: &'static str,
    /// The feature by which nodes of slurm.conf name their zone.
    pub zone_feature: &'static str,
    /// True if a launch has to name its zone.
    pub needs_zone: bool,
    /// True of names that an instance may have, where the cloud limits them.
    pub is_host_name: Option<fn(&str) -> bool>,
    /// The architectures that it has; the first is that of a shape that does not say.
    pub architectures: Vec<Architecture>,
    /// The limit that counts the instances of a shape, beside those that every cloud may have ([`Limit`](crate::Limit)).
    pub limit_of: fn(&ShapeName) -> Option<ShapeLimit>,
    /// Most instances that one request launches; more than 1 has callers gather launches for
    /// [`launch_many`](crate::Provider::launch_many).
    pub batch: usize,
    /// True if a listing shows no addresses, and instances have theirs before they run: who waits for an instance may ask
    /// for the address beside.
    pub addresses_apart: bool,
}

impl Description {
    /// A cloud that can do no more than every cloud; the fields take the rest.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            capabilities: Capabilities::default(),
            is_id: |_| false,
            zone_term: "zone",
            zone_feature: "zone",
            needs_zone: false,
            is_host_name: None,
            architectures: vec![Architecture::new("x86_64")],
            limit_of: |_| None,
            batch: 1,
            addresses_apart: false,
        }
    }

    /// True if the cloud can do it.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.has(capability)
    }

    /// Refuses a launch that wishes for what this cloud does not claim; no wish is left out without a word.
    pub fn check(&self, spec: &InstanceSpec) -> Result<()> {
        let wishes = [
            (spec.preemptible, Capability::Preemptible, "preemptible instances"),
            (spec.fault_domain.is_some(), Capability::FaultDomain, "fault domains"),
        ];
        let beyond = wishes.into_iter().find(|(wished, wish, _)| *wished && !self.can(*wish));
        beyond.map_or(Ok(()), |(_, _, what)| {
            Err(Error::unsupported(ApiOperation::Launch).on(&spec.name).because(what))
        })
    }
}

/// The limit that counts the instances of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeLimit {
    /// The name of the limit.
    pub name: String,
    /// What it counts.
    pub counts: Counted,
}

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Instances.
    Instances,
    /// Physical cores.
    Cores,
    /// Hardware threads.
    Threads,
    /// GPUs.
    Gpus,
}

/// True for a UUID, with hyphens or without.
#[must_use]
pub fn is_uuid(text: &str) -> bool {
    let digits = || text.bytes().filter(|byte| *byte != b'-');
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    matches!(lengths[..], [8, 4, 4, 4, 12] | [32]) && digits().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_told_from_a_name() {
        assert!(is_uuid("6b7f2c9e-0a8d-4a51-9a39-0e5f3b1c2d4e"));
        assert!(is_uuid("6b7f2c9e0a8d4a519a390e5f3b1c2d4e"));
        for name in ["rocky-9.5", "deadbeef", "6b7f2c9e-0a8d-4a51-9a39-0e5f3b1c2d4x", ""] {
            assert!(!is_uuid(name), "{name}");
        }
    }
}
