//! The provider against a loopback cloud, over real HTTP.

mod conformance;
mod fixture;
mod lost;
mod principal;
mod restart;
mod surprises;
