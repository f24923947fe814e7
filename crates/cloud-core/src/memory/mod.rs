//! A cloud in memory, as strict as the real ones.
//!
//! [`MemoryCloud`] lives on tokio's clock: with the clock paused, an hour passes in
//! microseconds. What it does depends on its [`MemoryCloudSettings`] and their seed alone, so that a run
//! that went wrong can be had again.

mod cloud;
mod fault;
mod history;
mod machine;
mod provider;
mod settings;
mod world;

pub use cloud::MemoryCloud;
pub use fault::InjectedFault;
pub use history::{Event, Moment, Outcome};
pub use settings::{MemoryCloudSettings, Span, Throttle};
