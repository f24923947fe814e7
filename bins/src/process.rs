//! The process itself: fit to run whoever started it.
//!
//! slurmctld starts its programs without PATH and HOME, with standard descriptors closed (22.05) or with a pipe that
//! breaks when slurmctld stops (24.11, 26.05), and with its own blocked signals (22.05). Closed descriptors are opened on
//! `/dev/null` by Rust's runtime before `main`, and a broken pipe is an error that [`output`](crate::output) ignores, as
//! the runtime ignores SIGPIPE.

use crate::alias;
use crate::args::Common;
use crate::bootstrap::Bootstrap;
use crate::environment::Environment;
use crate::log::{Entry, Level};
use crate::multicall::NAME;
use crate::output::lost;
use crate::programs::PROGRAMS;
use clap::{ArgMatches, Command, Error, Parser};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use slurmctl::{Caller, Role};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// All is well.
pub const SUCCESS: u8 = 0;
/// Some nodes failed; each is named.
pub const SOME_FAILED: u8 = 1;
/// Wrong usage or configuration; nothing was done.
pub const USAGE_ERROR: u8 = 2;

/// Undoes what slurmctld leaves us with; the first thing that `main` does.
pub fn prepare() {
    // With TERM blocked, a run could not be ended in order. That it cannot be unblocked is no reason not to run.
    let _ = SigSet::all().thread_unblock();
    // Each node's lock is an open file, and the usual limit is a thousand of them.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Runs a program that is an executable of its own: reads its arguments, and goes on to its exit code.
pub fn run<A: Parser, F: Future<Output = u8>>(program: impl FnOnce(A) -> F) -> ExitCode {
    prepare();
    let words = alias::expand(std::env::args_os(), is_by_slurmctld());
    execute(A::command(), &words, |matches| run_matches(matches, program))
}

/// Parses the command line, and runs what it asks for to its exit code.
pub(crate) fn execute(
    mut command: Command,
    words: &[OsString],
    run: impl FnOnce(&ArgMatches) -> Result<u8, Error>,
) -> ExitCode {
    let parsed = command.try_get_matches_from_mut(words);
    match parsed.and_then(|matches| run(&matches)) {
        Ok(code) => ExitCode::from(if lost() { code.max(SOME_FAILED) } else { code }),
        Err(error) => {
            let error = error.format(&mut command);
            refuse(command, words, &error)
        }
    }
}

/// Runs a program with arguments that were parsed.
pub(crate) fn run_matches<A: Parser, F: Future<Output = u8>>(
    matches: &ArgMatches,
    program: impl FnOnce(A) -> F,
) -> Result<u8, Error> {
    A::from_arg_matches(matches).map(|arguments| block_on(program(arguments)))
}

/// True if slurmctld has called us to start nodes.
pub(crate) fn is_by_slurmctld() -> bool {
    let caller = Environment::read().caller(Role::Resume);
    matches!(caller, Caller::Slurm | Caller::RebootJob)
}

/// Prints what is wrong with a call, or the help that it asks for.
pub(crate) fn refuse(command: Command, words: &[OsString], error: &Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::from(SUCCESS);
    }
    note(command, words, error);
    ExitCode::from(USAGE_ERROR)
}

/// Logs what is wrong with a call: slurmctld shows nobody what its programs say. Whoever sees it has seen it.
fn note(command: Command, words: &[OsString], error: &Error) {
    if io::stderr().is_terminal() {
        return;
    }
    let name = command.get_name().to_owned();
    // What could be read of the options says which log.
    let known = command.ignore_errors(true).try_get_matches_from(words).ok();
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
        let said = text.split("\n\n").next().unwrap_or_default();
        let message = said.strip_prefix("error: ").unwrap_or(said);
        bootstrap.log.write(Entry { level: Level::Error, node: None, message });
    }
}

/// Runs the future on this one thread: start-up in a millisecond, and nothing goes on when `main` has ended.
fn block_on(future: impl Future<Output = u8>) -> u8 {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(future),
        Err(error) => {
            let _ = writeln!(io::stderr(), "cannot start: {error}");
            SOME_FAILED
        }
    }
}
