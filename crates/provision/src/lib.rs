#![doc = include_str!("../README.md")]

mod addresses;
mod cooldown;
pub mod exec;
mod order;
mod outcome;
pub mod plan;
mod report;
pub mod run;
mod site;
pub mod state;
mod time;
mod token;
mod world;

pub use cooldown::{Cooldown, Cooldowns, Gate};
pub use outcome::{NodeReport, Outcome, Report};
pub use report::Cause;
pub use site::{
    Fallback, Identity, OnPartial, Place, Policies, Pool, RebuildHow, Site, Stopped, Wanted,
};
pub use time::Utc;
pub use world::{Fleet, Roster, Standing, World};
