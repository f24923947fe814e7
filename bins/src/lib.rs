//! What the programs of slurm-elastic have in common: arguments, configuration, log, output and wiring.
//!
//! The programs themselves are in [`programs`], one file each; `src/bin` has their `main`.

pub mod alias;
pub mod args;
pub mod config;
pub mod context;
pub mod drive;
pub mod environment;
pub mod log;
pub mod output;
pub mod process;
pub mod programs;
pub mod table;
pub mod trouble;
pub mod wiring;

pub use process::run;
