//! The programs, one file each.

pub mod cost;
pub mod explain;
pub mod finish;
pub mod listnodes;
pub mod nodewatch;
pub mod rebuild;
pub mod reconcile;
pub mod resize;
pub mod startnode;
pub mod stopnode;
pub mod timeline;

use crate::diagnostic::Diagnostic;
use crate::process::run_matches;
use clap::{ArgMatches, Command, CommandFactory as _, Error};

/// A program, which is also a subcommand of `slurm-elastic`.
pub struct Program {
    /// The name of its hard link.
    pub name: &'static str,
    /// The name of the subcommand.
    pub subcommand: &'static str,
    /// The command line with its help, for parsing, man pages and completions.
    pub command: fn() -> Command,
    /// Runs the program with its parsed arguments.
    pub(crate) run: fn(&ArgMatches) -> Result<u8, Error>,
}

macro_rules! program {
    ($name:ident, $subcommand:literal) => {
        Program {
            name: stringify!($name),
            subcommand: $subcommand,
            command: $name::Arguments::command,
            run: |matches| run_matches(matches, $name::run),
        }
    };
}

/// All programs.
///
/// ```
/// assert!(bins::programs::PROGRAMS.iter().any(|it| it.name == "startnode" && it.subcommand == "start"));
/// ```
pub const PROGRAMS: [Program; 11] = [
    program!(startnode, "start"),
    program!(stopnode, "stop"),
    program!(finish, "finish"),
    program!(rebuild, "rebuild"),
    program!(resize, "resize"),
    program!(reconcile, "reconcile"),
    program!(listnodes, "list"),
    program!(explain, "explain"),
    program!(cost, "cost"),
    program!(timeline, "timeline"),
    program!(nodewatch, "watch"),
];

/// The error for an unknown partition.
fn no_partition(name: &str) -> Diagnostic {
    Diagnostic::new(format!("slurm.conf has no partition {name}"))
}
