//! Shapes: machine types by name.

mod citc;
mod memory;
mod read;

pub use memory::MemoryPolicy;

use crate::near::nearest;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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

impl NodeShape {
    /// Creates a shape with cores of one thread, without generic resources and of unknown architecture. Set other properties in
    /// the fields.
    #[must_use]
    pub fn new(cores: u32, memory: Memory) -> Self {
        Self {
            sockets: 1,
            cores_per_socket: cores,
            threads_per_core: 1,
            memory,
            gres: String::new(),
            arch: String::new(),
        }
    }
}

/// Shapes whose names contain their size, so that they cannot be listed.
pub trait SizedShapes: fmt::Debug + Send + Sync {
    /// The shape with this name.
    fn get(&self, name: &str) -> Option<NodeShape>;

    /// The valid name most similar to an unknown one.
    fn nearest(&self, name: &str) -> Option<String>;
}

/// All known shapes by name.
///
/// A shape that is [inserted](Shapes::insert) or [read](Shapes::read) replaces a known one, so that an operator's file
/// corrects what the cloud reports.
///
/// ```
/// use slurmconf::{Memory, MemoryPolicy, NodeShape, Shapes};
///
/// let mut shapes = Shapes::new();
/// shapes.insert("m1.large", NodeShape::new(4, Memory::Nominal(8192)));
/// let large = shapes.get("m1.large").unwrap();
/// assert_eq!(MemoryPolicy::Seen.real_memory("m1.large", &large), 7463);
/// assert_eq!(shapes.nearest("m1.lrage").as_deref(), Some("m1.large"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    by_name: BTreeMap<String, NodeShape>,
    sized: Option<Arc<dyn SizedShapes>>,
}

impl Shapes {
    /// No shapes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds shapes whose names contain their size.
    #[must_use]
    pub fn with_sized(mut self, sized: impl SizedShapes + 'static) -> Self {
        self.sized = Some(Arc::new(sized));
        self
    }

    /// Adds or replaces a shape.
    pub fn insert(&mut self, name: impl Into<String>, shape: NodeShape) {
        self.by_name.insert(name.into(), shape);
    }

    /// The shape with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<NodeShape> {
        let sized = || self.sized.as_ref()?.get(name);
        self.by_name.get(name).cloned().or_else(sized)
    }

    /// The known name most similar to `name`.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Option<String> {
        let sized = self.sized.as_ref().and_then(|sized| sized.nearest(name));
        let listed = || nearest(name, self.by_name.keys().map(String::as_str)).map(str::to_owned);
        sized.or_else(listed)
    }

    /// All names and shapes in alphabetical order, without those whose names contain their size.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &NodeShape)> {
        self.by_name.iter().map(|(name, shape)| (name.as_str(), shape))
    }
}
