//! The content of a configuration, as types.

mod alias;
mod config;
mod features;
mod flatten_includes;
mod gres;
mod include;
mod node;
mod other;
mod partition;
mod place;
mod power;
mod suspendable;
mod value;

pub use config::{Config, Parameter};
pub use features::Features;
pub use flatten_includes::flatten_includes;
pub use gres::{Gres, GresList};
pub use node::{ConfiguredState, NodeDef, Topology};
pub use other::OtherDefinition;
pub use partition::{NodeSet, PartitionDef};
pub use place::PlaceChoice;
pub(crate) use place::WARM;
pub use power::{PowerSettings, SuspendTime};
