#![doc = include_str!("../README.md")]

mod diff;
mod document;
mod error;
mod generate;
mod limits;
mod model;
mod near;
mod shapes;
mod version;
pub mod yaml;

pub use diff::{Action, Change, Changes, NodeChange, diff};
pub use document::{
    Definition, DefinitionKind, Document, Line, Markers, Operator, Pair, Statement,
};
pub use error::{Error, Place, Problem, Result};
pub use generate::{Cluster, ElasticSettings, Program, Site, Style, generate, generate_all};
pub use limits::{Form, Group, Limits, MAX_COUNT, Management};
pub use model::{
    Config, Features, Gres, GresList, IndexedNode, NodeDef, NodeIndex, NodeSet, NodeState,
    OtherDefinition, Parameter, PartitionDef, PowerSettings, SuspendTime, Topology, gather,
};
pub use near::nearest;
pub use shapes::{Flavor, Memory, MemoryPolicy, Shape, Shapes};
pub use version::SlurmVersion;
