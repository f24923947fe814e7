#![doc = include_str!("../README.md")]

mod cooldown;
mod order;
pub mod plan;
mod report;
mod site;
mod time;
mod token;
mod world;

pub use cooldown::{Cooldown, Cooldowns, Gate};
pub use report::Cause;
pub use site::{
    Fallback, Identity, OnPartial, Place, Policies, Pool, RebuildHow, Site, Stopped, Wanted,
};
pub use time::Utc;
pub use world::{Fleet, Roster, Standing, World};
