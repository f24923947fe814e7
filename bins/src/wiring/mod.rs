//! From configuration to the things that programs work with.

mod notify;
mod prices;
mod site;
mod slurm;

pub use notify::notify;
pub use prices::{prices, prices_file};
pub(crate) use site::features;
pub use site::{deadline, has_room_for_labels, image_rules, keypairs, site, unhurried};
pub use slurm::{Slurm, no_slurm, nobody, slurm, slurm_user};

use crate::clouds::Wanted;
use crate::config::{Elastic, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use cloud_core::http::{self, Proxies};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{ErrorKind, Provider, SubnetId, Unreachable};
use std::path::Path;

/// A cloud, and what an operator should know about how it is set up.
#[derive(Debug)]
pub struct Connected {
    /// The cloud.
    pub cloud: Box<dyn Provider>,
    /// The subnet of new machines, if it had to be looked for.
    pub subnet: Option<SubnetId>,
    /// What the configuration names for new machines, or why it cannot be meant, if that was to be found out.
    pub named: Vec<Result<String, Diagnostic>>,
    /// One sentence each.
    pub warnings: Vec<String>,
    /// Why there is no cloud, where that is no reason to end; then all that it is asked fails.
    pub unreachable: Option<Diagnostic>,
}

/// What a program is going to do in the cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It may launch machines, and has to know where.
    Launch,
    /// It checks whether what launches name is there.
    Check,
    /// It may have to launch one, and has mostly other things to do.
    Perhaps,
    /// It only looks, and says what it saw.
    Look,
    /// It prints what follows from files, and asks at most which shapes there are.
    Print,
    /// It looks, changes or ends.
    Other,
    /// It ends every machine, whether there is a Slurm or not.
    EndAll,
}

impl Purpose {
    /// True if a machine may be launched.
    #[must_use]
    pub fn launches(self) -> bool {
        match self {
            Self::Launch | Self::Check | Self::Perhaps => true,
            Self::Look | Self::Print | Self::Other | Self::EndAll => false,
        }
    }

    /// True if anything may be changed.
    fn changes(self) -> bool {
        match self {
            Self::Launch | Self::Perhaps | Self::Other | Self::EndAll => true,
            Self::Check | Self::Look | Self::Print => false,
        }
    }
}

/// The cloud that the configuration names; what the nodes of slurm.conf want of it is looked for in a check.
pub async fn cloud(
    settings: &Settings,
    environment: &Environment,
    (purpose, slurm): (Purpose, &slurmconf::Config),
) -> Result<Connected, Diagnostic> {
    let wanted = Wanted { settings, environment, purpose, slurm };
    let connected = settings.cloud.connect(wanted).await;
    let goes_on = |diagnostic: &Diagnostic| match purpose {
        Purpose::Check => true,
        // What Slurm knows is worth showing; a wrong configuration is to be mended first.
        Purpose::Look => diagnostic.is_transient(),
        Purpose::Print => settings.cloud.built_in_shapes().is_some(),
        Purpose::Launch | Purpose::Perhaps | Purpose::Other | Purpose::EndAll => false,
    };
    match connected {
        Err(diagnostic) if goes_on(&diagnostic) => Ok(Connected {
            cloud: Box::new(unreachable(&diagnostic).describing(settings.cloud.describe())),
            subnet: None,
            named: Vec::new(),
            warnings: Vec::new(),
            unreachable: Some(diagnostic),
        }),
        connected => connected,
    }
}

/// What stands for a cloud that cannot be asked; what has to be repaired is not asked for again and again.
pub(crate) fn unreachable(why: &Diagnostic) -> Unreachable {
    let kind = if why.is_transient() { ErrorKind::Unavailable } else { ErrorKind::Invalid };
    Unreachable::new(kind, why.to_string())
}

pub(crate) fn pacer(elastic: &Elastic) -> Pacer {
    let mut pace = Pace::default();
    if let Some(rate) = elastic.requests_per_second {
        pace.most = rate;
    }
    // As many requests may be under way as machines are worked on.
    pace.concurrency = pace.concurrency.max(elastic.concurrency.unwrap_or_default());
    Pacer::new(pace)
}

/// How often an operator who only wants to know is kept waiting for the same question.
const ATTEMPTS_TO_KNOW: u32 = 3;

/// Timeouts and proxies.
pub(crate) fn http(
    settings: &Settings,
    environment: &Environment,
    purpose: Purpose,
) -> http::Config {
    let mut config = http::Config::default();
    if !purpose.changes() {
        config.retry.attempts = ATTEMPTS_TO_KNOW;
    }
    // Slurm has a service waited for that is being restarted; whoever else calls wants to know.
    config.retry.refused_connections = environment.by_slurm;
    config.proxies = proxies(settings, environment);
    config
}

/// The proxies of the configuration, or else of the environment, of which slurmctld gives nothing.
fn proxies(settings: &Settings, environment: &Environment) -> Proxies {
    let told = settings.proxies.clone();
    if told.https.is_some() {
        return told;
    }
    let found = Proxies::from_variables(|name| environment.get(name).map(str::to_owned));
    Proxies { no_proxy: told.no_proxy.or(found.no_proxy), ..found }
}

/// The text of a file that should be there.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostic> {
    std::fs::read_to_string(path)
        .map_err(|error| Diagnostic::new(format!("cannot read {}: {error}", path.display())))
}
