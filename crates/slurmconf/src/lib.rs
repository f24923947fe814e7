#![doc = include_str!("../README.md")]

mod diff;
mod document;
mod error;
#[cfg(feature = "generate")]
mod generate;
#[cfg(feature = "generate")]
mod limits;
mod model;
#[cfg(feature = "generate")]
mod near;
#[cfg(feature = "generate")]
mod shapes;
mod version;
#[cfg(feature = "generate")]
pub mod yaml;

pub use diff::{Action, Change, Changes, NodeChange, diff};
pub use document::{Definition, DefinitionKind, Document, Line, Markers, Pair, Statement};
pub use error::{Error, Location, Result};
#[cfg(feature = "generate")]
pub use generate::{
    Cluster, ElasticSettings, GenerateOptions, Program, Style, generate, generate_all,
};
#[cfg(feature = "generate")]
pub use limits::{Form, Group, Limits, ManagementNode};
pub use model::{
    Config, ConfiguredState, Features, Gres, GresList, NodeDef, NodeSet, OtherDefinition,
    Parameter, PartitionDef, PlaceChoice, PowerSettings, SuspendTime, Topology, flatten_includes,
};
#[cfg(feature = "generate")]
pub use near::nearest;
#[cfg(feature = "generate")]
pub use shapes::{Memory, MemoryPolicy, NodeShape, Shapes, SizedShapes};
pub use version::SlurmVersion;
