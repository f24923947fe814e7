//! What a cloud has to offer: shapes, images, limits and capabilities.

use crate::{Architecture, ImageId, ImageName, ShapeName, Tags, Zone};
use std::collections::BTreeSet;
use std::time::SystemTime;

/// A kind of machine that can be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Its name.
    pub name: ShapeName,
    /// The architecture of its processors, where the cloud says it.
    pub architecture: Option<Architecture>,
    /// Hardware threads; the smallest size if it is flexible.
    pub vcpus: u32,
    /// Hardware threads in each core, where the cloud says it.
    pub threads_per_core: Option<u32>,
    /// Memory in MiB; the smallest size if it is flexible.
    pub memory_mib: u64,
    /// GPUs.
    pub gpus: u32,
    /// Their model, such as `a100`, where the cloud says it.
    pub gpu_model: Option<String>,
    /// Local disks, whose contents end with the instance.
    pub local_disks: u32,
    /// The size of all local disks together, in GiB.
    pub local_disk_gib: u64,
    /// True if a launch has to give its size: behind the name of the shape, see [`offers`](Self::offers).
    pub flexible: bool,
    /// Zones that offer it; none if the cloud does not say.
    pub zones: Vec<Zone>,
}

impl Shape {
    /// A shape of fixed size without GPUs or local disks; the fields take the rest.
    #[must_use]
    pub fn new(name: ShapeName, vcpus: u32, memory_mib: u64) -> Self {
        Self {
            name,
            architecture: None,
            vcpus,
            threads_per_core: None,
            memory_mib,
            gpus: 0,
            gpu_model: None,
            local_disks: 0,
            local_disk_gib: 0,
            flexible: false,
            zones: Vec::new(),
        }
    }

    /// True if a launch may ask for this shape by that name: its own or, if it is flexible, its own with a size behind it.
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
    /// When it was made.
    pub created: Option<SystemTime>,
    /// True if an instance can be launched from it now.
    pub available: bool,
}

impl Image {
    /// An image that is ready for use; the fields take the rest.
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
    /// True if the image is wanted; also asked about what the cloud says it has filtered.
    #[must_use]
    pub fn matches(&self, image: &Image) -> bool {
        image.tags.include(&self.tags) && self.name.as_ref().is_none_or(|name| *name == image.name)
    }
}

/// How much of something may be used, and is.
///
/// Every cloud may have the limits `instances`, `cores` (hardware threads) and `ram_mib`; others have the names that
/// [`Description::limit_of`](crate::Description::limit_of) gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name.
    pub name: String,
    /// Where it counts, if not everywhere.
    pub zone: Option<Zone>,
    /// How much may be used; none if there is no bound.
    pub most: Option<u64>,
    /// How much is used; none if the cloud does not say.
    pub used: Option<u64>,
}

/// Something that not every cloud can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// A launch token makes a repeated launch safe; without it the token is ignored.
    LaunchToken,
    /// A new image in place, with identity and address kept.
    Rebuild,
    /// Ask the operating system to reboot, instead of cutting the power.
    SoftReboot,
    /// Start a stopped instance.
    Start,
    /// Make an image of an instance.
    Snapshot,
    /// List shapes and images.
    Catalog,
    /// Tell limits and use.
    Limits,
    /// Instances that may be taken away.
    Preemptible,
    /// A choice of fault domain.
    FaultDomain,
}

impl Capability {
    /// Every capability, for tables and tests.
    pub const ALL: [Self; 9] = [
        Self::LaunchToken,
        Self::Rebuild,
        Self::SoftReboot,
        Self::Start,
        Self::Snapshot,
        Self::Catalog,
        Self::Limits,
        Self::Preemptible,
        Self::FaultDomain,
    ];
}

/// What a cloud can do beyond the minimum; a planner asks before it plans.
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
    /// All that there are.
    #[must_use]
    pub fn all() -> Self {
        Self::from(Capability::ALL)
    }

    /// True if the cloud can do it.
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
