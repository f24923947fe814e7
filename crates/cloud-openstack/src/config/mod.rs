//! Which cloud, and how to get in: clouds.yaml, secure.yaml and the `OS_*` variables.

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

/// Which cloud to look for, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The cloud asked for, if any.
    pub cloud: Option<String>,
    /// Directories that may have a clouds.yaml, best first.
    pub directories: Vec<PathBuf>,
}

impl Search {
    /// The usual places: the current directory, that of the user, that of the machine.
    #[must_use]
    pub fn usual(sources: &Sources<'_>) -> Self {
        let user = sources.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let user = user.or_else(|| sources.at_home(".config")).map(|it| it.join("openstack"));
        let places = [Some(PathBuf::from(".")), user, Some(PathBuf::from("/etc/openstack"))];
        Self { cloud: None, directories: places.into_iter().flatten().collect() }
    }
}

/// How to get into one cloud.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Where all this was written, for errors.
    pub origin: Origin,
    /// Keystone, up to and including `/v3`.
    pub auth_url: Url,
    /// Who we are.
    pub credentials: Credentials,
    /// The region to use. If none is given, the catalog has to have but one for what we use.
    pub region: Option<String>,
    /// Which of a service's endpoints to use.
    pub interface: Interface,
    /// Endpoints that are not taken from the catalog.
    pub overrides: BTreeMap<Service, Url>,
    /// Whom to trust.
    pub roots: Roots,
    /// What an operator should know and change.
    pub warnings: Vec<String>,
}

/// Where a configuration was written.
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

/// Who we are, and what proves it.
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
    /// An application credential, which knows its project.
    ApplicationCredential {
        /// Its id, or its name and whose it is.
        identity: ApplicationCredential,
        /// Its secret.
        secret: Secret<String>,
    },
    /// A token that somebody else got, in a project. Without one Keystone takes the user's default project, and not that of
    /// the token.
    Token {
        /// The token.
        token: Secret<String>,
        /// The project to work in.
        scope: Account,
    },
}

impl Credentials {
    /// What it is called in a sentence.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Password { .. } => "the user name and password",
            Self::ApplicationCredential { .. } => "the application credential",
            Self::Token { .. } => "the token",
        }
    }
}

/// Which application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplicationCredential {
    /// By id.
    Id(String),
    /// By name, which is one of its user's.
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
    /// Reads what the sources say, in the order that OpenStack's own client has: the cloud asked
    /// for, else the one that `OS_CLOUD` names, else the `OS_*` variables if there is an
    /// `OS_AUTH_URL`, else the file's cloud `openstack`, else its only one.
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

/// Names in quotes, with commas between.
pub(crate) fn names<T: Display>(names: &[T]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
