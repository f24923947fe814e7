//! What every program begins with, however bad its configuration is.

use crate::args::{CONFIG, Common};
use crate::config::{Paths, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::{Environment, user_called};
use crate::log::{Entry, Level, Log};
use crate::output::{Output, Volume, chain};
use crate::process::{SOME_FAILED, USAGE_ERROR};
use crate::wiring;
use nix::unistd::getuid;
use provision::state::{MemoryState, State, StateDir};
use slurmconf::Config;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOG: &str = "/var/log/slurm/elastic.log";
const STATE: &str = "/var/lib/slurm-elastic";

/// What every program begins with: where to write, and the configuration, if it can be read.
#[derive(Debug)]
pub struct Bootstrap {
    /// The name of the program.
    pub program: &'static str,
    /// The options that all programs have.
    pub common: Common,
    /// What is known from outside; home is that of the user that slurmctld runs as.
    pub environment: Environment,
    /// Where to write for people.
    pub output: Output,
    /// Where to write for later.
    pub log: Arc<Log>,
    /// Where the log is.
    pub log_path: PathBuf,
    /// What `startnode.yaml` says, or why it cannot be read.
    pub settings: Result<Settings, Diagnostic>,
    /// Where Slurm is, also if the rest of the configuration cannot be read.
    pub paths: Paths,
    /// What is questionable about the configuration or the log.
    warnings: Vec<String>,
}

/// A state that was opened.
#[derive(Debug)]
pub struct OpenedState {
    /// Locks, cool-downs, events.
    pub state: Box<dyn State>,
    /// Where they are.
    pub path: PathBuf,
    /// Why the state directory cannot be used, if it cannot: what this run remembers ends with it.
    pub lost: Option<String>,
}

impl Bootstrap {
    /// Reads the configuration and opens the log; what is wrong with either ends nothing yet.
    #[must_use]
    pub fn open(program: &'static str, common: &Common) -> Self {
        let environment = Environment::read();
        let output =
            Output::new(common.volume(), environment.get("NO_COLOR").is_some() || common.json);
        let output = if common.json { output.without_progress() } else { output };
        let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
        let text = std::fs::read_to_string(path);
        let paths = text.as_ref().map(|text| legible_paths(text)).unwrap_or_default();
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
        let (log, unlogged) = open_log(program, common, &log_path);
        warnings.extend(unlogged);
        let (log, common) = (Arc::new(log), common.clone());
        Self { program, common, environment, output, log, log_path, settings, paths, warnings }
    }

    /// What `startnode.yaml` says. What is questionable about it is reported first: what fails later may do so for that.
    pub fn settings(&self) -> Result<Settings, Diagnostic> {
        let settings = self.settings.clone()?;
        self.warnings.iter().for_each(|warning| self.warn(warning));
        Ok(settings)
    }

    /// Prints and logs a warning.
    pub fn warn(&self, message: &str) {
        self.output.complain(format_args!("warning: {message}"));
        self.log.write(Entry { level: Level::Warning, node: None, message });
    }

    /// Prints and logs what happened where there is no context.
    pub fn note(&self, level: Level, message: &str) {
        self.output.complain(message);
        self.log.write(Entry { level, node: None, message });
    }

    /// Prints and logs why the program cannot start its work: slurmctld shows nobody what its programs print. Gives the exit
    /// code.
    #[must_use]
    pub fn fail(&self, diagnostic: &Diagnostic) -> u8 {
        if self.settings.is_err() && self.common.log.is_some() {
            // Without settings nobody has printed that the log of this call cannot be written.
            self.warnings.iter().for_each(|warning| self.warn(warning));
        }
        self.output.complain(diagnostic);
        for message in diagnostic.messages() {
            self.log.write(Entry { level: Level::Error, node: None, message });
        }
        if diagnostic.is_transient() { SOME_FAILED } else { USAGE_ERROR }
    }

    /// Where the state directory is.
    #[must_use]
    pub fn state_path(&self, settings: Option<&Settings>) -> PathBuf {
        let configured = settings.and_then(|settings| settings.elastic.state_dir.as_deref());
        let path = self.common.state_dir.clone();
        let path = path.or_else(|| configured.map(|path| self.environment.expand(path)));
        path.unwrap_or_else(|| PathBuf::from(STATE))
    }

    /// Opens the state directory. One that cannot be used stops nothing, because what is in it may be lost; one that is missing
    /// is made for slurmctld's user.
    #[must_use]
    pub fn state(&self, settings: &Settings, slurm: &Config) -> OpenedState {
        let path = self.state_path(Some(settings));
        // What is not there yet has nothing to be read, and a dry run makes nothing.
        if self.common.dry_run && !path.join("nodes").is_dir() {
            return OpenedState { state: Box::new(MemoryState::new()), path, lost: None };
        }
        let user = slurm.get("SlurmUser").and_then(user_called);
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

/// Where Slurm is, as far as a configuration says so that cannot be read as a whole.
fn legible_paths(text: &str) -> Paths {
    let value = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let comment = value.find(" #").or_else(|| value.find("\t#"));
        let value = comment.and_then(|end| value.get(..end)).unwrap_or(value);
        let value = value.trim().trim_matches(['"', '\'']);
        value.starts_with('/').then(|| value.to_owned())
    };
    Paths { slurm_conf: value("slurm_conf"), slurm_bin: value("slurm_bin"), ..Paths::default() }
}

/// A log that cannot be opened stops nothing; a dry run makes none.
fn open_log(program: &str, common: &Common, path: &Path) -> (Log, Option<String>) {
    if common.dry_run && !path.exists() && path != Path::new("-") {
        return (Log::nowhere(program), None);
    }
    match Log::open(path, common.log_format, program) {
        Ok(log) => (log.verbose(common.volume() == Volume::Verbose), None),
        Err(error) => {
            let unlogged = format!("no log: cannot open {}: {error}", path.display());
            (Log::nowhere(program), Some(unlogged))
        }
    }
}
