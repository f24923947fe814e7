//! Shapes: machine types by name.

mod citc;
mod memory;
mod oci;
mod read;

pub use memory::MemoryPolicy;

use crate::near::nearest;
use std::collections::BTreeMap;

/// A machine type: what OCI calls a shape and OpenStack a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShape {
    /// Processor sockets.
    pub sockets: u32,
    /// Cores in each socket.
    pub cores_per_socket: u32,
    /// Hardware threads in each core.
    pub threads_per_core: u32,
    /// Main memory.
    pub memory: Memory,
    /// Generic resources as slurm.conf writes them, such as `gpu:a100:8`; empty if none.
    pub gres: String,
    /// The processor's architecture, such as `x86_64` or `aarch64`.
    pub arch: String,
}

/// A machine's memory in MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The memory that the cloud advertises; the operating system sees less, as a [`MemoryPolicy`] estimates.
    Nominal(u64),
    /// `RealMemory` as an operator has set it.
    Real(u64),
}

/// A flavor that a cloud's API reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// Virtual processors, each of which is a core with one thread to Slurm.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory: u64,
    /// Generic resources; empty if none.
    pub gres: String,
    /// Architecture.
    pub arch: String,
}

impl From<Flavor> for NodeShape {
    fn from(flavor: Flavor) -> Self {
        Self {
            sockets: 1,
            cores_per_socket: flavor.vcpus,
            threads_per_core: 1,
            memory: Memory::Nominal(flavor.memory),
            gres: flavor.gres,
            arch: flavor.arch,
        }
    }
}

/// All known shapes by name.
///
/// A shape that is [inserted](Shapes::insert) or [read](Shapes::read) replaces a known one, so that an operator's file
/// corrects the built-in table.
///
/// ```
/// use slurmconf::{MemoryPolicy, Shapes};
///
/// let shapes = Shapes::oci();
/// let shape = shapes.get("VM.Standard.E4.Flex.16.256").unwrap();
/// assert_eq!((shape.cores_per_socket, shape.threads_per_core), (16, 2));
/// let policy = MemoryPolicy::CitcOracle;
/// assert_eq!(policy.real_memory("VM.Standard.E4.Flex.16.256", &shape), 253_700);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shapes {
    by_name: BTreeMap<String, NodeShape>,
    oci: bool,
}

impl Shapes {
    /// No shapes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// OCI's shapes, flexible ones in CitC's spelling `VM.Standard.E4.Flex.<OCPUs>.<GB>`.
    #[must_use]
    pub fn oci() -> Self {
        let by_name = oci::table().map(|(name, shape)| (name.to_owned(), shape)).collect();
        Self { by_name, oci: true }
    }

    /// Adds or replaces a shape.
    pub fn insert(&mut self, name: impl Into<String>, shape: impl Into<NodeShape>) {
        self.by_name.insert(name.into(), shape.into());
    }

    /// The shape with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<NodeShape> {
        let flexible = || if self.oci { oci::flexible(name) } else { None };
        self.by_name.get(name).cloned().or_else(flexible)
    }

    /// The known name most similar to `name`.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<String> {
        let near = nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned);
        let flexible = if self.oci { oci::nearest_flexible(name) } else { None };
        flexible.or(near)
    }

    /// All names and shapes in alphabetical order, without flexible shapes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NodeShape)> {
        self.by_name.iter().map(|(name, shape)| (name.as_str(), shape))
    }
}
