#![doc = include_str!("../README.md")]

pub mod alias;
pub mod args;
pub mod bootstrap;
pub mod bootstrap_failure;
pub mod clouds;
pub mod config;
pub mod context;
pub mod diagnostic;
pub mod drive;
pub mod environment;
pub mod log;
pub mod multicall;
pub mod output;
mod pages;
pub mod process;
pub mod programs;
pub mod progress;
pub mod table;
pub mod wiring;

pub use process::run;
