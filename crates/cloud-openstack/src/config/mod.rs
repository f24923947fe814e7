//! Configuration of a cloud: clouds.yaml, secure.yaml and the `OS_*` variables.

mod entry;
mod file;
mod variables;

pub(crate) use entry::bad_setting;

use crate::catalog::{Interface, Service};
use cloud_core::http::{Roots, Url};
use cloud_core::{ConfigError, Secret, Sources};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::path::PathBuf;

/// The cloud to find, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The requested cloud, if any.
    pub cloud: Option<String>,
    /// Directories that may have a clouds.yaml, in order of preference.
    pub directories: Vec<PathBuf>,
}

impl Search {
    /// The usual places: the current directory, the user's and the system's.
    #[must_use]
    pub fn usual(sources: &Sources<'_>) -> Self {
        let user = sources.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let user = user.or_else(|| sources.at_home(".config")).map(|it| it.join("openstack"));
        let places = [Some(PathBuf::from(".")), user, Some(PathBuf::from("/etc/openstack"))];
        Self { cloud: None, directories: places.into_iter().flatten().collect() }
    }
}

/// The configuration of a cloud.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where this was configured, for errors.
    pub origin: Origin,
    /// Keystone, up to and including `/v3`.
    pub auth_url: Url,
    /// The credentials.
    pub credentials: Credentials,
    /// The region. Without it, all used services must be in a single one.
    pub region: Option<String>,
    /// Which of a service's endpoints to use.
    pub interface: Interface,
    /// Addresses that override the catalog.
    pub overrides: BTreeMap<Service, Url>,
    /// The trusted certificate authorities.
    pub roots: Roots,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

/// The origin of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A cloud of a clouds.yaml.
    File {
        /// The file.
        file: PathBuf,
        /// The cloud's key in it.
        cloud: String,
    },
    /// The `OS_*` variables.
    Variables,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, cloud } => write!(f, "cloud '{cloud}' in {}", file.display()),
            Self::Variables => f.write_str("the cloud of the OS_* variables"),
        }
    }
}

/// The kinds of credentials.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// A user with a password, in a project.
    Password {
        /// The user.
        user: Account,
        /// The password.
        password: Secret<String>,
        /// The project to work in.
        scope: Account,
    },
    /// An application credential, which has a project.
    ApplicationCredential {
        /// Its id, or its name and user.
        identity: ApplicationCredential,
        /// Its secret.
        secret: Secret<String>,
    },
    /// An existing token, in a project. Without a project, Keystone uses the user's default one and not that of the token.
    Token {
        /// The token.
        token: Secret<String>,
        /// The project to work in.
        scope: Account,
    },
}

impl Credentials {
    /// The description in messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Password { .. } => "the user name and password",
            Self::ApplicationCredential { .. } => "the application credential",
            Self::Token { .. } => "the token",
        }
    }
}

/// The identification of an application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationCredential {
    /// By id.
    Id(String),
    /// By name and user.
    Name {
        /// The name.
        name: String,
        /// The user.
        user: Account,
    },
}

/// A user or a project: by id, or by name within a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// By id.
    Id(String),
    /// By name.
    Name {
        /// The name.
        name: String,
        /// Its domain.
        domain: Domain,
    },
}

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

impl Config {
    /// Reads the configuration in the order of OpenStack's own client: the requested cloud, or else the one that `OS_CLOUD`
    /// names, the `OS_*` variables if there is an `OS_AUTH_URL`, the file's cloud `openstack`, or its only one.
    pub fn load(sources: &Sources<'_>, search: &Search) -> Result<Self, ConfigError> {
        let variable = || sources.variable("OS_CLOUD").map(str::to_owned);
        let named = search.cloud.clone().or_else(variable);
        if named.is_none() && sources.variable("OS_AUTH_URL").is_some() {
            return entry::config(Origin::Variables, &variables::entry(sources), sources);
        }
        let mut found = file::find(sources, &search.directories, named.as_deref())?;
        let cloud = file::choose(&found, named)?;
        let entry = found.clouds.remove(&cloud).unwrap_or(Value::Null);
        let origin = Origin::File { file: found.file, cloud };
        let mut config = entry::config(origin, &entry, sources)?;
        config.warnings.append(&mut found.warnings);
        Ok(config)
    }
}

/// Formats names in quotes, separated by commas.
pub(crate) fn names<T: Display>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
