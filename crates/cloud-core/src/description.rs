//! The description of a cloud, which needs no request.

use crate::{
    ApiOperation, Architecture, Capabilities, Capability, Error, InstanceSpec, Result, Shape,
    ShapeName,
};

/// Facts about a cloud and the configuration of its provider.
///
/// Callers decide by this description and never by the name of a cloud. A stand-in for an unreachable cloud has the same
/// description ([`Unreachable::describing`](crate::Unreachable::describing)).
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
    /// The name of the cloud, for messages.
    pub name: &'static str,
    /// Its optional capabilities.
    pub capabilities: Capabilities,
    /// True for text that is an id in this cloud (of an instance, image or subnet) and not a name.
    pub is_id: fn(&str) -> bool,
    /// Its term for a zone, for messages, such as `availability domain`.
    pub zone_term: &'static str,
    /// How to name a zone, for the message on a zone that the cloud does not have.
    pub zone_help: Option<&'static str>,
    /// The feature of nodes in slurm.conf that names their zone.
    pub zone_feature: &'static str,
    /// True if a launch has to name its zone.
    pub needs_zone: bool,
    /// True for valid names of instances, if the cloud restricts them.
    pub is_host_name: Option<fn(&str) -> bool>,
    /// Its architectures, if known. The first is that of shapes for which the cloud reports none.
    pub architectures: Vec<Architecture>,
    /// The shapes that its provider knows without a request.
    pub built_in_shapes: Option<BuiltInShapes>,
    /// Returns the limit that counts the instances of a shape, in addition to the common ones ([`Limit`](crate::Limit)).
    pub limit_of: fn(&ShapeName) -> Option<ShapeLimit>,
    /// Maximum number of instances per launch request. If it is above 1, callers batch launches for
    /// [`launch_many`](crate::Provider::launch_many).
    pub batch: usize,
    /// True if a listing shows no addresses, and instances have theirs before they run: who waits for an instance may ask
    /// for the address beside.
    pub addresses_apart: bool,
}

impl Description {
    /// Creates the description of a cloud without optional capabilities. Set other properties in the fields.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            capabilities: Capabilities::default(),
            is_id: |_| false,
            zone_term: "zone",
            zone_help: None,
            zone_feature: "zone",
            needs_zone: false,
            is_host_name: None,
            architectures: Vec::new(),
            built_in_shapes: None,
            limit_of: |_| None,
            batch: 1,
            addresses_apart: false,
        }
    }

    /// True if the cloud has this capability.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.capabilities.has(capability)
    }

    /// Returns an error for a launch that needs a missing capability. Nothing is silently ignored.
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

/// The shapes that a provider knows without a request.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInShapes {
    /// Returns all shapes of fixed size.
    pub fixed: fn() -> Vec<Shape>,
    /// Returns the shape of this name if the name contains its size.
    pub sized: fn(&ShapeName) -> Option<Shape>,
    /// Returns the valid name of that kind which is most similar to an unknown one.
    pub nearest: fn(&ShapeName) -> Option<ShapeName>,
}

/// The limit that counts the instances of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeLimit {
    /// The name of the limit.
    pub name: String,
    /// The unit that it counts.
    pub counts: Counted,
}

/// The unit of a limit.
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
