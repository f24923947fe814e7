//! Everything that a program works with, opened from its arguments.

use crate::args::{CONFIG, Common};
use crate::config::Settings;
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::output::{Output, Volume, chain};
use crate::process::{SOME_FAILED, WELL};
use crate::trouble::Trouble;
use crate::wiring::{self, Purpose};
use cloud_core::Provider;
use provision::Site;
use provision::exec::Files;
use provision::run::Look;
use provision::state::{MemoryState, State, StateDir};
use std::path::{Path, PathBuf};

const LOG: &str = "/var/log/slurm/elastic.log";
const STATE: &str = "/var/lib/slurm-elastic";

/// Everything that a program works with.
#[derive(Debug)]
pub struct Context {
    /// What is known from outside.
    pub environment: Environment,
    /// Where to write for people.
    pub output: Output,
    /// Where to write for later.
    pub log: Log,
    /// What `startnode.yaml` says.
    pub settings: Settings,
    /// Slurm.
    pub slurm: wiring::Slurm,
    /// The cloud.
    pub cloud: Box<dyn Provider>,
    /// What the operator decided.
    pub site: Site,
    /// Locks, cool-downs, events.
    pub state: Box<dyn State>,
    /// Where they are.
    pub state_path: PathBuf,
    /// What plans write.
    pub files: Files,
}

impl Context {
    /// Opens it all; nothing is changed, and slurmctld is not asked.
    pub async fn open(
        program: &'static str,
        common: &Common,
        purpose: Purpose,
    ) -> Result<Self, Trouble> {
        let environment = Environment::read();
        let output = output(common, &environment);
        let (settings, warnings) = settings(common)?;
        let log = open_log(program, common, &settings, output);
        let found = wiring::slurm(common, &settings.paths, &environment).await;
        let (slurm, missed) = match found {
            // Without a cluster_id, slurm.conf alone says which machines are ours.
            Err(trouble) if purpose == Purpose::EndAll && settings.cluster_id.is_some() => {
                (wiring::no_slurm(common, &settings.paths, &environment), Some(trouble.to_string()))
            }
            found => (found?, None),
        };
        let mut site = wiring::site(&settings, &environment, &slurm.config, purpose)?;
        let connected = wiring::cloud(&settings, &environment, purpose).await?;
        site.subnet = site.subnet.or(connected.subnet);
        let (state, state_path, lost) = state(common, &settings);
        for warning in warnings.iter().chain(&connected.warnings).chain(&lost).chain(&missed) {
            output.complain(format_args!("warning: {warning}"));
            log.write(Entry { level: Level::Warning, node: None, message: warning });
        }
        let files = Files { slurm_conf: Some(slurm.path.clone()), ..Files::default() };
        let cloud = connected.cloud;
        Ok(Self {
            environment,
            output,
            log,
            settings,
            slurm,
            cloud,
            site,
            state,
            state_path,
            files,
        })
    }
}

/// How to write for people.
#[must_use]
pub fn output(common: &Common, environment: &Environment) -> Output {
    Output::new(common.volume(), environment.get("NO_COLOR").is_some() || common.json)
}

/// What the configuration says, and what is odd about it.
pub fn settings(common: &Common) -> Result<(Settings, Vec<String>), Trouble> {
    let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = "write one (examples/ has them for each cloud) or name another with --config";
        Trouble::new(format!("cannot read the configuration {}: {error}; {remedy}", path.display()))
    })?;
    let loaded = Settings::read(&path.display().to_string(), &text)
        .map_err(|errors| Trouble::from_errors(&errors))?;
    let warnings = loaded.warnings.iter().map(|warning| chain(warning)).collect();
    Ok((loaded.settings, warnings))
}

/// Where the log is, as far as can be known before the configuration is known to be good.
#[must_use]
pub fn log_path(common: &Common) -> PathBuf {
    let configured = || {
        let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
        let text = std::fs::read_to_string(path).ok()?;
        Settings::read("", &text).ok()?.settings.elastic.log.map(PathBuf::from)
    };
    common.log.clone().or_else(configured).unwrap_or_else(|| PathBuf::from(LOG))
}

/// A log that cannot be opened stops nothing, but is said.
fn open_log(program: &'static str, common: &Common, settings: &Settings, output: Output) -> Log {
    let configured = || settings.elastic.log.as_deref().map(PathBuf::from);
    let path = common.log.clone().or_else(configured).unwrap_or_else(|| PathBuf::from(LOG));
    match Log::open(&path, common.log_format, program) {
        Ok(log) => log.verbose(common.volume() == Volume::Verbose),
        Err(error) => {
            output
                .complain(format_args!("warning: no log: cannot open {}: {error}", path.display()));
            Log::nowhere(program)
        }
    }
}

/// A directory that cannot be used stops nothing, as what is in it may be lost; but it is said.
fn state(common: &Common, settings: &Settings) -> (Box<dyn State>, PathBuf, Option<String>) {
    let configured = || settings.elastic.state_dir.as_deref().map(PathBuf::from);
    let path = common.state_dir.clone().or_else(configured);
    let path = path.unwrap_or_else(|| PathBuf::from(STATE));
    match StateDir::open(&path) {
        Ok(state) => (Box::new(state), path, None),
        Err(error) => {
            let remedy = "make it, owned by the user that slurmctld runs as, or name another with --state-dir";
            let lost = format!(
                "no locks and no memory: state directory {}: {}; {remedy}",
                path.display(),
                chain(&error)
            );
            (Box::new(MemoryState::new()), path, Some(lost))
        }
    }
}

impl Context {
    /// Something odd, said and logged.
    pub fn warn(&self, message: &str) {
        self.output.complain(format_args!("warning: {message}"));
        self.log.write(Entry { level: Level::Warning, node: None, message });
    }

    /// Says what could not be seen, and the exit code that follows.
    pub fn blind(&self, look: &Look) -> u8 {
        for warning in &look.warnings {
            self.warn(warning);
        }
        if look.warnings.is_empty() { WELL } else { SOME_FAILED }
    }
}
