//! Everything that a program works with, opened from its arguments.

use crate::args::{CONFIG, Common};
use crate::bar::Bar;
use crate::config::{Paths, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::{Environment, user_called};
use crate::log::{Entry, Level, Log};
use crate::output::{Output, Volume, chain};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::wiring::{self, Connected, Purpose, Traced};
use cloud_core::Provider;
use hostlist::{Hostlist, NodeName};
use nix::unistd::getuid;
use provision::Site;
use provision::exec::Files;
use provision::run::Observation;
use provision::state::{MemoryState, State, StateDir, inherit_owner};
use slurmconf::Config;
use slurmctl::Controller as _;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown};
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
    pub named: Vec<Result<String, Diagnostic>>,
    /// Why there is no cloud, where that is no reason to end.
    pub unreachable: Option<Diagnostic>,
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
    ) -> Result<Self, Diagnostic> {
        Self::open_for(program, common, purpose, None).await
    }

    /// The same for nodes that slurmctld may have called us for: a cloud that does not answer is given up before slurmctld
    /// gives us up.
    pub async fn open_for(
        program: &'static str,
        common: &Common,
        purpose: Purpose,
        nodes: Option<&Hostlist>,
    ) -> Result<Self, Diagnostic> {
        let begun = Instant::now();
        let Desk { environment, output, log, settings } = Desk::open(program, common)?;
        let (slurm, missed) = slurm(common, &settings, &environment, purpose).await?;
        let (mut site, unread) = wiring::site(&settings, &environment, &slurm.config, purpose)?;
        let connecting = Box::pin(wiring::cloud(&settings, &environment, (purpose, &slurm.config)));
        let deadline = |nodes| wiring::deadline(&settings, &slurm.config, nodes);
        let left = nodes.map(|nodes| deadline(nodes).saturating_sub(begun.elapsed()));
        let connected = in_time(left, connecting).await?;
        site.subnet = site.subnet.or(connected.subnet);
        let (state, state_path, lost) = state(common, &settings, &environment, &slurm.config);
        let warnings = connected.warnings.iter().chain(&lost).chain(&missed);
        warnings.for_each(|warning| warn(output, &log, warning));
        let Connected { cloud, named, unreachable, .. } = connected;
        let cloud = traced(cloud, &slurm, &log, common.volume());
        let files = files(&settings, &environment, &slurm);
        let (forgets, bar) = (lost.is_some(), Bar::default());
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
            forgets,
            files,
            named,
            unreachable,
            unread,
            bar,
        })
    }
}

/// What is there before Slurm and the cloud are looked for: what the operator wrote, and where to write.
struct Desk {
    environment: Environment,
    output: Output,
    log: Arc<Log>,
    settings: Settings,
}

impl Desk {
    fn open(program: &'static str, common: &Common) -> Result<Self, Diagnostic> {
        let environment = Environment::read();
        let output = output(common, &environment);
        let (settings, warnings) = settings(common)?;
        let environment = own_environment(common, &settings, environment);
        let log = Arc::new(open_log(program, common, (&settings, &environment), output));
        // Said at once: what cannot be opened later may be so for what is odd about the configuration.
        for warning in &warnings {
            warn(output, &log, warning);
        }
        Ok(Self { environment, output, log, settings })
    }
}

/// Says something odd, and logs it.
fn warn(output: Output, log: &Log, message: &str) {
    output.complain(format_args!("warning: {message}"));
    log.write(Entry { level: Level::Warning, node: None, message });
}

/// Slurm, or what stands for it where every machine is to end: then what was missed of it, too.
async fn slurm(
    common: &Common,
    settings: &Settings,
    environment: &Environment,
    purpose: Purpose,
) -> Result<(wiring::Slurm, Option<String>), Diagnostic> {
    match wiring::slurm(common, &settings.paths, environment).await {
        // Without a cluster_id, slurm.conf alone says which machines are ours.
        Err(diagnostic) if purpose == Purpose::EndAll && settings.cluster_id.is_some() => {
            let nobody = wiring::no_slurm(common, &settings.paths, environment);
            Ok((nobody, Some(diagnostic.to_string())))
        }
        found => Ok((found?, None)),
    }
}

/// What plans write.
fn files(settings: &Settings, environment: &Environment, slurm: &wiring::Slurm) -> Files {
    let kept = |path: &Option<String>| path.as_deref().map(|path| environment.expand(path));
    Files {
        slurm_conf: Some(slurm.path.clone()),
        hosts: kept(&settings.paths.hosts),
        inventory: kept(&settings.paths.inventory),
    }
}

/// What the cloud says within this time, if there is one.
pub async fn in_time<T>(
    left: Option<Duration>,
    asked: impl Future<Output = Result<T, Diagnostic>>,
) -> Result<T, Diagnostic> {
    let Some(left) = left else {
        return asked.await;
    };
    let late = |_elapsed| Diagnostic::new("the cloud did not answer in time").transient(true);
    timeout(left, asked).await.map_err(late)?
}

/// The cloud, where much is to be said with a line in the log about each request, and one before them about Slurm.
fn traced(
    cloud: Box<dyn Provider>,
    slurm: &wiring::Slurm,
    log: &Arc<Log>,
    volume: Volume,
) -> Box<dyn Provider> {
    if volume != Volume::Verbose {
        return cloud;
    }
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
pub fn settings(common: &Common) -> Result<(Settings, Vec<String>), Diagnostic> {
    let path = common.config.as_deref().unwrap_or(Path::new(CONFIG));
    let text = std::fs::read_to_string(path).map_err(|error| {
        let remedy = "write one (share/doc/slurm-elastic/examples has them for each cloud) or name another with --config";
        Diagnostic::new(format!("cannot read the configuration {}: {error}; {remedy}", path.display()))
    })?;
    let loaded = Settings::read(&path.display().to_string(), &text).map_err(|errors| {
        let remedy = "share/doc/slurm-elastic has docs/configuration.md, which says what each key may be, and examples";
        Diagnostic::from_errors(&errors).with_help(remedy)
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

/// Makes a state directory that is missing where root looks for it, and gives it to the user that slurmctld runs as: in one of
/// root's, slurmctld's programs could lock nothing. What stands in the way is found when it is opened.
fn make_for(user: Option<&str>, path: &Path) {
    let user = user.and_then(user_called).filter(|_| getuid().is_root() && !path.exists());
    let (Some(user), Some(parent)) = (user, path.parent()) else {
        return;
    };
    let made = fs::create_dir_all(parent).and_then(|()| fs::create_dir(path));
    if made.is_err() {
        return;
    }
    if fs::metadata(parent).is_ok_and(|parent| parent.uid() == 0) {
        let _ = lchown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    } else {
        // Whoever has the directory around it may put anything in the place of this one: it is not for root to give away.
        inherit_owner(path);
    }
}

/// A directory that cannot be used stops nothing, as what is in it may be lost; but it is said. One that is missing is made for
/// slurmctld's user.
pub(crate) fn state(
    common: &Common,
    settings: &Settings,
    environment: &Environment,
    slurm: &Config,
) -> (Box<dyn State>, PathBuf, Option<String>) {
    let configured = || settings.elastic.state_dir.as_deref().map(|path| environment.expand(path));
    let path = common.state_dir.clone().or_else(configured);
    let path = path.unwrap_or_else(|| PathBuf::from(STATE));
    if common.dry_run && !path.exists() {
        return (Box::new(MemoryState::new()), path, None);
    }
    make_for(slurm.get("SlurmUser"), &path);
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
    pub async fn find_images(&mut self) -> Result<Option<Diagnostic>, Diagnostic> {
        let config = self.slurm.config.clone();
        self.find_images_of(&config).await
    }

    /// Finds the images of these nodes; gives what is wrong with that of the configuration.
    pub async fn find_images_of(
        &mut self,
        config: &Config,
    ) -> Result<Option<Diagnostic>, Diagnostic> {
        let rules = wiring::image_rules(&self.settings);
        let found = rules.resolve(&mut self.site, config, &*self.cloud).await;
        Ok(found.map_err(|error| Diagnostic::from_cloud(&error))?.map(Diagnostic::new))
    }

    /// What is not to be seen of Slurm, and what to do about it.
    #[must_use]
    pub fn hidden(&self) -> Option<String> {
        let config = &self.slurm.config;
        let hides = config.hides_powered_down_nodes(self.slurm.controller.version())
            && !config.cloud_nodes().is_empty();
        let text = "slurmctld hides elastic nodes that are powered down, so that one that is DOWN stays so, and a machine \
            that was left running is not found: set PrivateData=cloud in slurm.conf";
        hides.then(|| text.to_owned())
    }

    /// Goes on without an image that is not there: what needs none is done, and the rest is refused.
    pub fn without_image(&mut self, why: &Diagnostic) {
        self.warn(&why.to_string());
        self.site.image = None;
    }

    /// Something odd, said and logged.
    pub fn warn(&self, message: &str) {
        warn(self.output, &self.log, message);
    }

    /// Something wrong, said and logged.
    pub fn error(&self, message: &str) {
        self.output.complain(message);
        self.log.write(Entry { level: Level::Error, node: None, message });
    }

    /// Says what could not be seen, and the exit code that follows.
    pub fn blind(&self, look: &Observation) -> u8 {
        for warning in &look.warnings {
            self.warn(warning);
        }
        if look.warnings.is_empty() { SUCCESS } else { SOME_FAILED }
    }
}
