#![doc = include_str!("../README.md")]

mod addresses;
mod cooldown;
pub mod exec;
mod order;
mod outcome;
pub mod plan;
mod policies;
mod report;
pub mod run;
mod site;
pub mod state;
mod time;
mod token;
mod world;

pub use cooldown::{Cooldown, Cooldowns, Gate};
pub use outcome::{NodeReport, Outcome, Report};
pub use policies::{OnPartial, Policies, RebuildHow, Stopped};
pub use report::Cause;
pub use site::{Fallback, Identity, Place, Pool, Site, Wanted};
pub use time::Utc;
pub use world::{Fleet, Roster, Standing, World};
