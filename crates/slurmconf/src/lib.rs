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
pub use error::{Error, Location, Problem, Result};
pub use generate::{
    Cluster, ElasticSettings, GenerateOptions, Program, Style, generate, generate_all,
};
pub use limits::{Form, Group, Limits, MAX_COUNT, ManagementNode};
pub use model::{
    Config, Features, Gres, GresList, IndexedNode, NodeDef, NodeIndex, NodeSet, NodeState,
    OtherDefinition, Parameter, PartitionDef, PowerSettings, SuspendTime, Topology,
    flatten_includes,
};
pub use near::nearest;
pub use shapes::{Flavor, Memory, MemoryPolicy, Shape, Shapes};
pub use version::SlurmVersion;
