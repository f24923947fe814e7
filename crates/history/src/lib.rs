#![doc = include_str!("../README.md")]

pub mod cost;
mod error;
mod event;
mod life;
mod lives;
mod metrics;
mod moment;
mod open;
mod phase;
mod position;
mod read;
mod tally;
pub mod timeline;

pub use error::Error;
pub use event::{Event, EventKind, millis};
pub use life::{End, Ending, Failure, Life, RecordedPlace, Work};
pub use lives::{Cooling, Lives};
pub use metrics::metrics;
pub use moment::{BadMoment, TimeZone, moment};
pub use phase::{Phase, PhaseSpan};
pub use position::{Position, read_after};
pub use read::{Broken, FILE, Log, read, read_at_most};
pub use tally::{BOUNDS, Histogram, Series, Tally, label, place_labels};
