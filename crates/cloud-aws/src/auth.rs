//! Signs requests, with a fixed key or with temporary keys.

use crate::config::{Config, Credentials, Keys};
use crate::credentials::Issuer;
use crate::sign::{Scope, Signed, sha256};
use cloud_core::http::{self, Authorize, HeaderName, Outgoing, Url};
use cloud_core::pace::Pacer;
use cloud_core::{Generation, Held, Result, Secret, TokenCache};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Remaining lifetime at which temporary keys are renewed.
const LEAST_LIFE: Duration = Duration::from_mins(5);

/// The source of the keys, which all services share.
pub(crate) enum Source {
    Fixed(Arc<Keys>),
    Renewed(Box<Issuer>, TokenCache<Keys>),
}

impl Source {
    pub(crate) fn new(
        config: &Config,
        http: &http::ClientConfig,
        pacer: &Pacer,
        now: fn() -> SystemTime,
    ) -> Result<Self> {
        Ok(match &config.credentials {
            Credentials::Keys(keys) => Self::Fixed(Arc::new(keys.clone())),
            Credentials::Process(_)
            | Credentials::AssumeRole(..)
            | Credentials::WebIdentity(..)
            | Credentials::InstanceRole => {
                let issuer = Issuer::new(config.clone(), http.clone(), pacer.clone(), now)?;
                Self::Renewed(Box::new(issuer), TokenCache::new(LEAST_LIFE))
            }
        })
    }

    async fn keys(&self) -> Result<Held<Keys>> {
        match self {
            Self::Fixed(keys) => Ok(Held::fixed(Arc::clone(keys))),
            Self::Renewed(issuer, cache) => cache.get(|| issuer.issue()).await,
        }
    }
}

/// Signs every request to one service.
pub(crate) struct Signer {
    pub(crate) source: Arc<Source>,
    pub(crate) service: &'static str,
    pub(crate) region: String,
    pub(crate) now: fn() -> SystemTime,
}

impl Authorize for Signer {
    type Credential = Keys;

    async fn credential(&self) -> Result<Held<Keys>> {
        self.source.keys().await
    }

    fn sign(&self, keys: &Keys, request: &mut Outgoing<'_>) -> Result<()> {
        let scope = Scope::new((self.now)(), &self.region, self.service);
        request.set(HeaderName::from_static("x-amz-date"), scope.time())?;
        if let Some(token) = &keys.token {
            request.set_secret(HeaderName::from_static("x-amz-security-token"), token.clone())?;
        }
        let url = request.url().clone();
        let host = host(&url);
        let own = request.headers().iter().filter(|(name, _)| *name != "content-length");
        let own = own.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers: Vec<(&str, &str)> = own.chain([("host", host.as_str())]).collect();
        let signed = Signed {
            method: request.method().as_str(),
            path: url.path(),
            query: url.query().unwrap_or_default(),
            headers: &headers,
            body_sha256: &sha256(request.body()),
        };
        let signature = signed.signature(&scope, keys.secret.expose());
        let value = signed.authorization(&scope, &keys.id, &signature);
        request.hide(keys.secret.clone());
        request.hide(Secret::new(signature));
        request.set_secret(HeaderName::from_static("authorization"), Secret::new(value))
    }

    fn reject(&self, generation: Generation) -> bool {
        match &*self.source {
            Source::Fixed(_) => false,
            Source::Renewed(_, cache) => {
                cache.forget(generation);
                true
            }
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The header `Host` as it is sent: with the port, unless it is the default.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
