#![cfg_attr(feature = "http", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "http"), doc = "The cloud as a port, without the HTTP client.")]

mod catalog;
mod clock;
mod config_error;
#[cfg(feature = "conformance")]
pub mod conformance;
mod description;
mod error;
#[cfg(feature = "http")]
pub mod http;
mod id;
mod instance;
pub mod memory;
mod metadata;
mod operation;
pub mod pace;
mod provider;
mod secret;
mod sources;
mod state;
mod tags;
mod token;
mod unreachable;
mod wait;

pub use catalog::{Capabilities, Capability, Image, ImageFilter, Limit, Room, Shape};
pub use config_error::ConfigError;
pub use description::{BuiltInShapes, Counted, Description, ShapeLimit, is_uuid};
pub use error::{Error, ErrorKind, Result};
pub use id::{
    Architecture, FaultDomain, ImageId, ImageName, InstanceId, InstanceName, InvalidLaunchToken,
    LaunchToken, ShapeName, SubnetId, Zone,
};
pub use instance::{Fault, Instance, InstanceSpec};
pub use metadata::{Interruption, InterruptionKind, MachineMetadata};
pub use operation::ApiOperation;
pub use provider::{InstanceFilter, Provider, Reboot};
pub use secret::Secret;
pub use sources::{File, Sources};
pub use state::InstanceState;
pub use tags::Tags;
pub use token::{Generation, Held, Token, TokenCache};
pub use unreachable::Unreachable;
pub use wait::{Goal, Poll, WaitOutcome, Waited, wait_until};
