#![doc = include_str!("../README.md")]

mod action;
mod address;
mod api;
mod auth;
mod catalog;
mod classify;
mod clock;
mod config;
mod convert;
mod der;
mod describe;
#[cfg(fuzzing)]
pub mod fuzzing;
mod image;
mod instance_principal;
mod jwt;
mod key;
mod launch;
mod launch_options;
mod limits;
mod metadata_service;
mod missing;
mod page;
mod provider;
mod region;
mod shapes;
pub mod sign;
mod size;
mod wire;
mod work_request;

pub use action::Power;
pub use catalog::Subnet;
pub use clock::Clock;
pub use config::{Config, Credentials, Mode, Origin, Overrides};
pub use key::{KeyError, PrivateKey};
pub use launch::is_host_name;
pub use launch_options::LaunchOptions;
pub use limits::{CapacityStatus, ShapeCapacity};
pub use metadata_service::MetadataService;
pub use provider::Oci;
pub use region::Region;
