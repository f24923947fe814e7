#![doc = include_str!("../README.md")]

#[macro_use]
mod words;

mod addresses;
mod bootstrap_failure;
pub mod budget;
mod cause;
pub mod conf;
mod cooldown;
mod exec;
pub mod explain;
mod failure;
pub mod images;
mod interruption;
pub mod job_costs;
pub mod listing;
pub mod notice;
mod order;
pub mod plan;
mod policies;
pub mod preflight;
mod report;
mod retry;
mod rollout_sources;
pub mod run;
mod site;
pub mod state;
pub mod targets;
mod time;
mod token;
mod tools;
mod world;

pub use bootstrap_failure::{UnstartedNodes, report_not_rebuilt};
pub use cause::Cause;
pub use cooldown::{Cooldown, Cooldowns};
pub use interruption::{InterruptionPolicy, interrupt, preview_interrupt, report_location};
pub use policies::{OnPartial, Policies, RebuildHow, Stopped, before_timeout};
pub use report::{NodeReport, Outcome, Report};
pub use rollout_sources::{ResolvedRollout, RolloutSources};
pub use site::{Fallback, Identity, Patience, Place, Pool, Site, Wanted};
pub use tools::{Cancel, CancelSignal, Files, Progress, Tools};
pub use world::{Fleet, Roster, Standing, World};
