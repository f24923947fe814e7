//! Connections and settings of a program, opened from its bootstrap.

use crate::bootstrap::{Bootstrap, OpenedState};
use crate::clouds::Wanted;
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::log::Level;
use crate::output::{Output, Volume};
use crate::progress::ProgressBar;
use crate::wiring::{self, Connected, Purpose};
use cloud_core::Provider;
use cloud_core::pace::Pacer;
use hostlist::{Hostlist, NodeName};
use provision::Files;
use provision::Site;
use provision::conf::fill_from_slurmctld;
use provision::run::Observation;
use provision::state::{State, pace};
use slurmconf::Config;
use slurmctl::Controller as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout};

/// Connections and settings of a program.
#[derive(Debug)]
pub struct Context<'a> {
    /// Options, environment and log.
    pub bootstrap: &'a Bootstrap,
    /// Standard output and standard error.
    pub output: Output,
    /// The settings in `startnode.yaml`.
    pub settings: &'a Settings,
    /// Slurm.
    pub slurm: wiring::Slurm,
    /// The cloud.
    pub cloud: Box<dyn Provider>,
    /// The pace of its requests.
    pub pacer: Pacer,
    /// What the operator decided.
    pub site: Site,
    /// The state directory.
    pub state: Box<dyn State>,
    /// Path of the state directory.
    pub state_path: PathBuf,
    /// True if the state directory cannot be used, so that the state of this run is lost when it ends.
    pub state_is_lost: bool,
    /// What plans write.
    pub files: Files,
    /// Results of `finish --check` for the cloud resources that the configuration names.
    pub named: Vec<Result<String, Diagnostic>>,
    /// Why the cloud cannot be reached, for programs that continue without it.
    pub unreachable: Option<Diagnostic>,
    /// Why files that only a launch needs cannot be read, for `finish --check`.
    pub unread: Vec<String>,
    /// The progress line.
    pub progress: ProgressBar,
}

impl<'a> Context<'a> {
    /// Opens all connections. It changes nothing and sends no request to slurmctld.
    ///
    /// With `nodes`, which slurmctld may be waiting for, connecting to the cloud ends before slurmctld kills the program.
    pub async fn open(
        bootstrap: &'a Bootstrap,
        purpose: Purpose,
        nodes: Option<&Hostlist>,
    ) -> Result<Self, Diagnostic> {
        let begun = Instant::now();
        let settings = bootstrap.settings()?;
        let Bootstrap { environment, output, .. } = bootstrap;
        let (slurm, slurm_warning) = slurm(bootstrap, settings, purpose).await?;
        if bootstrap.common.volume() == Volume::Verbose {
            log_details(bootstrap, &slurm);
        }
        let (mut site, unread) = wiring::site(settings, environment, &slurm.config, purpose)?;
        let OpenedState { state, path: state_path, lost } =
            bootstrap.state(settings, &slurm.config);
        let endpoint = settings.cloud.endpoint(settings);
        let experience = pace::load(&*state, &endpoint, SystemTime::now());
        let pacer = wiring::pacer(&settings.elastic, experience);
        let config = &slurm.config;
        let wanted = Wanted { settings, environment, purpose, slurm: config, pacer: &pacer };
        let connecting = Box::pin(wiring::cloud(wanted));
        let deadline = |nodes| wiring::deadline(settings, config, nodes);
        let left = nodes.map(|nodes| deadline(nodes).saturating_sub(begun.elapsed()));
        let progress = ProgressBar::default();
        let connecting = progress.while_waiting(*output, "the cloud", in_time(left, connecting));
        let Connected { cloud, subnet, named, warnings, unreachable } = connecting.await?;
        site.subnet = site.subnet.or(subnet);
        let warnings = warnings.iter().chain(&lost).chain(&slurm_warning);
        warnings.for_each(|warning| bootstrap.warn(warning));
        Ok(Self {
            cloud,
            pacer,
            files: files(bootstrap, settings, &slurm),
            bootstrap,
            output: *output,
            settings,
            slurm,
            site,
            state,
            state_path,
            state_is_lost: lost.is_some(),
            named,
            unreachable,
            unread,
            progress,
        })
    }
}

/// Opens Slurm. For `stopnode --all`, a missing Slurm is only a warning.
async fn slurm(
    bootstrap: &Bootstrap,
    settings: &Settings,
    purpose: Purpose,
) -> Result<(wiring::Slurm, Option<String>), Diagnostic> {
    match bootstrap.slurm().await {
        // Without a cluster_id, only slurm.conf tells which machines belong to the cluster.
        Err(diagnostic) if purpose == Purpose::EndAll && settings.cluster_id.is_some() => {
            let Bootstrap { common, paths, environment, .. } = bootstrap;
            Ok((wiring::no_slurm(common, paths, environment), Some(diagnostic.to_string())))
        }
        found => Ok((found?, None)),
    }
}

/// What plans write.
fn files(bootstrap: &Bootstrap, settings: &Settings, slurm: &wiring::Slurm) -> Files {
    let expand =
        |path: &Option<String>| path.as_deref().map(|path| bootstrap.environment.expand(path));
    Files {
        slurm_conf: Some(slurm.path.clone()),
        hosts: expand(&settings.paths.hosts),
        inventory: expand(&settings.paths.inventory),
        topology: expand(&settings.paths.topology),
        metrics: expand(&settings.elastic.metrics),
    }
}

/// Awaits a request to the cloud, with a timeout if one is given.
pub async fn in_time<T>(
    left: Option<Duration>,
    request: impl Future<Output = Result<T, Diagnostic>>,
) -> Result<T, Diagnostic> {
    let Some(left) = left else {
        return request.await;
    };
    let late = |_elapsed| Diagnostic::new("the cloud did not answer in time").transient(true);
    timeout(left, request).await.map_err(late)?
}

/// Logs the Slurm version, and from now on every request to the cloud.
fn log_details(bootstrap: &Bootstrap, slurm: &wiring::Slurm) {
    let (conf, version) = (slurm.path.display(), slurm.controller.version());
    bootstrap.log.write(Level::Debug, None, &format!("slurm.conf: {conf}, Slurm {version}"));
    bootstrap.log.take_events();
}

impl Context<'_> {
    /// Keeps the pace that the cloud has taken, for the next process. Without it, that one begins slowly.
    pub fn keep_pace(&self) {
        let endpoint = self.settings.cloud.endpoint(self.settings);
        let _ = pace::keep(&*self.state, &endpoint, SystemTime::now(), self.pacer.learned());
    }

    /// Takes what slurm.conf does not say of these nodes, or of all, from slurmctld.
    pub async fn fill(&mut self, names: Option<&[NodeName]>) {
        let wiring::Slurm { config, controller, .. } = &mut self.slurm;
        if fill_from_slurmctld(config, controller, names).await {
            self.site.keypairs = wiring::keypairs(self.settings, &self.slurm.config);
        }
    }

    /// Finds the images of slurm.conf's nodes. Returns a diagnostic if the configured image does not exist.
    pub async fn find_images(&mut self) -> Result<Option<Diagnostic>, Diagnostic> {
        let config = self.slurm.config.clone();
        self.find_images_of(&config).await
    }

    /// Finds the images of these nodes. Returns a diagnostic if the configured image does not exist.
    pub async fn find_images_of(
        &mut self,
        config: &Config,
    ) -> Result<Option<Diagnostic>, Diagnostic> {
        let rules = wiring::image_rules(self.settings);
        let found = rules.resolve(&mut self.site, config, &*self.cloud).await;
        Ok(found?.map(Diagnostic::new))
    }

    /// Finds the images, and continues without those that cannot be found. Nodes that need one of these are refused.
    pub async fn find_available_images(&mut self) -> Result<(), Diagnostic> {
        let found = self.find_images().await;
        self.tolerate_missing_images(found)
    }

    /// Continues without images after a transient failure, or if the configured image does not exist.
    pub fn tolerate_missing_images(
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

    /// A warning if slurmctld hides powered-down nodes.
    #[must_use]
    pub fn hidden_nodes_warning(&self) -> Option<String> {
        let config = &self.slurm.config;
        let hides = config.hides_powered_down_nodes(self.slurm.controller.version())
            && !config.cloud_nodes().is_empty();
        let text = "slurmctld hides powered-down elastic nodes, so that DOWN nodes among them are not repaired and machines \
            left running are not found; set PrivateData=cloud in slurm.conf";
        hides.then(|| text.to_owned())
    }

    /// Continues without the configured image, which does not exist. Nodes that need it are refused.
    pub fn without_image(&mut self, why: &Diagnostic) {
        self.warn(&why.to_string());
        self.site.image = None;
    }

    /// True to print JSON.
    #[must_use]
    pub fn json(&self) -> bool {
        self.bootstrap.common.json
    }

    /// True to print the plan and change nothing.
    #[must_use]
    pub fn dry_run(&self) -> bool {
        self.bootstrap.common.dry_run
    }

    /// Prints and logs a warning.
    pub fn warn(&self, message: &str) {
        self.bootstrap.warn(message);
    }

    /// Prints what could not be observed, and returns the resulting exit code.
    pub fn report_unobserved(&self, observation: &Observation) -> u8 {
        self.bootstrap.warn_all(&observation.warnings)
    }
}
