//! Start of every program, which works even with a broken configuration.

use crate::args::{CONFIG, Common};
use crate::config::{Paths, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::{Environment, find_user};
use crate::log::{Level, Log};
use crate::output::{Output, Volume, chain};
use crate::process::{SOME_FAILED, SUCCESS, USAGE_ERROR};
use crate::wiring::{self, Slurm};
use nix::unistd::getuid;
use provision::state::{MemoryState, State, StateDir};
use slurmconf::Config;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOG: &str = "/var/log/slurm/elastic.log";
const STATE: &str = "/var/lib/slurm-elastic";

/// Log, output and configuration of a program; the configuration may be unreadable.
#[derive(Debug)]
pub struct Bootstrap {
    /// The name of the program.
    pub program: &'static str,
    /// The options that all programs have.
    pub common: Common,
    /// The environment; its home directory is that of the user that slurmctld runs as.
    pub environment: Environment,
    /// Standard output and standard error.
    pub output: Output,
    /// The log.
    pub log: Arc<Log>,
    /// Path of the log.
    pub log_path: PathBuf,
    /// The content of `startnode.yaml`, or why it cannot be read.
    pub settings: Result<Settings, Diagnostic>,
    /// Paths of Slurm, known even if the rest of the configuration cannot be read.
    pub paths: Paths,
    /// Warnings about the configuration or the log.
    warnings: Vec<String>,
}

/// An open state directory, or memory in its place.
#[derive(Debug)]
pub struct OpenedState {
    /// Locks, cool-downs, events.
    pub state: Box<dyn State>,
    /// Path of the state directory.
    pub path: PathBuf,
    /// Why the state directory cannot be used; the state of this run is then lost when it ends.
    pub lost: Option<String>,
}

impl Bootstrap {
    /// Reads the configuration and opens the log. Errors are kept for later.
    #[must_use]
    pub fn open(program: &'static str, common: &Common) -> Self {
        let environment = Environment::read();
        let output =
            Output::new(common.volume(), environment.get("NO_COLOR").is_some() || common.json);
        let output = if common.json { output.without_progress() } else { output };
        let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
        let text = std::fs::read_to_string(path);
        let paths = text.as_ref().map(|text| salvage_paths(text)).unwrap_or_default();
        let (settings, mut warnings) = match read(path, text) {
            Ok((settings, warnings)) => (Ok(settings), warnings),
            Err(diagnostic) => (Err(diagnostic), Vec::new()),
        };
        let paths = settings.as_ref().map_or(paths, |settings| settings.paths.clone());
        let user = wiring::slurm_user(common, &paths, &environment);
        let environment = environment.on_behalf_of(user.as_deref());
        let configured = settings.as_ref().ok().and_then(|it| it.elastic.log.as_deref());
        let log_path = common.log.clone().or_else(|| configured.map(|it| environment.expand(it)));
        let log_path = log_path.unwrap_or_else(|| PathBuf::from(LOG));
        let (log, log_warning) = open_log(program, common, &log_path);
        warnings.extend(log_warning);
        let (log, common) = (Arc::new(log), common.clone());
        Self { program, common, environment, output, log, log_path, settings, paths, warnings }
    }

    /// Returns the settings. Warnings are printed first, because they may explain a later failure.
    pub fn settings(&self) -> Result<&Settings, Diagnostic> {
        let settings = self.settings.as_ref().map_err(Diagnostic::clone)?;
        self.warnings.iter().for_each(|warning| self.warn(warning));
        Ok(settings)
    }

    /// Finds Slurm's programs and reads slurm.conf, without a request to slurmctld.
    pub async fn slurm(&self) -> Result<Slurm, Diagnostic> {
        wiring::slurm(&self.common, &self.paths, &self.environment).await
    }

    /// Prints and logs a warning.
    pub fn warn(&self, message: &str) {
        self.output.print_error(format_args!("warning: {message}"));
        self.log.write(Level::Warning, None, message);
    }

    /// Prints and logs warnings, and returns the exit code: they say what is not known.
    #[must_use]
    pub fn warn_all(&self, warnings: &[String]) -> u8 {
        for warning in warnings {
            self.warn(warning);
        }
        if warnings.is_empty() { SUCCESS } else { SOME_FAILED }
    }

    /// Prints and logs a message.
    pub fn note(&self, level: Level, message: &str) {
        self.output.print_error(message);
        self.log.write(level, None, message);
    }

    /// Prints and logs why the program cannot start its work, and returns the exit code. The log is needed because
    /// slurmctld discards what its programs print.
    #[must_use]
    pub fn fail(&self, diagnostic: &Diagnostic) -> u8 {
        if self.settings.is_err() && self.common.log.is_some() {
            // `settings` has not printed that the log cannot be written.
            self.warnings.iter().for_each(|warning| self.warn(warning));
        }
        self.output.print_error(diagnostic);
        for message in diagnostic.messages() {
            self.log.write(Level::Error, None, message);
        }
        if diagnostic.is_transient() { SOME_FAILED } else { USAGE_ERROR }
    }

    /// Path of the state directory, whether it exists or not.
    #[must_use]
    pub fn state_path(&self, settings: Option<&Settings>) -> PathBuf {
        let configured = settings.and_then(|settings| settings.elastic.state_dir.as_deref());
        let path = self.common.state_dir.clone();
        let path = path.or_else(|| configured.map(|path| self.environment.expand(path)));
        path.unwrap_or_else(|| PathBuf::from(STATE))
    }

    /// Opens the state directory, and creates a missing one for slurmctld's user. If it cannot be used, the program
    /// continues with a state in memory, because its content may be lost at any time.
    #[must_use]
    pub fn state(&self, settings: &Settings, slurm: &Config) -> OpenedState {
        let path = self.state_path(Some(settings));
        // A dry run creates no directory, and a missing one has no content.
        if self.common.dry_run && !path.join("nodes").is_dir() {
            return OpenedState { state: Box::new(MemoryState::new()), path, lost: None };
        }
        let user = slurm.get("SlurmUser").and_then(find_user);
        if let Some(user) = user.filter(|_| getuid().is_root()) {
            StateDir::create_for(&path, user.uid.as_raw(), user.gid.as_raw());
        }
        match StateDir::open(&path) {
            Ok(state) => OpenedState { state: Box::new(state), path, lost: None },
            Err(error) => {
                let lost = format!(
                    "cannot write state directory {}; continuing without locks: {}; make it, owned by the user that \
                     slurmctld runs as, or name another with --state-dir",
                    path.display(),
                    chain(&error)
                );
                OpenedState { state: Box::new(MemoryState::new()), path, lost: Some(lost) }
            }
        }
    }
}

fn read(path: &Path, text: std::io::Result<String>) -> Result<(Settings, Vec<String>), Diagnostic> {
    let text = text.map_err(|error| {
        let remedy = "write one (share/doc/slurm-elastic/examples has them for each cloud) or name another with --config";
        Diagnostic::new(format!("cannot read the configuration {}: {error}; {remedy}", path.display()))
    })?;
    let loaded = Settings::read(&path.display().to_string(), &text).map_err(|errors| {
        let remedy = "see docs/configuration.md and the examples in share/doc/slurm-elastic";
        Diagnostic::from_errors(&errors).with_help(remedy)
    })?;
    Ok((loaded.settings, loaded.warnings.iter().map(|warning| chain(warning)).collect()))
}

/// Paths of Slurm in a configuration that is not valid YAML or has other errors.
fn salvage_paths(text: &str) -> Paths {
    let value = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let comment = value.find(" #").or_else(|| value.find("\t#"));
        let value = comment.and_then(|end| value.get(..end)).unwrap_or(value);
        let value = value.trim().trim_matches(['"', '\'']);
        value.starts_with('/').then(|| value.to_owned())
    };
    Paths { slurm_conf: value("slurm_conf"), slurm_bin: value("slurm_bin"), ..Paths::default() }
}

/// Opens the log, or returns a warning and a log that drops every line. A dry run creates no log.
fn open_log(program: &str, common: &Common, path: &Path) -> (Log, Option<String>) {
    if common.dry_run && !path.exists() && path != Path::new("-") {
        return (Log::nowhere(program), None);
    }
    match Log::open(path, common.log_format, program) {
        Ok(log) => (log.verbose(common.volume() == Volume::Verbose), None),
        Err(error) => {
            let log_warning = format!("no log: cannot open {}: {error}", path.display());
            (Log::nowhere(program), Some(log_warning))
        }
    }
}
