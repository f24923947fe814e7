//! Signs requests with a fixed or a renewable key.

use crate::instance_principal::InstancePrincipal;
use crate::key::PrivateKey;
use crate::sign::{Signed, SignedBody, sha256};
use crate::{Clock, jwt};
use cloud_core::http::{Authorize, HeaderName, Method, Outgoing, Url};
use cloud_core::{ApiOperation, Error, ErrorKind, Generation, Held, Result, Secret};
use std::sync::Arc;

/// The credential of a signature.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The key id.
    pub(crate) key_id: Secret<String>,
    pub(crate) key: Arc<PrivateKey>,
    /// The source of a key.
    pub(crate) tenancy: Option<String>,
}

/// Signs every request to the cloud's services. Clones share the key.
#[derive(Clone)]
pub(crate) struct Signer {
    pub(crate) source: Arc<Source>,
    pub(crate) clock: Clock,
}

/// The source of the key.
pub(crate) enum Source {
    Fixed(Arc<Identity>),
    Instance(Box<InstancePrincipal>),
}

impl Signer {
    /// True if the credential is a session whose token has expired.
    pub(crate) fn is_over(&self) -> bool {
        let Source::Fixed(identity) = &*self.source else {
            return false;
        };
        let token = identity.key_id.expose().strip_prefix("ST$");
        token.and_then(jwt::expiry).is_some_and(|end| end <= self.clock.now())
    }
}

impl Authorize for Signer {
    type Credential = Identity;

    async fn credential(&self) -> Result<Held<Identity>> {
        match &*self.source {
            Source::Fixed(identity) => Ok(Held::fixed(Arc::clone(identity))),
            Source::Instance(principal) => principal.identity().await,
        }
    }

    fn sign(&self, identity: &Identity, request: &mut Outgoing<'_>) -> Result<()> {
        let date = self.clock.http_date();
        let url = request.url().clone();
        let target = target(&url);
        let host = host(&url);
        let has_body = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
        let (length, hash) = (request.body().len(), sha256(request.body()));
        // OCI's SDKs also send it with DELETE, where it is not signed.
        if has_body || *request.method() == Method::DELETE {
            request.set(HeaderName::from_static("content-length"), &length.to_string())?;
        }
        let content_type = request.headers().get("content-type").and_then(|v| v.to_str().ok());
        let content_type = content_type.unwrap_or(JSON).to_owned();
        request.set(HeaderName::from_static("content-type"), &content_type)?;
        request.set(HeaderName::from_static("date"), &date)?;
        if has_body {
            request.set(HeaderName::from_static("x-content-sha256"), &hash)?;
        }
        let body = SignedBody { length, content_type: &content_type, sha256: &hash };
        let signed = Signed {
            method: request.method().as_str(),
            target: &target,
            host: Some(&host),
            date: &date,
            body: has_body.then_some(body),
        };
        let signature = identity.key.sign(signed.text().as_bytes()).map_err(|cause| {
            Error::new(ErrorKind::Unauthenticated, ApiOperation::Authenticate).caused_by(cause)
        })?;
        let key_id = identity.key_id.expose();
        let value = signed.signed_as(key_id, &signature);
        // It contains a session's token, which is as secret as a password.
        let token = key_id.strip_prefix("ST$").unwrap_or(key_id);
        request.hide(Secret::new(token.to_owned()));
        request.hide(Secret::new(signature));
        request.set_secret(HeaderName::from_static("authorization"), Secret::new(value))
    }

    fn reject(&self, generation: Generation) -> bool {
        match &*self.source {
            Source::Fixed(_) => false,
            Source::Instance(principal) => {
                principal.forget(generation);
                true
            }
        }
    }
}

pub(crate) const JSON: &str = "application/json";

/// Path and query as they are sent.
pub(crate) fn target(url: &Url) -> String {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    }
}

/// The `Host` header: with the port, unless it is the default of the scheme.
pub(crate) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
