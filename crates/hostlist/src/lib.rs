#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]

extern crate alloc;
#[cfg(all(feature = "std", not(test)))]
extern crate std;

mod block;
mod bracket;
mod chunks;
mod delete;
mod digits;
mod error;
mod expand;
mod find;
mod fold;
mod key;
mod list;
mod name;
mod natural;
mod parse;
mod product;
mod radix;
mod runs;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod sort;
mod span;

pub use chunks::Chunks;
pub use error::{ErrorKind, ParseError};
pub use expand::Iter;
pub use list::Hostlist;
pub use name::{NodeName, NodeNameError};
pub use parse::{Dialect, Parser};

/// Hosts that one range may hold, as in Slurm.
pub const MAX_RANGE: u64 = 65_536;

/// Items that one bracket may hold, as in Slurm.
pub const MAX_ITEMS: usize = 262_144;

/// Values that a bracket before the last one may hold, as in Slurm.
pub const MAX_PREFIX_VALUES: u64 = 65_536;
