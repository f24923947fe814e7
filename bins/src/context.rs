//! Everything that a program works with, opened from its arguments.

use crate::args::{CONFIG, Common};
use crate::bar::Bar;
use crate::config::{Paths, Settings};
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::output::{Output, Volume, chain};
use crate::process::{SOME_FAILED, WELL};
use crate::trouble::Trouble;
use crate::wiring::{self, Connected, Purpose, Traced};
use cloud_core::Provider;
use hostlist::{Hostlist, NodeName};
use provision::Site;
use provision::exec::Files;
use provision::run::Look;
use provision::state::{MemoryState, State, StateDir};
use slurmctl::Controller as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

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
    pub log: Arc<Log>,
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
    /// True if the state directory cannot be used: what this run remembers ends with it.
    pub forgets: bool,
    /// What plans write.
    pub files: Files,
    /// What the configuration names for new machines, or why it cannot be meant, if that was to be found out.
    pub named: Vec<Result<String, Trouble>>,
    /// Why there is no cloud, where that is no reason to end.
    pub away: Option<Trouble>,
    /// Why files that only a launch needs cannot be read, if that was to be found out.
    pub unread: Vec<String>,
    /// How far it is.
    pub bar: Bar,
}

impl Context {
    /// Opens it all; nothing is changed, and slurmctld is not asked.
    pub async fn open(
        program: &'static str,
        common: &Common,
        purpose: Purpose,
    ) -> Result<Self, Trouble> {
        Self::open_for(program, common, purpose, None).await
    }

    /// The same for nodes that slurmctld may have called us for: a cloud that does not answer is given up before slurmctld
    /// gives us up.
    pub async fn open_for(
        program: &'static str,
        common: &Common,
        purpose: Purpose,
        nodes: Option<&Hostlist>,
    ) -> Result<Self, Trouble> {
        let begun = Instant::now();
        let environment = Environment::read();
        let output = output(common, &environment);
        let (settings, warnings) = settings(common)?;
        let environment = own_environment(common, &settings, environment);
        let log = Arc::new(open_log(program, common, (&settings, &environment), output));
        let warn = |warning: &String| {
            output.complain(format_args!("warning: {warning}"));
            log.write(Entry { level: Level::Warning, node: None, message: warning });
        };
        // What cannot be opened may be so for what is odd about the configuration.
        warnings.iter().for_each(warn);
        let found = wiring::slurm(common, &settings.paths, &environment).await;
        let (slurm, missed) = match found {
            // Without a cluster_id, slurm.conf alone says which machines are ours.
            Err(trouble) if purpose == Purpose::EndAll && settings.cluster_id.is_some() => {
                (wiring::no_slurm(common, &settings.paths, &environment), Some(trouble.to_string()))
            }
            found => (found?, None),
        };
        let (mut site, unread) = wiring::site(&settings, &environment, &slurm.config, purpose)?;
        let connecting = Box::pin(wiring::cloud(&settings, &environment, (purpose, &slurm.config)));
        let deadline = nodes.map(|nodes| wiring::deadline(&settings, &slurm.config, nodes));
        let left = deadline.map(|deadline| deadline.saturating_sub(begun.elapsed()));
        let connected = in_time(left, connecting).await?;
        site.subnet = site.subnet.or(connected.subnet);
        let (state, state_path, lost) = state(common, &settings, &environment);
        connected.warnings.iter().chain(&lost).chain(&missed).for_each(warn);
        let kept = |path: &Option<String>| path.as_deref().map(|path| environment.expand(path));
        let files = Files {
            slurm_conf: Some(slurm.path.clone()),
            hosts: kept(&settings.paths.hosts),
            inventory: kept(&settings.paths.inventory),
        };
        let Connected { cloud, named, away, .. } = connected;
        let verbose = common.volume() == Volume::Verbose;
        let cloud = if verbose { traced(cloud, &slurm, &log) } else { cloud };
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
            forgets: lost.is_some(),
            files,
            named,
            away,
            unread,
            bar: Bar::default(),
        })
    }
}

/// What the cloud says within this time, if there is one.
pub async fn in_time<T>(
    left: Option<Duration>,
    asked: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    let Some(left) = left else {
        return asked.await;
    };
    let late = |_elapsed| Trouble::new("the cloud did not answer in time").passing(true);
    timeout(left, asked).await.map_err(late)?
}

/// The cloud with a line in the log about each request, and one before them about Slurm.
fn traced(cloud: Box<dyn Provider>, slurm: &wiring::Slurm, log: &Arc<Log>) -> Box<dyn Provider> {
    let (conf, version) = (slurm.path.display(), slurm.controller.version());
    let message = format!("slurm.conf: {conf}, Slurm {version}");
    log.write(Entry { level: Level::Debug, node: None, message: &message });
    Box::new(Traced::new(cloud, Arc::clone(log)))
}

/// How to write for people.
#[must_use]
pub fn output(common: &Common, environment: &Environment) -> Output {
    let output = Output::new(common.volume(), environment.get("NO_COLOR").is_some() || common.json);
    if common.json { output.without_progress() } else { output }
}

/// The environment with the home of the user that slurmctld runs as.
#[must_use]
pub fn own_environment(common: &Common, settings: &Settings, read: Environment) -> Environment {
    let user = wiring::slurm_user(common, &settings.paths, &read);
    read.on_behalf_of(user.as_deref())
}

/// What the configuration says, and what is odd about it.
pub fn settings(common: &Common) -> Result<(Settings, Vec<String>), Trouble> {
    let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = "write one (share/doc/slurm-elastic/examples has them for each cloud) or name another with --config";
        Trouble::new(format!("cannot read the configuration {}: {error}; {remedy}", path.display()))
    })?;
    let loaded = Settings::read(&path.display().to_string(), &text).map_err(|errors| {
        let remedy = "share/doc/slurm-elastic has docs/configuration.md, which says what each key may be, and examples";
        Trouble::from_errors(&errors).advising(remedy)
    })?;
    let warnings = loaded.warnings.iter().map(|warning| chain(warning)).collect();
    Ok((loaded.settings, warnings))
}

/// Where Slurm is, as far as a configuration says so that cannot be read as a whole.
#[must_use]
pub fn legible_paths(common: &Common) -> Paths {
    let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let value = |key: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let value = found.map(|value| {
            value
                .split_once(" #")
                .or_else(|| value.split_once("\t#"))
                .map_or(value, |(value, _)| value)
        });
        let found = value.map(|value| value.trim().trim_matches(['"', '\'']));
        found.filter(|value| value.starts_with('/')).map(str::to_owned)
    };
    Paths { slurm_conf: value("slurm_conf"), slurm_bin: value("slurm_bin"), ..Paths::default() }
}

/// Where the log is, as far as can be known before the configuration is known to be good.
#[must_use]
pub fn log_path(common: &Common) -> PathBuf {
    let configured = || {
        let settings = settings(common).ok()?.0;
        let environment = own_environment(common, &settings, Environment::read());
        settings.elastic.log.map(|log| environment.expand(&log))
    };
    common.log.clone().or_else(configured).unwrap_or_else(|| PathBuf::from(LOG))
}

/// A log that cannot be opened stops nothing, but is said.
fn open_log(
    program: &'static str,
    common: &Common,
    (settings, environment): (&Settings, &Environment),
    output: Output,
) -> Log {
    let configured = || settings.elastic.log.as_deref().map(|path| environment.expand(path));
    let path = common.log.clone().or_else(configured).unwrap_or_else(|| PathBuf::from(LOG));
    if common.dry_run && !path.exists() && path != Path::new("-") {
        return Log::nowhere(program);
    }
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
fn state(
    common: &Common,
    settings: &Settings,
    environment: &Environment,
) -> (Box<dyn State>, PathBuf, Option<String>) {
    let configured = || settings.elastic.state_dir.as_deref().map(|path| environment.expand(path));
    let path = common.state_dir.clone().or_else(configured);
    let path = path.unwrap_or_else(|| PathBuf::from(STATE));
    if common.dry_run && !path.exists() {
        return (Box::new(MemoryState::new()), path, None);
    }
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
    /// Takes what slurm.conf does not say of these nodes, or of all, from slurmctld.
    pub async fn fill(&mut self, names: Option<&[NodeName]>) {
        if wiring::fill(&mut self.slurm, names).await {
            self.site.keypairs = wiring::keypairs(&self.settings, &self.slurm.config);
        }
    }

    /// Finds the images of slurm.conf's nodes; gives what is wrong with that of the configuration.
    pub async fn find_images(&mut self) -> Result<Option<Trouble>, Trouble> {
        wiring::images(&mut self.site, &self.settings, &self.slurm.config, &*self.cloud).await
    }

    /// What is not to be seen of Slurm, and what to do about it.
    #[must_use]
    pub fn hidden(&self) -> Option<String> {
        let config = &self.slurm.config;
        let hides =
            config.hides_nodes(self.slurm.controller.version()) && !config.cloud_nodes().is_empty();
        let text = "slurmctld hides elastic nodes that are powered down, so that one that is DOWN stays so, and a machine \
            that was left running is not found: set PrivateData=cloud in slurm.conf";
        hides.then(|| text.to_owned())
    }

    /// Goes on without an image that is not there: what needs none is done, and the rest is refused.
    pub fn without_image(&mut self, why: &Trouble) {
        self.warn(&why.to_string());
        self.site.image = None;
    }

    /// Something odd, said and logged.
    pub fn warn(&self, message: &str) {
        self.output.complain(format_args!("warning: {message}"));
        self.log.write(Entry { level: Level::Warning, node: None, message });
    }

    /// Something wrong, said and logged.
    pub fn error(&self, message: &str) {
        self.output.complain(message);
        self.log.write(Entry { level: Level::Error, node: None, message });
    }

    /// Says what could not be seen, and the exit code that follows.
    pub fn blind(&self, look: &Look) -> u8 {
        for warning in &look.warnings {
            self.warn(warning);
        }
        if look.warnings.is_empty() { WELL } else { SOME_FAILED }
    }
}
