//! Builds connections and policies from the configuration.

mod notify;
mod prices;
mod site;
mod slurm;

pub use notify::notify;
pub use prices::{prices, prices_file};
pub(crate) use site::features;
pub use site::{deadline, has_room_for_labels, image_rules, keypairs, operator_deadline, site};
pub use slurm::{Slurm, no_slurm, slurm, slurm_user, unreachable_controller};

use crate::clouds::Wanted;
use crate::config::{Elastic, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use cloud_core::http::{self, Proxies};
use cloud_core::pace::{Experience, Pace, Pacer};
use cloud_core::{ErrorKind, Provider, SubnetId, Unreachable};
use std::path::Path;

/// A connection to a cloud, with warnings about its configuration.
#[derive(Debug)]
pub struct Connected {
    /// The cloud.
    pub cloud: Box<dyn Provider>,
    /// The subnet of new machines, if the configuration does not name it.
    pub subnet: Option<SubnetId>,
    /// Results of `finish --check` for the cloud resources that the configuration names.
    pub named: Vec<Result<String, Diagnostic>>,
    /// Warnings, one sentence each.
    pub warnings: Vec<String>,
    /// Why the cloud cannot be reached, for programs that continue without it. All requests then fail.
    pub unreachable: Option<Diagnostic>,
}

/// What a program does in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Launch machines.
    Launch,
    /// Check whether the resources for a launch exist.
    Check,
    /// Launch machines only in rare cases: continue without a subnet.
    Perhaps,
    /// Observe only.
    Observe,
    /// Print what follows from files, with at most a request for the shapes.
    Print,
    /// Observe, change or terminate, without a launch.
    Other,
    /// Terminate every machine, even without Slurm.
    EndAll,
}

impl Purpose {
    /// True if a machine may be launched.
    #[must_use]
    pub fn launches(self) -> bool {
        match self {
            Self::Launch | Self::Check | Self::Perhaps => true,
            Self::Observe | Self::Print | Self::Other | Self::EndAll => false,
        }
    }

    /// True if anything may be changed.
    fn changes(self) -> bool {
        match self {
            Self::Launch | Self::Perhaps | Self::Other | Self::EndAll => true,
            Self::Check | Self::Observe | Self::Print => false,
        }
    }
}

/// Connects to the configured cloud. A program that can continue without gets one whose requests all fail.
pub async fn cloud(wanted: Wanted<'_>) -> Result<Connected, Diagnostic> {
    let Wanted { settings, purpose, .. } = wanted;
    let connected = settings.cloud.connect(wanted).await;
    let continues = |diagnostic: &Diagnostic| match purpose {
        Purpose::Check => true,
        // Slurm's view is worth showing, but a wrong configuration has to be repaired first.
        Purpose::Observe => diagnostic.is_transient(),
        Purpose::Print => settings.cloud.describe().built_in_shapes.is_some(),
        Purpose::Launch | Purpose::Perhaps | Purpose::Other | Purpose::EndAll => false,
    };
    match connected {
        Err(diagnostic) if continues(&diagnostic) => Ok(Connected {
            cloud: Box::new(unreachable(&diagnostic).describing(settings.cloud.describe())),
            subnet: None,
            named: Vec::new(),
            warnings: Vec::new(),
            unreachable: Some(diagnostic),
        }),
        connected => connected,
    }
}

/// Returns a cloud whose requests all fail. A configuration error is not retried.
pub(crate) fn unreachable(why: &Diagnostic) -> Unreachable {
    let kind = if why.is_transient() { ErrorKind::Unavailable } else { ErrorKind::Invalid };
    Unreachable::new(kind, why.to_string())
}

/// A pacer for all requests of this process, which begins where earlier ones have come to.
#[must_use]
pub fn pacer(elastic: &Elastic, experience: Experience) -> Pacer {
    let mut pace = Pace::default();
    if let Some(rate) = elastic.requests_per_second {
        pace.most = rate;
    }
    // Each machine that is worked on may have a request in flight.
    pace.concurrency = pace.concurrency.max(elastic.concurrency.unwrap_or_default());
    Pacer::with_experience(pace, experience)
}

/// Maximum attempts of a request for a program that changes nothing: an operator is waiting.
const READ_ONLY_ATTEMPTS: u32 = 3;

/// Timeouts, retries and proxies of HTTP requests.
pub(crate) fn http(
    settings: &Settings,
    environment: &Environment,
    purpose: Purpose,
) -> http::ClientConfig {
    let mut config = http::ClientConfig::default();
    if !purpose.changes() {
        config.retry.attempts = READ_ONLY_ATTEMPTS;
    }
    // For Slurm, wait while a service restarts; report it to other callers.
    config.retry.refused_connections = environment.by_slurm;
    config.proxies = proxies(settings, environment);
    config
}

/// The proxies of the configuration, or else those of the environment.
fn proxies(settings: &Settings, environment: &Environment) -> Proxies {
    let configured = settings.proxies.clone();
    if configured.https.is_some() {
        return configured;
    }
    let found = Proxies::from_variables(|name| environment.get(name).map(str::to_owned));
    Proxies { no_proxy: configured.no_proxy.or(found.no_proxy), ..found }
}

/// Reads a file that must exist.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostic> {
    std::fs::read_to_string(path)
        .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", path.display())))
}
