//! Setup of the process, arguments and exit codes.
//!
//! slurmctld starts its programs without PATH and HOME, with standard descriptors closed (22.05) or a pipe that breaks when
//! slurmctld stops (24.11, 26.05), and with its own signal mask (22.05). Rust's runtime opens closed descriptors on
//! `/dev/null` before `main` and ignores SIGPIPE; [`output`](crate::output) ignores the error of a broken pipe.

use crate::alias;
use crate::args::Common;
use crate::bootstrap::Bootstrap;
use crate::environment::Environment;
use crate::log::Level;
use crate::multicall::NAME;
use crate::output::has_lost_output;
use crate::programs::PROGRAMS;
use clap::{ArgMatches, Command, Error, Parser};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use slurmctl::{Caller, ProgramRole};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Success.
pub const SUCCESS: u8 = 0;
/// Some nodes failed. Each is named in the output.
pub const SOME_FAILED: u8 = 1;
/// Wrong usage or configuration. Nothing was done.
pub const USAGE_ERROR: u8 = 2;

/// Restores the signal mask and raises the limit of open files. `main` calls it first.
pub fn prepare() {
    // With SIGTERM blocked, a run could not be cancelled gracefully. A failure here is no reason not to run.
    let _ = SigSet::all().thread_unblock();
    // Each node's lock is an open file, and the usual soft limit is 1024.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Runs a program as a separate executable, and returns its exit code.
pub fn run<A: Parser, F: Future<Output = u8>>(program: impl FnOnce(A) -> F) -> ExitCode {
    prepare();
    let arguments = alias::expand(std::env::args_os(), is_by_slurmctld());
    execute(A::command(), &arguments, |matches| run_matches(matches, program))
}

/// Parses the command line, runs the program, and returns its exit code.
pub(crate) fn execute(
    mut command: Command,
    arguments: &[OsString],
    run: impl FnOnce(&ArgMatches) -> Result<u8, Error>,
) -> ExitCode {
    let parsed = command.try_get_matches_from_mut(arguments);
    match parsed.and_then(|matches| run(&matches)) {
        Ok(code) => ExitCode::from(if has_lost_output() { code.max(SOME_FAILED) } else { code }),
        Err(error) => {
            let error = error.format(&mut command);
            refuse(command, arguments, &error)
        }
    }
}

/// Runs a program with its parsed arguments.
pub(crate) fn run_matches<A: Parser, F: Future<Output = u8>>(
    matches: &ArgMatches,
    program: impl FnOnce(A) -> F,
) -> Result<u8, Error> {
    A::from_arg_matches(matches).map(|arguments| block_on(program(arguments)))
}

/// True if slurmctld called this process to start nodes.
pub(crate) fn is_by_slurmctld() -> bool {
    let caller = Environment::read().caller(ProgramRole::Resume);
    matches!(caller, Caller::Slurm | Caller::RebootJob)
}

/// Prints the help that was requested, or a usage error.
pub(crate) fn refuse(command: Command, arguments: &[OsString], error: &Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::from(SUCCESS);
    }
    log_usage_error(command, arguments, error);
    ExitCode::from(USAGE_ERROR)
}

/// Logs a usage error, unless standard error is a terminal: slurmctld discards what its programs print.
fn log_usage_error(command: Command, arguments: &[OsString], error: &Error) {
    if io::stderr().is_terminal() {
        return;
    }
    let name = command.get_name().to_owned();
    // The path of the log may be among the options that were valid.
    let known = command.ignore_errors(true).try_get_matches_from(arguments).ok();
    let path = |name| known.as_ref()?.try_get_one::<PathBuf>(name).ok()?.cloned();
    let format = known.as_ref().and_then(|it| it.try_get_one("log_format").ok()?.copied());
    let (config, log) = (path("config"), path("log"));
    let log_format = format.unwrap_or_default();
    let common = Common { config, log, log_format, ..Common::default() };
    let subcommand = known.as_ref().and_then(ArgMatches::subcommand_name);
    let program = PROGRAMS
        .iter()
        .find(|it| if name == NAME { subcommand == Some(it.subcommand) } else { name == it.name });
    let bootstrap = Bootstrap::open(program.map_or(NAME, |program| program.name), &common);
    if bootstrap.log_path != Path::new("-") {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        let message = first.strip_prefix("error: ").unwrap_or(first);
        bootstrap.log.write(Level::Error, None, message);
    }
}

/// Runs the future on this thread, which starts in a millisecond and leaves nothing running after `main`.
fn block_on(future: impl Future<Output = u8>) -> u8 {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot start: {error}");
            SOME_FAILED
        }
    }
}
