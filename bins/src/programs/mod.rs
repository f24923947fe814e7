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
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::process::{SOME_FAILED, WRONG};
use crate::trouble::Trouble;
use clap::{Command, CommandFactory as _};

/// What each program takes, by name, with its help: for manual pages and completions.
///
/// ```
/// let names: Vec<String> = bins::programs::commands().iter().map(|it| it.get_name().to_owned()).collect();
/// assert!(names.contains(&"startnode".to_owned()));
/// ```
#[must_use]
pub fn commands() -> Vec<Command> {
    vec![
        finish::Arguments::command(),
        listnodes::Arguments::command(),
        rebuild::Arguments::command(),
        reconcile::Arguments::command(),
        resize::Arguments::command(),
        startnode::Arguments::command(),
        stopnode::Arguments::command(),
    ]
}

/// What is wrong with the name of a partition.
fn no_partition(name: &str) -> Trouble {
    Trouble::new(format!("slurm.conf has no partition {name}"))
}

/// Writes to the log of a program that cannot even begin; one that cannot be opened stops nothing.
fn note(program: &'static str, common: &Common, level: Level, messages: &[String]) {
    let Ok(log) = Log::open(&log_path(common), common.log_format, program) else { return };
    for message in messages {
        log.write(Entry { level, node: None, message });
    }
}

/// Says why the program could not begin: to people, and in the log, as slurmctld shows nobody what its programs say.
fn wrong(program: &'static str, common: &Common, trouble: &Trouble) -> u8 {
    output(common, &Environment::read()).complain(trouble);
    note(program, common, Level::Error, trouble.points());
    if trouble.passes() { SOME_FAILED } else { WRONG }
}
