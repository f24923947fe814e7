//! What a cloud offers: shapes, images, limits and capabilities.

use crate::{Architecture, ImageId, ImageName, ShapeName, Tags, Zone};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// A kind of machine that can be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Its name.
    pub name: ShapeName,
    /// The architecture of its processors, if the cloud reports it.
    pub architecture: Option<Architecture>,
    /// Hardware threads; the minimum for a flexible shape.
    pub vcpus: u32,
    /// Hardware threads per core, if the cloud reports it.
    pub threads_per_core: Option<u32>,
    /// Processor sockets, if the cloud reports them.
    pub sockets: Option<u32>,
    /// Memory in MiB; the minimum for a flexible shape.
    pub memory_mib: u64,
    /// Number of GPUs.
    pub gpus: u32,
    /// Model of the GPUs, such as `a100`, if the cloud reports it.
    pub gpu_model: Option<String>,
    /// Number of ephemeral local disks.
    pub local_disks: u32,
    /// The size of all local disks together, in GiB.
    pub local_disk_gib: u64,
    /// True if a launch has to append the size to the name, see [`offers`](Self::offers).
    pub flexible: bool,
    /// Zones that offer it; empty if the cloud does not report them.
    pub zones: Vec<Zone>,
}

impl Shape {
    /// Creates a shape of fixed size without GPUs or local disks. Set other properties in the fields.
    #[must_use]
    pub fn new(name: ShapeName, vcpus: u32, memory_mib: u64) -> Self {
        Self {
            name,
            architecture: None,
            vcpus,
            threads_per_core: None,
            sockets: None,
            memory_mib,
            gpus: 0,
            gpu_model: None,
            local_disks: 0,
            local_disk_gib: 0,
            flexible: false,
            zones: Vec::new(),
        }
    }

    /// True if a launch may request this shape by that name: its own or, for a flexible shape, its own with a size
    /// appended.
    ///
    /// ```
    /// use cloud_core::{Shape, ShapeName};
    ///
    /// let mut flexible = Shape::new(ShapeName::new("large"), 2, 1024);
    /// flexible.flexible = true;
    /// assert!(flexible.offers(&ShapeName::new("large.16.256")));
    /// assert!(!flexible.offers(&ShapeName::new("large")) && !flexible.offers(&ShapeName::new("larger.16")));
    /// ```
    #[must_use]
    pub fn offers(&self, wanted: &ShapeName) -> bool {
        if !self.flexible {
            return *wanted == self.name;
        }
        let size = wanted.as_str().strip_prefix(self.name.as_str());
        size.is_some_and(|size| size.len() > 1 && size.starts_with(['.', '-']))
    }
}

/// An image that instances can boot from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Image {
    /// The cloud's id.
    pub id: ImageId,
    /// Its name; not unique.
    pub name: ImageName,
    /// Its tags, complete.
    pub tags: Tags,
    /// Time of creation.
    pub created: Option<SystemTime>,
    /// True if an instance can be launched from it now.
    pub available: bool,
}

impl Image {
    /// Creates an image that is ready for use. Set other properties in the fields.
    #[must_use]
    pub fn new(id: ImageId, name: ImageName) -> Self {
        Self { id, name, tags: Tags::new(), created: None, available: true }
    }
}

/// Which images to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageFilter {
    /// Tags that an image must have.
    pub tags: Tags,
    /// The exact name.
    pub name: Option<ImageName>,
}

impl ImageFilter {
    /// True if the image passes the filter. Also checked for results that the cloud has already filtered.
    #[must_use]
    pub fn matches(&self, image: &Image) -> bool {
        image.tags.include(&self.tags) && self.name.as_ref().is_none_or(|name| *name == image.name)
    }
}

/// A limit and its current use.
///
/// Every cloud may have the limits `instances`, `cores` (hardware threads) and `ram_mib`; others have the names that
/// [`Description::limit_of`](crate::Description::limit_of) gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// The zone to which it applies; none for all zones.
    pub zone: Option<Zone>,
    /// The maximum; none if there is no bound.
    pub most: Option<u64>,
    /// The current use; none if the cloud does not report it.
    pub used: Option<u64>,
}

/// Whether a zone has machines of a shape now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// It has so many.
    Machines(u64),
    /// It has some, and the cloud does not say how many.
    Some,
    /// It has none.
    None,
}

/// An optional capability of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Launch tokens make repeated launches idempotent. Without the capability, tokens are ignored.
    LaunchToken,
    /// Replace the image in place, keeping identity and address.
    Rebuild,
    /// Reboot through the operating system instead of a power cycle.
    SoftReboot,
    /// Stop an instance, and start it again.
    Stop,
    /// Make an image of an instance.
    Snapshot,
    /// List shapes and images.
    Catalog,
    /// Report limits and their use.
    Limits,
    /// Launch preemptible instances.
    Preemptible,
    /// Choose a fault domain.
    FaultDomain,
}

impl Capability {
    /// Every capability, for tables and tests.
    pub const ALL: [Self; 9] = [
        Self::LaunchToken,
        Self::Rebuild,
        Self::SoftReboot,
        Self::Stop,
        Self::Snapshot,
        Self::Catalog,
        Self::Limits,
        Self::Preemptible,
        Self::FaultDomain,
    ];
}

/// The optional capabilities of a cloud.
///
/// ```
/// use cloud_core::{Capabilities, Capability};
///
/// let nova = Capabilities::from([Capability::Rebuild, Capability::SoftReboot]);
/// assert!(nova.has(Capability::Rebuild));
/// assert!(!nova.has(Capability::LaunchToken));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// All capabilities.
    #[must_use]
    pub fn all() -> Self {
        Self::from(Capability::ALL)
    }

    /// True if the cloud has this capability.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// Removes one capability.
    #[must_use]
    pub fn without(mut self, capability: Capability) -> Self {
        self.0.remove(&capability);
        self
    }
}

impl<const N: usize> From<[Capability; N]> for Capabilities {
    fn from(capabilities: [Capability; N]) -> Self {
        Self(capabilities.into())
    }
}
