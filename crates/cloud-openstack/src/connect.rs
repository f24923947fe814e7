//! Connects to a cloud.

use crate::api::Api;
use crate::auth::Keystone;
use crate::catalog::Endpoints;
use crate::classify::classify;
use crate::config::{Config, bad_setting};
use crate::create::LaunchOptions;
use crate::legacy_tag::LegacyTag;
use crate::provider::OpenStack;
use crate::resolve::Resolver;
use crate::version::{LEAST, Microversion, Versions};
use crate::wire::{AboutNova, VersionFacts};
use cloud_core::http::{
    self, Authorize as _, Client, HeaderName, Method, Request, RequestIds, Unsigned, Url,
};
use cloud_core::pace::Pacer;
use cloud_core::{ApiOperation, ConfigError, ErrorKind};
use std::error::Error as _;
use std::time::Duration;
use tokio::sync::Mutex;

/// The id and path of Nova's version with microversions.
const WITH_MICROVERSIONS: &str = "v2.1";

/// Settings of a connection. The defaults suit most clouds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectSettings {
    /// Timeouts, proxies and retries. The trusted certificates are in the configuration.
    pub http: http::ClientConfig,
    /// Options of all launches.
    pub launch: LaunchOptions,
    /// The network whose address counts, by name or id; by default, that of the first interface in `launch`.
    pub address_network: Option<String>,
    /// A Nova tag that identifies servers of an earlier tool.
    pub legacy_tag: Option<LegacyTag>,
    /// Whether stopped servers are shelved, which frees their place on the host.
    pub shelve: bool,
    /// Page size of listings of servers. The cloud may return fewer.
    pub page: u32,
    /// Remaining lifetime at which tokens are renewed.
    pub renew_before: Duration,
}

impl Default for ConnectSettings {
    fn default() -> Self {
        Self {
            http: http::ClientConfig::default(),
            launch: LaunchOptions::default(),
            address_network: None,
            legacy_tag: None,
            shelve: false,
            page: 1000,
            renew_before: Duration::from_mins(2),
        }
    }
}

impl OpenStack {
    /// Connects with two requests, for a token and for Nova's version, and a third if the catalog has no or an old version
    /// of Nova.
    pub async fn connect(
        config: Config,
        settings: ConnectSettings,
        pacer: Pacer,
    ) -> Result<Self, ConfigError> {
        let mut http = settings.http.clone();
        http.roots = config.roots.clone();
        http.request_ids = RequestIds { send: None, read: REQUEST_IDS.to_vec() };
        let bad = |error| bad_certificates(&config, &error);
        let unsigned = Client::new(http.clone(), Unsigned, classify, pacer.clone()).map_err(bad)?;
        let keystone = Keystone::new(unsigned, &config, settings.renew_before);
        let held = keystone.credential().await.map_err(|error| refused(&config, error))?;
        let mut endpoints = Endpoints::new(&config, &held.value.catalog)?;
        let client = Client::new(http, keystone, classify, pacer).map_err(bad)?;
        let (compute, newest) = discover(&config, &client, endpoints.compute).await?;
        endpoints.compute = compute;
        let Some(versions) = Versions::on(newest) else {
            let origin = config.origin;
            return Err(ConfigError::new(format!(
                "{origin}: its Nova offers microversion {newest} at most, and {LEAST} is the least that sets tags in the \
                 launch call, without which nobody can tell whose a server is: use a newer cloud"
            )));
        };
        let old = versions.warning().map(|lost| format!("{}: {lost}", config.origin));
        let project = held.value.project.clone();
        Ok(Self {
            api: Api { client, endpoints, project, versions },
            resolver: Resolver::default(),
            warnings: config.warnings.into_iter().chain(old).collect(),
            launch: settings.launch,
            address_network: settings.address_network,
            legacy_tag: settings.legacy_tag,
            shelve: settings.shelve,
            listed: std::sync::Mutex::default(),
            primary: Mutex::default(),
            page: settings.page.max(1),
        })
    }
}

const REQUEST_IDS: [HeaderName; 2] = [
    HeaderName::from_static("x-openstack-request-id"),
    HeaderName::from_static("x-compute-request-id"),
];

/// Finds Nova's address with microversions, and the newest of them. The catalog may have no version, or an older one.
async fn discover(
    config: &Config,
    client: &Client<Keystone>,
    listed: Url,
) -> Result<(Url, Microversion), ConfigError> {
    let unanswered = |url: &Url, error| unanswered(config, &without_project(url), &NOVA, error);
    let found = about(client, &listed).await.map_err(|error| unanswered(&listed, error))?;
    let (better, promised, newest) = match found {
        AboutNova::One(body) => (beside(&listed), false, newest(&body.version)),
        AboutNova::All { versions } => (below(&listed, &versions), true, Microversion::NONE),
    };
    let Some(better) = better.filter(|_| newest < LEAST) else {
        return Ok((listed, newest));
    };
    match about(client, &better).await {
        Ok(AboutNova::One(body)) => Ok((better, self::newest(&body.version))),
        Ok(AboutNova::All { .. }) => Ok((listed, newest)),
        // It may be missing in an old Nova.
        Err(error) if !promised && Silence::of(&error) == Silence::Foreign => Ok((listed, newest)),
        Err(error) => Err(unanswered(&better, error)),
    }
}

/// The address with microversions, derived from that of the older version.
fn beside(old: &Url) -> Option<Url> {
    let mut segments = segments(old);
    let version = segments.iter_mut().rfind(|it| *it == "v2")?;
    WITH_MICROVERSIONS.clone_into(version);
    let mut url = old.clone();
    url.set_path(&segments.join("/"));
    Some(url)
}

/// The address with microversions from a list of versions. Only its path is used, because behind a proxy the host may be
/// unreachable.
fn below(root: &Url, versions: &[VersionFacts]) -> Option<Url> {
    let version = versions.iter().find(|version| version.id == WITH_MICROVERSIONS)?;
    let link = version.links.iter().find(|link| link.rel == "self")?;
    let path = without_project(root).join(&link.href).ok()?.path().to_owned();
    let mut url = root.clone();
    url.set_path(path.trim_end_matches('/'));
    Some(url)
}

async fn about(client: &Client<Keystone>, url: &Url) -> cloud_core::Result<AboutNova> {
    let request = Request::new(ApiOperation::Authenticate, Method::GET, without_project(url));
    client.send(&request).await?.json(&request)
}

/// A Nova without microversions does not report any.
fn newest(version: &VersionFacts) -> Microversion {
    version.version.parse().unwrap_or(Microversion::NONE)
}

/// The address of the version itself, with a final slash, which Nova needs. Older catalogs append the project's id.
fn without_project(url: &Url) -> Url {
    let mut url = url.clone();
    let segments = segments(&url);
    let version = segments.iter().rposition(|it| it.starts_with("v2"));
    let kept = segments.iter().take(version.map_or(segments.len(), |at| at + 1));
    let path = kept.map(String::as_str).chain([""]).collect::<Vec<_>>().join("/");
    url.set_path(&path);
    url
}

fn segments(url: &Url) -> Vec<String> {
    let segments = url.path_segments().into_iter().flatten();
    segments.filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

fn bad_certificates(config: &Config, error: &cloud_core::Error) -> ConfigError {
    let problem = format!("cannot be used ({})", error.message().unwrap_or("no reason given"));
    let remedy = "set it to a file of certificates in PEM form";
    bad_setting(&config.origin, "cacert", &problem, remedy)
}

/// Explains an error of Keystone.
fn refused(config: &Config, source: cloud_core::Error) -> ConfigError {
    let (origin, auth_url, what) = (&config.origin, &config.auth_url, config.credentials.name());
    // By Keystone's own message, because others answer 400, too.
    let unusable = source.kind() == ErrorKind::Invalid && source.code() == Some("Bad Request");
    let text = if source.kind().is_about_the_caller() {
        format!(
            "{origin}: {auth_url} refuses {what}: check that it is right, has not expired and has not been deleted"
        )
    } else if unusable {
        format!(
            "{origin}: {auth_url} cannot make a token of {what}: check user, project and domain, and their ids"
        )
    } else {
        return unanswered(config, auth_url, &KEYSTONE, source);
    };
    ConfigError::new(text).caused_by(source)
}

/// A queried service, and the remedy if another one answers.
struct Asked {
    service: &'static str,
    remedy: &'static str,
}

const KEYSTONE: Asked = Asked { service: "Keystone", remedy: "check that address" };
const NOVA: Asked = Asked {
    service: "Nova",
    remedy: "check that address, or set compute_endpoint_override to the right one",
};

/// Explains an error of a service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Silence {
    Unreachable,
    Untrusted,
    /// Another service answers there.
    Foreign,
}

impl Silence {
    fn of(error: &cloud_core::Error) -> Self {
        // An HTTP error has no cause, and an error of fetching a token has one of this crate.
        let tls = error.source().is_some_and(|cause| !cause.is::<cloud_core::Error>());
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Throttled | ErrorKind::Ambiguous => {
                Self::Unreachable
            }
            ErrorKind::Protocol if tls => Self::Untrusted,
            _ => Self::Foreign,
        }
    }
}

fn unanswered(config: &Config, url: &Url, asked: &Asked, source: cloud_core::Error) -> ConfigError {
    let origin = &config.origin;
    let Asked { service, remedy } = asked;
    let text = match Silence::of(&source) {
        Silence::Unreachable => {
            format!("{origin}: no answer from {url}: check that address, the network and the proxy")
        }
        Silence::Untrusted => format!(
            "{origin}: no trusted connection to {url}: check that it speaks https, the host name and the date of its \
             certificate, and set cacert to the file of the authority that signed it"
        ),
        Silence::Foreign => format!("{origin}: {url} does not answer as {service} does: {remedy}"),
    };
    ConfigError::new(text).caused_by(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_asked_where_it_is() {
        let table = [
            ("http://c:8774/v2.1", "http://c:8774/v2.1/"),
            ("http://c/compute/v2.1/ab4c5646", "http://c/compute/v2.1/"),
            ("http://c/compute/", "http://c/compute/"),
        ];
        for (url, expected) in table {
            assert_eq!(without_project(&Url::parse(url).unwrap()).as_str(), expected);
        }
    }

    #[test]
    fn the_project_stays_behind_the_version() {
        let table = [
            ("http://c:8774/v2", Some("http://c:8774/v2.1")),
            ("http://c/compute/v2/ab4c5646", Some("http://c/compute/v2.1/ab4c5646")),
            ("http://c/compute/v2.1", None),
            ("http://c/compute", None),
        ];
        for (url, expected) in table {
            let found = beside(&Url::parse(url).unwrap());
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{url}");
        }
    }
}
