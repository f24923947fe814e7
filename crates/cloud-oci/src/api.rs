//! Requests to OCI's services.

use crate::Clock;
use crate::auth::{JSON, Signer};
use crate::classify::with_our_clock;
use cloud_core::http::{Client, Effect, HeaderName, HeaderValue, Method, Request, Response, Url};
use cloud_core::{ApiOperation, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use std::fmt;

/// A service, which has its own host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Compute, network and work requests.
    Core,
    Identity,
    Limits,
}

impl Service {
    /// The version prefix of its paths.
    fn version(self) -> &'static str {
        match self {
            Self::Core | Self::Identity => "20160918",
            Self::Limits => "20190729",
        }
    }
}

/// The hosts of the services.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    pub(crate) core: Url,
    pub(crate) identity: Url,
    pub(crate) limits: Url,
}

pub(crate) struct Api {
    pub(crate) client: Client<Signer>,
    pub(crate) signer: Signer,
    pub(crate) hosts: Hosts,
    pub(crate) clock: Clock,
    /// The page size.
    pub(crate) page_size: u16,
}

/// A path whose segments are escaped.
pub(crate) type Path<'a> = &'a [&'a str];

/// The pairs of a query, in order.
pub(crate) type Query<'a> = &'a [(&'a str, &'a str)];

impl Api {
    /// Creates a request without a body.
    pub(crate) fn request(
        &self,
        operation: ApiOperation,
        method: Method,
        (service, path): (Service, Path<'_>),
        query: Query<'_>,
    ) -> Result<Request> {
        let mut url = match service {
            Service::Core => self.hosts.core.clone(),
            Service::Identity => self.hosts.identity.clone(),
            Service::Limits => self.hosts.limits.clone(),
        };
        let cannot = |()| Error::new(ErrorKind::Invalid, operation).because("no host in the URL");
        url.path_segments_mut().map_err(cannot)?.clear().push(service.version()).extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let header = |request: Request, name, value| {
            request.with_header(HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let request = Request::new(operation, method, url);
        let request = header(request, "accept", JSON);
        let request = header(request, "content-type", JSON);
        let request = header(request, "opc-client-info", CLIENT);
        Ok(header(request, "opc-client-retries", "true"))
    }

    pub(crate) async fn send(&self, request: &Request) -> Result<Response> {
        let response = self.client.send(request).await;
        response.map_err(|error| {
            let over = error.kind() == ErrorKind::Unauthenticated && self.signer.is_over();
            let error = if over { error.because(SESSION_OVER) } else { error };
            with_our_clock(error, &self.clock)
        })
    }

    /// Gets one resource.
    pub(crate) async fn read<T: DeserializeOwned>(&self, request: &Request) -> Result<T> {
        self.send(request).await?.json(request)
    }
}

const SESSION_OVER: &str = "the session has expired: run `oci session authenticate`";

const CLIENT: &str = concat!("slurm-elastic/", env!("CARGO_PKG_VERSION"));

/// Adds a retry token, which makes the request idempotent.
pub(crate) fn with_token(request: Request, token: &str) -> Result<Request> {
    let value = HeaderValue::from_str(token)
        .map_err(|_| request.error(ErrorKind::Invalid).because("bad retry token"))?;
    let name = HeaderName::from_static("opc-retry-token");
    Ok(request.with_header(name, value).with_effect(Effect::Idempotent))
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}
