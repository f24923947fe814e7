//! The process itself: fit to run whoever started it.
//!
//! slurmctld starts its programs without PATH and HOME, with standard descriptors closed (22.05) or with a pipe that
//! breaks when slurmctld stops (24.11, 26.05), and with its own blocked signals (22.05). Closed descriptors are opened on
//! `/dev/null` by Rust's runtime before `main`, and a broken pipe is an error that [`output`](crate::output) ignores, as
//! the runtime ignores SIGPIPE.

use crate::alias;
use crate::args::Common;
use crate::context::log_path;
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::output::lost;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::SigSet;
use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// All is well.
pub const WELL: u8 = 0;
/// Some nodes failed; each is named.
pub const SOME_FAILED: u8 = 1;
/// Wrong usage or configuration; nothing was done.
pub const WRONG: u8 = 2;

/// Undoes what slurmctld leaves us with; the first thing that `main` does.
pub fn prepare() {
    // With TERM blocked, a run could not be ended in order. That it cannot be unblocked is no reason not to run.
    let _ = SigSet::all().thread_unblock();
    // Each node's lock is an open file, and the usual limit is a thousand of them.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Runs a program: reads its arguments, and goes on to its exit code.
pub fn run<A: Parser, F: Future<Output = u8>>(program: impl FnOnce(A) -> F) -> ExitCode {
    prepare();
    match A::try_parse_from(words()) {
        Ok(arguments) => {
            let code = block_on(program(arguments));
            ExitCode::from(if lost() { code.max(SOME_FAILED) } else { code })
        }
        Err(error) => {
            let _ = error.print();
            if !error.use_stderr() {
                return ExitCode::from(WELL);
            }
            note::<A>(&error);
            ExitCode::from(WRONG)
        }
    }
}

/// The arguments; what slurmctld calls us for, it says in the environment.
fn words() -> Vec<OsString> {
    let environment = Environment::read();
    let said = ["SLURM_JOB_ID", "SLURM_RESUME_FILE"];
    let by_slurmctld = said.iter().any(|name| environment.get(name).is_some());
    alias::written_out(std::env::args_os(), by_slurmctld)
}

/// Logs what is wrong with a call: slurmctld shows nobody what its programs say. Whoever sees it has seen it.
fn note<A: Parser>(error: &clap::Error) {
    if io::stderr().is_terminal() {
        return;
    }
    // What could be read of the options says which log.
    let command = A::command().ignore_errors(true);
    let known = command.try_get_matches_from(words()).ok();
    let path = |name| known.as_ref()?.try_get_one::<PathBuf>(name).ok()?.cloned();
    let format = known.as_ref().and_then(|it| it.try_get_one("log_format").ok()?.copied());
    let common = Common { config: path("config"), log: path("log"), ..Common::default() };
    let path = log_path(&common);
    if path == Path::new("-") {
        return;
    }
    if let Ok(log) = Log::open(&path, format.unwrap_or_default(), A::command().get_name()) {
        let text = error.to_string();
        let said = text.split("\n\n").next().unwrap_or_default();
        let message = said.strip_prefix("error: ").unwrap_or(said);
        log.write(Entry { level: Level::Error, node: None, message });
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
