//! Everything that a program works with, opened from its bootstrap.

use crate::args::Common;
use crate::bootstrap::{Bootstrap, OpenedState};
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::log::{Entry, Level, Log};
use crate::output::{Output, Volume};
use crate::process::{SOME_FAILED, SUCCESS};
use crate::progress::ProgressBar;
use crate::wiring::{self, Connected, Purpose};
use cloud_core::Provider;
use hostlist::{Hostlist, NodeName};
use provision::Files;
use provision::Site;
use provision::conf::fill_from_slurmctld;
use provision::run::Observation;
use provision::state::State;
use slurmconf::Config;
use slurmctl::Controller as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Everything that a program works with.
#[derive(Debug)]
pub struct Context {
    /// What is known from outside.
    pub environment: Environment,
    /// Where to write for people.
    pub output: Output,
    /// Where to write for later.
    pub log: Arc<Log>,
    /// Where that is.
    pub log_path: PathBuf,
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
    pub progress: ProgressBar,
}

impl Context {
    /// Opens everything; nothing is changed, and slurmctld is not asked.
    ///
    /// For nodes that slurmctld may have called us for, a cloud that does not answer is given up before slurmctld gives us up.
    pub async fn open(
        bootstrap: &Bootstrap,
        purpose: Purpose,
        nodes: Option<&Hostlist>,
    ) -> Result<Self, Diagnostic> {
        let begun = Instant::now();
        let settings = bootstrap.settings()?;
        let Bootstrap { common, environment, output, log, .. } = bootstrap;
        let (slurm, missed) = slurm(common, &settings, environment, purpose).await?;
        if common.volume() == Volume::Verbose {
            log_details(log, &slurm);
        }
        let (mut site, unread) = wiring::site(&settings, environment, &slurm.config, purpose)?;
        let connecting = Box::pin(wiring::cloud(&settings, environment, (purpose, &slurm.config)));
        let deadline = |nodes| wiring::deadline(&settings, &slurm.config, nodes);
        let left = nodes.map(|nodes| deadline(nodes).saturating_sub(begun.elapsed()));
        let progress = ProgressBar::default();
        let connecting = progress.while_waiting(*output, "the cloud", in_time(left, connecting));
        let Connected { cloud, subnet, named, warnings, unreachable } = connecting.await?;
        site.subnet = site.subnet.or(subnet);
        let OpenedState { state, path: state_path, lost } =
            bootstrap.state(&settings, &slurm.config);
        let warnings = warnings.iter().chain(&lost).chain(&missed);
        warnings.for_each(|warning| bootstrap.warn(warning));
        Ok(Self {
            cloud,
            files: files(&settings, environment, &slurm),
            environment: environment.clone(),
            output: *output,
            log: Arc::clone(log),
            log_path: bootstrap.log_path.clone(),
            settings,
            slurm,
            site,
            state,
            state_path,
            forgets: lost.is_some(),
            named,
            unreachable,
            unread,
            progress,
        })
    }
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
        topology: kept(&settings.paths.topology),
        metrics: kept(&settings.elastic.metrics),
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

/// Has the log say which Slurm there is, and from now on every request to the cloud.
fn log_details(log: &Arc<Log>, slurm: &wiring::Slurm) {
    let (conf, version) = (slurm.path.display(), slurm.controller.version());
    let message = format!("slurm.conf: {conf}, Slurm {version}");
    log.write(Entry { level: Level::Debug, node: None, message: &message });
    log.take_events();
}

impl Context {
    /// Takes what slurm.conf does not say of these nodes, or of all, from slurmctld.
    pub async fn fill(&mut self, names: Option<&[NodeName]>) {
        let wiring::Slurm { config, controller, .. } = &mut self.slurm;
        if fill_from_slurmctld(config, controller, names).await {
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
        Ok(found?.map(Diagnostic::new))
    }

    /// Finds the images, and goes on without those that cannot be had: what needs none is done, and the rest is refused.
    pub async fn find_images_or_go_on(&mut self) -> Result<(), Diagnostic> {
        let found = self.find_images().await;
        self.go_on_without(found)
    }

    /// Goes on without images that a transient failure hides, or without a configured one that is not there.
    pub fn go_on_without(
        &mut self,
        found: Result<Option<Diagnostic>, Diagnostic>,
    ) -> Result<(), Diagnostic> {
        match found {
            Err(diagnostic) if diagnostic.is_transient() => self.warn(&diagnostic.to_string()),
            Ok(Some(unknown)) => self.without_image(&unknown),
            found => found.map(drop)?,
        }
        Ok(())
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
        self.output.complain(format_args!("warning: {message}"));
        self.log.write(Entry { level: Level::Warning, node: None, message });
    }

    /// Something wrong, said and logged.
    pub fn error(&self, message: &str) {
        self.output.complain(message);
        self.log.write(Entry { level: Level::Error, node: None, message });
    }

    /// Prints what could not be observed, and returns the exit code that follows.
    pub fn blind(&self, look: &Observation) -> u8 {
        for warning in &look.warnings {
            self.warn(warning);
        }
        if look.warnings.is_empty() { SUCCESS } else { SOME_FAILED }
    }
}
