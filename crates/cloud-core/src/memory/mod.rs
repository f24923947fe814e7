//! A cloud in memory, as strict as the real ones.
//!
//! [`MemoryCloud`] uses tokio's clock: while that is paused, an hour passes in microseconds. Its behaviour depends only on
//! its [`MemoryCloudSettings`] with their seed, so that a failed run can be repeated.

mod cloud;
mod fault;
mod history;
mod machine;
mod provider;
mod settings;
mod world;

pub use cloud::MemoryCloud;
pub use fault::InjectedFault;
pub use history::{LoggedRequest, Moment, RequestOutcome};
pub use machine::MachineTimeline;
pub use settings::{MemoryCloudSettings, Span, Throttle};
