#![doc = include_str!("../README.md")]

mod api;
mod auth;
mod catalog;
mod classify;
mod config;
mod connect;
mod create;
mod describe;
mod fault;
mod flavor;
#[cfg(fuzzing)]
pub mod fuzzing;
mod image;
mod launch_resource;
mod legacy_tag;
mod limits;
mod page;
mod provider;
mod resolve;
mod server;
mod tags;
mod version;
mod wire;

pub use catalog::{Interface, Service};
pub use config::{Account, ApplicationCredential, Config, Credentials, Domain, Origin, Search};
pub use connect::ConnectSettings;
pub use create::{BootVolume, LaunchOptions, Nic};
pub use describe::describe;
pub use launch_resource::{InstanceResource, LaunchResource};
pub use legacy_tag::LegacyTag;
pub use provider::OpenStack;
