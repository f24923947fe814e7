//! The programs, one file each.

pub mod finish;
pub mod listnodes;
pub mod rebuild;
pub mod reconcile;
pub mod resize;
pub mod startnode;
pub mod stopnode;

use crate::args::Common;
use crate::context::output;
use crate::environment::Environment;
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

/// Says why the program could not begin.
fn wrong(common: &Common, trouble: &Trouble) -> u8 {
    output(common, &Environment::read()).complain(trouble);
    if trouble.passes() { SOME_FAILED } else { WRONG }
}
