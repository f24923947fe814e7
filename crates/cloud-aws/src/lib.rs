#![doc = include_str!("../README.md")]

mod api;
mod auth;
mod catalog;
mod check;
mod classify;
mod config;
mod convert;
mod credentials;
mod decode;
mod describe;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gather;
mod image;
mod launch;
mod launch_options;
mod limits;
mod metadata_service;
mod names;
mod profile;
mod provider;
mod query;
mod root_volume;
pub mod sign;
mod wire;

pub use config::{Config, Credentials, Keys, Overrides, Role};
pub use launch_options::{LaunchOptions, LaunchTemplate};
pub use metadata_service::MetadataService;
pub use provider::{Aws, ConnectSettings};
