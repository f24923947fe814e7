//! The programs, one file each.

pub mod finish;
pub mod listnodes;
pub mod rebuild;
pub mod reconcile;
pub mod resize;
pub mod startnode;
pub mod stopnode;

use crate::args::Common;
use crate::context::{log_path, output};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::process::{SOME_FAILED, USAGE_ERROR, run_matches};
use clap::{ArgMatches, Command, CommandFactory as _, Error};

/// A program: by its own name, and as a subcommand of `slurm-elastic`.
pub struct Program {
    /// The name of its hard link.
    pub name: &'static str,
    /// The subcommand.
    pub subcommand: &'static str,
    /// What it takes, with its help: also for manual pages and completions.
    pub command: fn() -> Command,
    /// Runs it with what it was given.
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
pub const PROGRAMS: [Program; 7] = [
    program!(startnode, "start"),
    program!(stopnode, "stop"),
    program!(finish, "finish"),
    program!(rebuild, "rebuild"),
    program!(resize, "resize"),
    program!(reconcile, "reconcile"),
    program!(listnodes, "list"),
];

/// What is wrong with the name of a partition.
fn no_partition(name: &str) -> Diagnostic {
    Diagnostic::new(format!("slurm.conf has no partition {name}"))
}

/// Writes to the log of a program that cannot even begin; one that cannot be opened stops nothing.
fn note(program: &'static str, common: &Common, level: Level, messages: &[String]) {
    let Ok(log) = Log::open(&log_path(common), common.log_format, program) else { return };
    for message in messages {
        log.write(Entry { level, node: None, message });
    }
}

/// Says why the program could not begin: to people, and in the log, as slurmctld shows nobody what its programs say.
fn wrong(program: &'static str, common: &Common, diagnostic: &Diagnostic) -> u8 {
    output(common, &Environment::read()).complain(diagnostic);
    note(program, common, Level::Error, diagnostic.messages());
    if diagnostic.is_transient() { SOME_FAILED } else { USAGE_ERROR }
}
