//! A request that can be sent more than once.

use super::{HeaderMap, HeaderName, HeaderValue, Method, Url};
use crate::pace::Lane;
use crate::{ApiOperation, Error, ErrorKind, Result, Secret};
use bytes::Bytes;
use serde::Serialize;
use std::fmt;

/// The effect of a request, which determines whether it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It changes nothing.
    None,
    /// It changes something and is idempotent, such as a delete, or a launch with a token.
    Idempotent,
    /// It is not idempotent.
    Once,
}

impl Effect {
    /// True if it may be repeated without knowing whether it was carried out.
    #[must_use]
    pub fn repeatable(self) -> bool {
        match self {
            Self::None | Self::Idempotent => true,
            Self::Once => false,
        }
    }
}

/// A request that can be sent more than once.
///
/// `Debug` and errors show neither query, headers nor body.
///
/// ```
/// use cloud_core::ApiOperation;
/// use cloud_core::http::{Effect, Method, Request, Url};
///
/// let url = Url::parse("https://iaas.example/instances?page=x").unwrap();
/// let launch = Request::new(ApiOperation::Launch, Method::POST, url).on("vm-0001");
/// assert_eq!(launch.effect(), Effect::Once);
/// let launch = launch.with_effect(Effect::Idempotent); // it carries a launch token
/// assert_eq!(format!("{launch:?}"), "POST https://iaas.example/instances");
/// ```
#[derive(Clone)]
pub struct Request {
    operation: ApiOperation,
    subject: Option<String>,
    effect: Effect,
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) secrets: Vec<Secret<String>>,
}

impl Request {
    /// Creates a request without a body. Its effect follows from the method; `POST` and `PATCH` are not idempotent.
    ///
    /// [`ApiOperation::Authenticate`] counts as a read with any method, because a second token does no harm.
    #[must_use]
    pub fn new(operation: ApiOperation, method: Method, url: Url) -> Self {
        let effect = match (operation, &method) {
            (ApiOperation::Authenticate, _)
            | (_, &Method::GET | &Method::HEAD | &Method::OPTIONS) => Effect::None,
            (_, &Method::PUT | &Method::DELETE) => Effect::Idempotent,
            (_, _) => Effect::Once,
        };
        Self {
            operation,
            subject: None,
            effect,
            method,
            url,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            secrets: Vec::new(),
        }
    }

    /// Sets the subject of the request, for errors.
    #[must_use]
    pub fn on(mut self, subject: impl fmt::Display) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    /// Sets the effect, if the method alone does not tell.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, content_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.with_header(::http::header::CONTENT_TYPE, content_type)
    }

    /// Sets a JSON body.
    pub fn with_json<T: Serialize + ?Sized>(self, body: &T) -> Result<Self> {
        let json = serde_json::to_vec(body).map_err(|_cause| {
            // The cause may quote the value, and that may be a secret.
            self.error(ErrorKind::Invalid).because("the body cannot be written as JSON")
        })?;
        Ok(self.with_body(HeaderValue::from_static("application/json"), json))
    }

    /// Declares a secret in the request, such as a password or user data, which is removed from the cloud's message in an
    /// error.
    #[must_use]
    pub fn with_secret(mut self, secret: Secret<String>) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Its headers, without those for authentication.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Its effect.
    #[must_use]
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Its lane at the pacer; none for authentication, because requests that hold a permit wait for it.
    pub(super) fn lane(&self) -> Option<Lane> {
        match (self.operation, self.effect) {
            (ApiOperation::Authenticate, _) => None,
            (_, Effect::None) => Some(Lane::Read),
            (_, Effect::Idempotent | Effect::Once) => Some(Lane::Write),
        }
    }

    /// The operation and its subject.
    pub(super) fn purpose(&self) -> String {
        let subject = self.subject.as_deref().unwrap_or_default();
        format!("{} {subject}", self.operation).trim_end().to_owned()
    }

    /// Creates an error about this request.
    #[must_use]
    pub fn error(&self, kind: ErrorKind) -> Error {
        let error = Error::new(kind, self.operation);
        match &self.subject {
            Some(subject) => error.on(subject),
            None => error,
        }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        write!(f, "{} {}://{host}", self.method, self.url.scheme())?;
        if let Some(port) = self.url.port() {
            write!(f, ":{port}")?;
        }
        let path = self.url.path();
        // Of a webhook, the path is the credential.
        let is_secret = self.secrets.iter().any(|secret| secret.expose() == path);
        f.write_str(if is_secret { "/[redacted]" } else { path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_and_lanes_follow_from_operation_and_method() {
        let (look, change) = (Some(Lane::Read), Some(Lane::Write));
        let table = [
            (ApiOperation::List, Method::GET, Effect::None, look),
            (ApiOperation::Get, Method::HEAD, Effect::None, look),
            (ApiOperation::Terminate, Method::DELETE, Effect::Idempotent, change),
            (ApiOperation::Launch, Method::PUT, Effect::Idempotent, change),
            (ApiOperation::Launch, Method::POST, Effect::Once, change),
            (ApiOperation::Reboot, Method::PATCH, Effect::Once, change),
            // A token request without a response could not be repeated.
            (ApiOperation::Authenticate, Method::POST, Effect::None, None),
            (ApiOperation::Authenticate, Method::GET, Effect::None, None),
        ];
        for (operation, method, effect, lane) in table {
            let url = Url::parse("http://cloud/").unwrap();
            let request = Request::new(operation, method.clone(), url);
            assert_eq!(request.effect(), effect, "{operation} {method}");
            assert_eq!(request.lane(), lane, "{operation} {method}");
        }
    }
}
