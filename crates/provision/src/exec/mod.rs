//! The executor: carries plans out, and chooses nothing.

mod ask;
mod confirm;
mod cool;
mod desk;
mod doubt;
mod drained;
mod end;
mod engine;
mod expected;
mod failure;
mod files;
mod gathered;
mod groups;
mod look;
mod machines;
mod stage;
mod steps;
mod tell;
mod tools;
mod work;

pub use expected::{Expected, Patience};
pub use tools::{Cancel, CancelSignal, Files, Progress, Tools};

pub(crate) use engine::LAST_ANSWERS;
pub(crate) use stage::Executor;
pub(crate) use steps::chain;
