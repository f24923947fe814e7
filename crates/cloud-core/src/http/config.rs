//! How a client behaves.

use super::{HeaderName, Proxies, Retry};
use crate::{ApiOperation, Error, ErrorKind, Result};
use reqwest::{Certificate, ClientBuilder, redirect, retry};
use std::time::Duration;

/// How a [`Client`](super::Client) behaves; the defaults suit both clouds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Longest time to get a connection.
    pub connect_timeout: Duration,
    /// Longest time of one attempt, from the connection to the end of the body.
    pub timeout: Duration,
    /// Longest time that one attempt waits for its turn at the pacer; then it is
    /// [`Throttled`](ErrorKind::Throttled).
    pub longest_queue: Duration,
    /// How often and how long to repeat.
    pub retry: Retry,
    /// Longest body to read, in bytes.
    pub largest_body: usize,
    /// The proxies to go through.
    pub proxies: Proxies,
    /// Whom to trust.
    pub roots: Roots,
    /// The `User-Agent`.
    pub user_agent: String,
    /// The headers that carry request ids.
    pub request_ids: RequestIds,
    /// Where jitter and request ids come from; a random one if none is given.
    pub seed: Option<u64>,
}

impl Default for Config {
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
    /// None: whoever answers is believed, and can read and change all that is said. Only for those
    /// who ask for it in so many words, and then with a warning.
    Unchecked,
}

/// The headers that carry request ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestIds {
    /// Where to send an id of ours, a new one for each attempt.
    pub send: Option<HeaderName>,
    /// Where to find the cloud's, best first.
    pub read: Vec<HeaderName>,
}

impl Config {
    /// A client for `https` and for all that goes through a proxy. It reads the certificates of the
    /// system, which takes as long as a hundred files take, so it is made when it is needed.
    pub(super) fn secure(&self) -> Result<reqwest::Client> {
        finish(self.trusting()?)
    }

    /// A client for `http` that trusts no certificate, because none is ever shown to it; none if
    /// there are proxies, which may want to be spoken to in `https`. What is wrong with the
    /// configuration is said here, before anything is asked.
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
            // Shorter than what load balancers usually keep, so that we rarely send into a
            // connection that is just being closed and have to call the outcome unknown.
            .pool_idle_timeout(Duration::from_secs(10))
            // A signature is good for one URL, and a token must not go to another host.
            .redirect(redirect::Policy::none())
            .referer(false)
            // Retry lives in one place, and that is not there.
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
