#![doc = include_str!("../README.md")]

pub mod cost;
mod error;
mod event;
mod life;
mod lives;
mod phase;
mod read;

pub use error::Error;
pub use event::{Event, EventKind, millis};
pub use life::{End, Ending, Life, Place, Refusal, Work};
pub use lives::{Cooling, Lives};
pub use phase::{Phase, Span};
pub use read::{Broken, FILE, Log, read, read_at_most};
