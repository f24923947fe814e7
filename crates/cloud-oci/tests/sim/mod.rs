//! The provider against a loopback cloud, over real HTTP.

mod conformance;
mod lost;
mod principal;
mod restart;
mod stage;
mod surprises;
