//! From a configuration to a cloud that answers.

use crate::api::Api;
use crate::auth::Keystone;
use crate::catalog::Endpoints;
use crate::classify::classify;
use crate::config::Config;
use crate::create::LaunchOptions;
use crate::error::Error;
use crate::mark::Mark;
use crate::provider::OpenStack;
use crate::resolve::Resolver;
use crate::version::{LEAST, Microversion, Versions};
use crate::wire::VersionBody;
use cloud_core::http::{
    self, Authorize as _, Client, HeaderName, Method, Request, RequestIds, Unsigned, Url,
};
use cloud_core::pace::Pacer;
use cloud_core::{ErrorKind, Operation};
use std::error::Error as _;
use std::time::Duration;
use tokio::sync::Mutex;

/// How a connection behaves; the defaults suit most clouds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Timeouts, proxies and retry. Whom to trust is the configuration's business.
    pub http: http::Config,
    /// What launches need beyond what an instance is to be.
    pub launch: LaunchOptions,
    /// The network whose address counts, by name or id; that of the first interface in `launch` if none
    /// is given.
    pub address_network: Option<String>,
    /// The Nova tag by which servers from before us are found, too.
    pub mark: Option<Mark>,
    /// Servers on one page of a listing; the cloud may give fewer.
    pub page: u32,
    /// Tokens are renewed when they have less than this left.
    pub renew_before: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            http: http::Config::default(),
            launch: LaunchOptions::default(),
            address_network: None,
            mark: None,
            page: 1000,
            renew_before: Duration::from_mins(2),
        }
    }
}

impl OpenStack {
    /// Gets a token and finds the services; two requests.
    pub async fn connect(config: Config, settings: Settings, pacer: Pacer) -> Result<Self, Error> {
        let mut http = settings.http.clone();
        http.roots = config.roots.clone();
        http.request_ids = RequestIds { send: None, read: REQUEST_IDS.to_vec() };
        let bad = |error| bad_certificates(&config, &error);
        let unsigned = Client::new(http.clone(), Unsigned, classify, pacer.clone()).map_err(bad)?;
        let keystone = Keystone::new(unsigned, &config, settings.renew_before);
        let held = keystone.credential().await.map_err(|error| refused(&config, error))?;
        let endpoints = Endpoints::new(&config, &held.value.catalog)?;
        let client = Client::new(http, keystone, classify, pacer).map_err(bad)?;
        let newest = newest(&config, &client, &endpoints.compute).await?;
        let Some(versions) = Versions::on(newest) else {
            let (newest, least) = (newest.to_string(), LEAST.to_string());
            return Err(Error::TooOld { origin: config.origin, newest, least });
        };
        let old = versions.warning().map(|lost| format!("{}: {lost}", config.origin));
        let project = held.value.project.clone();
        Ok(Self {
            api: Api { client, endpoints, project, versions },
            resolver: Resolver::default(),
            warnings: config.warnings.into_iter().chain(old).collect(),
            launch: settings.launch,
            address_network: settings.address_network,
            mark: settings.mark,
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

/// The newest microversion that Nova offers.
async fn newest(
    config: &Config,
    client: &Client<Keystone>,
    url: &Url,
) -> Result<Microversion, Error> {
    let url = without_project(url);
    let request = Request::new(Operation::Authenticate, Method::GET, url.clone());
    let answered =
        client.send(&request).await.and_then(|answer| answer.json::<VersionBody>(&request));
    let remedy = "check that address, or set compute_endpoint_override to the right one";
    let body = answered.map_err(|error| unanswered(config, &url, ("Nova", remedy), error))?;
    // A Nova from before there were microversions says nothing.
    Ok(body.version.version.parse().unwrap_or(Microversion::NONE))
}

/// The address of the version itself: older catalogs have the project's id behind it, and Nova
/// answers with JSON only with a slash at the end, or redirects.
fn without_project(url: &Url) -> Url {
    let mut url = url.clone();
    let segments: Vec<String> = url
        .path_segments()
        .into_iter()
        .flatten()
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    let version = segments.iter().rposition(|it| it.starts_with("v2"));
    let kept = segments.iter().take(version.map_or(segments.len(), |at| at + 1));
    let path = kept.map(String::as_str).chain([""]).collect::<Vec<_>>().join("/");
    url.set_path(&path);
    url
}

fn bad_certificates(config: &Config, error: &cloud_core::Error) -> Error {
    Error::BadSetting {
        origin: config.origin.clone(),
        key: "cacert",
        problem: format!("cannot be used ({})", error.message().unwrap_or("no reason given")),
        remedy: "set it to a file of certificates in PEM form".to_owned(),
    }
}

/// Why Keystone gave no token.
fn refused(config: &Config, source: cloud_core::Error) -> Error {
    let (origin, auth_url) = (config.origin.clone(), config.auth_url.to_string());
    let what = config.credentials.name();
    match source.kind() {
        ErrorKind::Unauthenticated | ErrorKind::Forbidden => {
            Error::Refused { origin, auth_url, what, source }
        }
        // In Keystone's own words; others say 400 too, and otherwise.
        ErrorKind::Invalid if source.code() == Some("Bad Request") => {
            Error::Unusable { origin, auth_url, what, source }
        }
        ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Invalid
        | ErrorKind::Quota
        | ErrorKind::Capacity
        | ErrorKind::Throttled
        | ErrorKind::Unavailable
        | ErrorKind::Ambiguous
        | ErrorKind::Protocol
        | ErrorKind::Unsupported => {
            unanswered(config, &config.auth_url, ("Keystone", "check that address"), source)
        }
    }
}

/// Why there is no sense in what came from where this service should be; with what to do.
fn unanswered(
    config: &Config,
    url: &Url,
    (service, remedy): (&'static str, &'static str),
    source: cloud_core::Error,
) -> Error {
    let (origin, url) = (config.origin.clone(), url.to_string());
    // What HTTP answered has no cause, and what went wrong on the way to a token has one of ours.
    let tls = source.source().is_some_and(|cause| !cause.is::<cloud_core::Error>());
    match source.kind() {
        ErrorKind::Unavailable | ErrorKind::Throttled | ErrorKind::Ambiguous => {
            Error::Unreachable { origin, url, source }
        }
        ErrorKind::Protocol if tls => Error::Untrusted { origin, url, source },
        ErrorKind::Unauthenticated
        | ErrorKind::Forbidden
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::Invalid
        | ErrorKind::Quota
        | ErrorKind::Capacity
        | ErrorKind::Protocol
        | ErrorKind::Unsupported => Error::NotOpenStack { origin, url, service, remedy, source },
    }
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
}
