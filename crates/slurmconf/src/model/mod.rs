//! What a configuration says, as types.

mod config;
mod features;
mod gres;
mod include;
mod node;
mod partition;
mod power;
mod value;

pub use config::{Config, Parameter};
pub use features::Features;
pub use gres::{Gres, GresList};
pub use node::{NodeDef, NodeState, Topology};
pub use partition::{NodeSet, PartitionDef};
pub use power::{PowerSettings, SuspendTime};
