//! Configuration of a client.

use super::{HeaderName, Proxies, Retry};
use crate::{ApiOperation, Error, ErrorKind, Result};
use reqwest::{Certificate, ClientBuilder, redirect, retry};
use std::time::Duration;

/// Configuration of a [`Client`](super::Client). The defaults suit all clouds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientConfig {
    /// Timeout for a connection.
    pub connect_timeout: Duration,
    /// Timeout of one attempt, from the connection to the end of the body.
    pub timeout: Duration,
    /// Timeout of one attempt at the pacer; then the error is [`Throttled`](ErrorKind::Throttled).
    pub longest_queue: Duration,
    /// Bounds of retries.
    pub retry: Retry,
    /// Maximum length of a response body, in bytes.
    pub largest_body: usize,
    /// The proxies.
    pub proxies: Proxies,
    /// The trusted certificate authorities.
    pub roots: Roots,
    /// The `User-Agent`.
    pub user_agent: String,
    /// The headers with request ids.
    pub request_ids: RequestIds,
    /// The seed of jitter and request ids; random if none is given.
    pub seed: Option<u64>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_mins(1),
            longest_queue: Duration::from_mins(10),
            retry: Retry::default(),
            largest_body: 64 << 20,
            proxies: Proxies::none(),
            roots: Roots::System,
            user_agent: concat!("slurm-elastic/", env!("CARGO_PKG_VERSION")).to_owned(),
            request_ids: RequestIds::default(),
            seed: None,
        }
    }
}

/// Which certificate authorities to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// Those of the operating system.
    #[default]
    System,
    /// Those of the operating system and these, in PEM.
    SystemAnd(Vec<u8>),
    /// Only these, in PEM.
    Only(Vec<u8>),
    /// No verification, which is open to man-in-the-middle attacks. Only if explicitly configured, and with a warning.
    Unchecked,
}

/// The headers with request ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestIds {
    /// The header for the client's id, a new one for each attempt.
    pub send: Option<HeaderName>,
    /// The headers with the cloud's id, the best first.
    pub read: Vec<HeaderName>,
}

impl ClientConfig {
    /// Creates a client for `https` and for proxies. It reads the system's certificates, about a hundred files, so it is
    /// created on demand.
    pub(super) fn secure(&self) -> Result<reqwest::Client> {
        finish(self.trusting()?)
    }

    /// Creates a client for `http` without certificates; `None` with proxies, which may use `https`. Errors in the
    /// configuration are found here, before the first request.
    pub(super) fn plain(&self) -> Result<Option<reqwest::Client>> {
        let _ = self.trusting()?;
        if self.proxies != Proxies::none() {
            return Ok(None);
        }
        finish(self.builder()?.tls_certs_only([])).map(Some)
    }

    fn trusting(&self) -> Result<ClientBuilder> {
        let builder = self.builder()?;
        Ok(match &self.roots {
            Roots::System => builder,
            Roots::SystemAnd(pem) => builder.tls_certs_merge(certificates(pem)?),
            Roots::Only(pem) => builder.tls_certs_only(certificates(pem)?),
            Roots::Unchecked => builder.tls_danger_accept_invalid_certs(true),
        })
    }

    fn builder(&self) -> Result<ClientBuilder> {
        let builder = reqwest::Client::builder()
            .user_agent(&self.user_agent)
            .connect_timeout(self.connect_timeout)
            // Shorter than the usual idle timeout of load balancers, because a request on a closing connection is
            // ambiguous.
            .pool_idle_timeout(Duration::from_secs(10))
            // A signature is good for one URL, and a token must not go to another host.
            .redirect(redirect::Policy::none())
            .referer(false)
            // Only this crate retries.
            .retry(retry::never())
            // Without this, reqwest reads the environment.
            .no_proxy();
        Ok(self.proxies.build()?.into_iter().fold(builder, ClientBuilder::proxy))
    }
}

fn finish(builder: ClientBuilder) -> Result<reqwest::Client> {
    builder.build().map_err(|source| invalid("no TLS client").caused_by(source))
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate>> {
    Certificate::from_pem_bundle(pem)
        .map_err(|source| invalid("bad certificate bundle").caused_by(source))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, ApiOperation::Configure).because(message)
}
