//! One executable for all programs, like `BusyBox`, rustup and uutils.
//!
//! The name of the call selects the program; `install` makes a hard link for each name. Called as `slurm-elastic`, it takes
//! the program as a subcommand: `slurm-elastic start n[1-4]`.

use crate::alias;
use crate::args::Common;
use crate::pages;
use crate::process::{self, SUCCESS};
use crate::programs::{PROGRAMS, Program};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args as _, Command, Error, value_parser};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name of the executable itself.
pub const NAME: &str = "slurm-elastic";

const PAGES: &str = "pages";

/// Runs the program that the name of the call or the subcommand selects.
#[must_use]
pub fn main() -> ExitCode {
    process::prepare();
    let executable = std::env::current_exe().unwrap_or_default();
    let arguments = match expand(std::env::args_os().collect(), &executable) {
        Ok(arguments) => arguments,
        Err(error) => return process::refuse(command(), &[], &error),
    };
    let program = arguments.first().and_then(|name| PROGRAMS.iter().find(|it| name == it.name));
    match program {
        Some(program) => process::execute((program.command)(), &arguments, program.run),
        None => process::execute(command(), &arguments, run_subcommand),
    }
}

/// The command line of `slurm-elastic`, with every program as a subcommand.
#[must_use]
pub fn command() -> Command {
    let command = Common::augment_args(Command::new(NAME))
        .version(env!("CARGO_PKG_VERSION"))
        .about("Elastic Slurm clusters in the cloud")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(format!("Each command is also a program of its own: {}.", names().join(", ")));
    let directory = Arg::new("directory").value_name("DIR").required(true);
    let directory = directory.value_parser(value_parser!(PathBuf));
    let pages = Command::new(PAGES).about("Write man pages and completions").hide(true);
    let subcommand = |program: &Program| {
        let alias = Some(program.name).filter(|name| *name != program.subcommand);
        (program.command)().name(program.subcommand).aliases(alias)
    };
    command.subcommands(PROGRAMS.iter().map(subcommand)).subcommand(pages.arg(directory))
}

/// The name of every hard link to the executable.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let programs = PROGRAMS.iter().map(|program| program.name);
    programs.chain(alias::ALL.iter().map(|alias| alias.name)).collect()
}

fn run_subcommand(matches: &ArgMatches) -> Result<u8, Error> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(SUCCESS) };
    if let Some(program) = PROGRAMS.iter().find(|program| program.subcommand == name) {
        return (program.run)(matches);
    }
    let Some(directory) = matches.get_one::<PathBuf>("directory") else { return Ok(SUCCESS) };
    let failed = |error| Error::raw(ErrorKind::Io, format!("{}: {error}", directory.display()));
    pages::write(directory).map_err(failed).map(|()| SUCCESS)
}

/// Replaces the name of the call with that of a program or `slurm-elastic`, and expands aliases.
fn expand(mut arguments: Vec<OsString>, executable: &Path) -> Result<Vec<OsString>, Error> {
    let first = arguments.first().cloned().unwrap_or_default();
    let Some(name) = known(Path::new(&first)).or_else(|| linked(&first, executable)) else {
        let name = first.display();
        let text = format!("{NAME} has no program {name}; use one of: {}\n", names().join(", "));
        return Err(Error::raw(ErrorKind::InvalidSubcommand, text));
    };
    let rest = arguments.split_off(1.min(arguments.len()));
    let by_slurmctld = process::is_by_slurmctld();
    if name == NAME {
        let rest = if rest.is_empty() { rest } else { alias::expand(rest, by_slurmctld) };
        return Ok(std::iter::once(OsString::from(NAME)).chain(rest).collect());
    }
    Ok(alias::expand(std::iter::once(OsString::from(name)).chain(rest), by_slurmctld))
}

/// The known name that a path ends with.
fn known(path: &Path) -> Option<&'static str> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    names().into_iter().chain([NAME]).find(|known| *known == name)
}

/// The name of the running hard link, for a call without a name or through a symbolic link of another name.
fn linked(first: &OsStr, executable: &Path) -> Option<&'static str> {
    known(executable).filter(|name| *name != NAME || first.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(arguments: &[&str], executable: &str) -> Result<String, String> {
        let arguments = arguments.iter().map(OsString::from).collect();
        let arguments = expand(arguments, Path::new(executable)).map_err(|it| it.to_string())?;
        Ok(arguments.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_name_of_a_call_selects_the_program() {
        let own = "/usr/local/bin/slurm-elastic";
        let link = "/usr/local/bin/startnode-failed";
        for (arguments, executable, expected) in [
            (&["startnode", "n1"][..], own, "startnode n1"),
            (&["/opt/bin/startnode", "n1"], own, "startnode n1"),
            (&["./startnode-failed", "n1"], own, "startnode --failed n1"),
            (&["slurm-elastic", "start", "n1"], own, "slurm-elastic start n1"),
            (&["slurm-elastic", "--json", "list"], own, "slurm-elastic --json list"),
            (&["slurm-elastic", "kill_all_nodes"], own, "slurm-elastic stopnode --all"),
            (&["slurm-elastic"], own, "slurm-elastic"),
            // A symbolic link with a name of the site's choice.
            (&["resume.sh", "n1"], link, "startnode --failed n1"),
            (&["", "list"], own, "slurm-elastic list"),
            (&[], link, "startnode --failed"),
            (&[], own, "slurm-elastic"),
        ] {
            let found = written(arguments, executable);
            assert_eq!(found.as_deref(), Ok(expected), "{arguments:?} {executable}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_list_of_names() {
        for executable in ["/usr/local/bin/slurm-elastic", "/opt/resume", ""] {
            let error = written(&["/opt/resume", "n1"], executable).unwrap_err();
            assert!(error.contains("/opt/resume"), "{error}");
            for name in ["startnode", "list_nodes", "slurm-openstack-resume"] {
                assert!(error.contains(name), "{name}: {error}");
            }
        }
    }

    #[test]
    fn options_of_all_programs_may_stand_before_the_subcommand() {
        let parse = |arguments: &str| command().try_get_matches_from(arguments.split(' ')).unwrap();
        for arguments in
            ["slurm-elastic --config c.yaml start n1", "slurm-elastic start --config c.yaml n1"]
        {
            let matches = parse(arguments);
            let (_, start) = matches.subcommand().unwrap();
            assert_eq!(start.get_one("config"), Some(&PathBuf::from("c.yaml")), "{arguments}");
        }
        command().debug_assert();
    }
}
