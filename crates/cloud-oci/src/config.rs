//! Credentials and region: `~/.oci/config`, its overrides in the environment, instance principals.

mod error;
mod ini;
mod lookup;

pub use error::Origin;

use crate::Region;
use crate::instance_principal::METADATA;
use crate::key::PrivateKey;
use cloud_core::http::Url;
use cloud_core::{ConfigError, File, Secret, Sources};
use error::{malformed, no_certificate, no_named_file, unreadable};
use lookup::{Found, Lookup};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

/// A program's own settings, which override environment and file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// The profile.
    pub profile: Option<String>,
    /// The kind of authentication.
    pub mode: Option<Mode>,
    /// The region, by name or short name.
    pub region: Option<String>,
    /// The domain of the realm, for regions that are not built in.
    pub realm: Option<String>,
    /// Another host for all services, such as a loopback cloud.
    pub endpoint: Option<String>,
    /// The file of these settings, if any, for errors.
    pub written_in: Option<PathBuf>,
}

impl Overrides {
    fn place(&self) -> Origin {
        self.written_in.clone().map_or(Origin::Program, Origin::File)
    }
}

/// A kind of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A user's API key.
    ApiKey,
    /// A session of `oci session authenticate`.
    SecurityToken,
    /// The instance principal of this machine.
    InstancePrincipal,
}

/// Credentials and region of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// The credentials.
    pub credentials: Credentials,
    /// The region; an instance principal can get it from the metadata service. With `endpoint`, an unknown region gets the
    /// domain `invalid`, which does not exist.
    pub region: Option<Region>,
    /// The tenancy; that of an instance principal is in its certificate.
    pub tenancy: Option<String>,
    /// Another host for all services.
    pub endpoint: Option<Url>,
    /// The certificate authorities to trust, in PEM, in place of the system's.
    pub roots: Option<Vec<u8>>,
}

/// How requests are authenticated.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// With a fixed key.
    Key {
        /// The key id; for a session, it contains the token.
        key_id: Secret<String>,
        /// The key.
        key: Arc<PrivateKey>,
    },
    /// As an instance principal.
    InstancePrincipal {
        /// The metadata service, with its version in the path.
        metadata: Url,
    },
}

impl Config {
    /// Reads the configuration, without a request. Every error names the place and the remedy.
    ///
    /// ```no_run
    /// use cloud_core::Sources;
    /// use cloud_oci::{Config, Overrides};
    /// use std::time::SystemTime;
    ///
    /// let sources = Sources::of_system(Some("/home/slurm".into()), std::env::vars().collect());
    /// let config = Config::load(&sources, &Overrides::default(), SystemTime::now())?;
    /// # Ok::<(), cloud_core::ConfigError>(())
    /// ```
    ///
    /// The file is `overrides.file`, `OCI_CLI_CONFIG_FILE`, `~/.oci/config`, `OCI_CONFIG_FILE` (as in the SDK, only if the
    /// former does not exist) or `~/.oraclebmc/config`. The variables `OCI_CLI_USER`, `_TENANCY`, `_FINGERPRINT`,
    /// `_KEY_FILE` and `_REGION` override the file, or are enough without one, with `_PASSPHRASE` for an encrypted key.
    /// `OCI_CLI_CERT_BUNDLE` names the trusted certificate authorities.
    pub fn load(
        sources: &Sources<'_>,
        overrides: &Overrides,
        now: SystemTime,
    ) -> Result<Self, ConfigError> {
        let endpoint = endpoint(sources, overrides)?;
        let mode = mode(sources, overrides)?;
        if mode == Some(Mode::InstancePrincipal) {
            return instance_principal(sources, overrides, endpoint);
        }
        let lookup = Lookup::open(sources, overrides, now)?;
        let overridden =
            overrides.region.clone().map(|value| Found { value, place: overrides.place() });
        let region = match overridden {
            Some(region) => region,
            None => lookup.get("region").map_or_else(|| lookup.region_variable(), Ok)?,
        };
        let region = known((sources, overrides), &region, endpoint.is_some())?;
        let tenancy = lookup.ocid("tenancy")?;
        let credentials = match mode {
            Some(Mode::SecurityToken) => lookup.session()?,
            None if lookup.is_session() => lookup.session()?,
            None | Some(Mode::ApiKey | Mode::InstancePrincipal) => lookup.api_key(&tenancy)?,
        };
        let (region, tenancy) = (Some(region), Some(tenancy));
        Ok(Self { credentials, region, tenancy, endpoint, roots: roots(sources)? })
    }
}

fn mode(sources: &Sources<'_>, overrides: &Overrides) -> Result<Option<Mode>, ConfigError> {
    let variable = "OCI_CLI_AUTH";
    match (overrides.mode, sources.variable(variable)) {
        (Some(mode), _) => Ok(Some(mode)),
        (None, None) => Ok(None),
        (None, Some("api_key")) => Ok(Some(Mode::ApiKey)),
        (None, Some("security_token")) => Ok(Some(Mode::SecurityToken)),
        (None, Some("instance_principal")) => Ok(Some(Mode::InstancePrincipal)),
        (None, Some(other)) => {
            let what = format!("{other}: set api_key, security_token or instance_principal");
            Err(malformed(&Origin::Variable(variable), "auth", &what))
        }
    }
}

/// The certificate authorities of `OCI_CLI_CERT_BUNDLE`.
fn roots(sources: &Sources<'_>) -> Result<Option<Vec<u8>>, ConfigError> {
    let variable = "OCI_CLI_CERT_BUNDLE";
    let Some(path) = sources.variable(variable).map(|path| sources.expand(path)) else {
        return Ok(None);
    };
    let place = Origin::Variable(variable);
    match sources.read(&path).and_then(File::into_text) {
        Ok(text) if has_certificate(&text) => Ok(Some(text.into_bytes())),
        Ok(_text) => Err(no_certificate(&place, &path)),
        Err(source) => match source.kind() {
            ErrorKind::NotFound => {
                let key = "the bundle of certificates";
                Err(no_named_file(&place, key, &path, source))
            }
            // Not UTF-8: certificates in another format.
            ErrorKind::InvalidData => Err(no_certificate(&place, &path)),
            _ => Err(unreadable(&path, source)),
        },
    }
}

fn has_certificate(text: &str) -> bool {
    let blocks = pem::parse_many(text).unwrap_or_default();
    blocks.iter().any(|block| block.tag() == "CERTIFICATE")
}

fn endpoint(sources: &Sources<'_>, overrides: &Overrides) -> Result<Option<Url>, ConfigError> {
    let variable = "OCI_CLI_ENDPOINT";
    match (&overrides.endpoint, sources.variable(variable)) {
        (Some(url), _) => host_only(url, &overrides.place()).map(Some),
        (None, Some(url)) => host_only(url, &Origin::Variable(variable)).map(Some),
        (None, None) => Ok(None),
    }
}

/// Parses an endpoint. Each service has its own path there.
fn host_only(text: &str, place: &Origin) -> Result<Url, ConfigError> {
    let key = "endpoint";
    let url = parse_url(text, place, key)?;
    // Without the user information before the host, which may be a password.
    let origin = url.origin().ascii_serialization();
    if url.as_str().trim_end_matches('/') == origin {
        return Ok(url);
    }
    let what = format!("more than a host: write {origin}");
    Err(malformed(place, key, &what))
}

fn parse_url(text: &str, place: &Origin, key: &'static str) -> Result<Url, ConfigError> {
    let url = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    url.ok_or_else(|| malformed(place, key, &format!("not a URL: {text}: write https://HOST")))
}

fn instance_principal(
    sources: &Sources<'_>,
    overrides: &Overrides,
    endpoint: Option<Url>,
) -> Result<Config, ConfigError> {
    let variable = "OCI_METADATA_BASE_URL";
    let base = sources.variable(variable).unwrap_or(METADATA);
    let metadata = parse_url(base, &Origin::Variable(variable), "the metadata service")?;
    let found = |value: &str, place| Found { value: value.to_owned(), place };
    let region = match (&overrides.region, sources.variable("OCI_CLI_REGION")) {
        (Some(name), _) => Some(found(name, overrides.place())),
        (None, Some(name)) => Some(found(name, Origin::Variable("OCI_CLI_REGION"))),
        (None, None) => None,
    };
    let region = region
        .map(|region| known((sources, overrides), &region, endpoint.is_some()))
        .transpose()?;
    let credentials = Credentials::InstancePrincipal { metadata };
    Ok(Config { credentials, region, tenancy: None, endpoint, roots: roots(sources)? })
}

/// The region with this name. An unknown one is accepted if no host name is made from it.
fn known(
    (sources, overrides): (&Sources<'_>, &Overrides),
    found: &Found,
    has_endpoint: bool,
) -> Result<Region, ConfigError> {
    let region = found.value.clone();
    if let Some(region) = Region::find(&region) {
        return Ok(region);
    }
    match overrides.realm.as_deref().or_else(|| sources.variable("OCI_DEFAULT_REALM")) {
        Some(domain) => Ok(Region::in_realm(region, domain)),
        None if has_endpoint => Ok(Region::in_realm(region, "invalid")),
        None => {
            let nearest = Region::nearest(&region);
            Err(ConfigError::new(format!(
                "{}: unknown region {region}: did you mean {nearest}? for one that this program is \
                 too old to know name the domain of its realm, as realm or as OCI_DEFAULT_REALM",
                found.place
            )))
        }
    }
}
