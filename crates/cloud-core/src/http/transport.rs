//! Sends one request, and finds out whether a failed one was sent.

use super::retry::{Failure, Fate};
use super::{ClientConfig, HeaderMap, Request, Response, Url, gzip};
use crate::{ErrorKind, Result};
use bytes::{Bytes, BytesMut};
use std::error::Error as StdError;
use std::io;
use std::sync::OnceLock;
use tokio::time::timeout;

pub(super) struct Transport {
    plain: Option<reqwest::Client>,
    secure: OnceLock<reqwest::Client>,
    config: ClientConfig,
}

impl Transport {
    pub(super) fn new(config: &ClientConfig) -> Result<Self> {
        let plain = config.plain()?;
        Ok(Self { plain, secure: OnceLock::new(), config: config.clone() })
    }

    fn client(&self, url: &Url) -> Result<&reqwest::Client> {
        if let Some(plain) = self.plain.as_ref().filter(|_| url.scheme() == "http") {
            return Ok(plain);
        }
        if let Some(secure) = self.secure.get() {
            return Ok(secure);
        }
        let secure = self.config.secure()?;
        Ok(self.secure.get_or_init(|| secure))
    }

    /// Sends the request with these headers and reads the response, with bounded time and length.
    pub(super) async fn exchange(
        &self,
        request: &Request,
        headers: HeaderMap,
        id: Option<String>,
    ) -> Result<Response, Failure> {
        let client = self.client(&request.url).map_err(|cause| {
            let error = request.error(ErrorKind::Invalid).because("no TLS client");
            Failure { fate: Fate::Unasked, error: error.caused_by(cause) }
        })?;
        let exchange = async {
            let outgoing = client
                .request(request.method.clone(), request.url.clone())
                .headers(headers)
                .body(request.body.clone());
            let mut response = outgoing.send().await.map_err(TransportError::Broken)?;
            let body = self.read(&mut response).await?;
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            let theirs = self
                .config
                .request_ids
                .read
                .iter()
                .find_map(|name| headers.get(name)?.to_str().ok());
            let is_error = !status.is_success() && gzip::is_compressed(&headers);
            let longest = self.config.largest_body;
            let body = if is_error { gzip::beginning(&body, longest) } else { body };
            let request_id = theirs.map(str::to_owned).or_else(|| id.clone());
            Ok(Response { status, headers, body, request_id })
        };
        let result =
            timeout(self.config.timeout, exchange).await.unwrap_or(Err(TransportError::TooSlow));
        result.map_err(|failure| {
            let Failure { fate, error } = self.explain(request, failure);
            let error = if let Some(id) = id { error.with_request_id(id) } else { error };
            Failure { fate, error }
        })
    }

    /// Reads the body. For an error, the start is enough.
    async fn read(&self, response: &mut reqwest::Response) -> Result<Bytes, TransportError> {
        let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body =
            BytesMut::with_capacity(announced.unwrap_or_default().min(self.config.largest_body));
        while let Some(chunk) = response.chunk().await.map_err(TransportError::Broken)? {
            let room = self.config.largest_body.saturating_sub(body.len());
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if chunk.len() > room && response.status().is_success() {
                return Err(TransportError::TooLarge);
            }
            if chunk.len() > room {
                break;
            }
        }
        Ok(body.freeze())
    }

    fn explain(&self, request: &Request, failure: TransportError) -> Failure {
        let host = request.url.host_str().unwrap_or("nowhere");
        let (fate, kind, why) = match &failure {
            TransportError::Broken(cause) if cause.is_builder() => {
                (Fate::Refused, ErrorKind::Invalid, format!("cannot build a request to {host}"))
            }
            // A retry does not help with certificates and protocols.
            TransportError::Broken(cause) if cause.is_connect() && is_bad_handshake(cause) => {
                (Fate::Refused, ErrorKind::Protocol, format!("no secure connection to {host}"))
            }
            TransportError::Broken(cause) if cause.is_connect() => {
                (Fate::NotSent, ErrorKind::Unavailable, format!("no connection to {host}"))
            }
            TransportError::Broken(_) => {
                (Fate::Unknown, ErrorKind::Unavailable, format!("incomplete response from {host}"))
            }
            TransportError::TooSlow => {
                let why = format!("incomplete response from {host} in {:?}", self.config.timeout);
                (Fate::Unknown, ErrorKind::Unavailable, why)
            }
            TransportError::TooLarge => {
                let why = format!("body over {} bytes from {host}", self.config.largest_body);
                (Fate::Unknown, ErrorKind::Protocol, why)
            }
        };
        let error = request.error(kind).because(why);
        match failure {
            TransportError::Broken(cause) => {
                let gives_up = !self.config.retry.refused_connections
                    && has_io_error(&cause, io::ErrorKind::ConnectionRefused);
                let error = if gives_up { error.given_up() } else { error };
                Failure { fate, error: error.caused_by(cause.without_url()) }
            }
            TransportError::TooSlow | TransportError::TooLarge => Failure { fate, error },
        }
    }
}

/// True if the certificate or handshake is invalid, which rustls reports as invalid data.
fn is_bad_handshake(cause: &reqwest::Error) -> bool {
    has_io_error(cause, io::ErrorKind::InvalidData)
}

/// True if an I/O error of this kind is among the causes.
fn has_io_error(cause: &reqwest::Error, kind: io::ErrorKind) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(cause);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == kind) {
            return true;
        }
        // The source of an I/O error is that of what it wraps, not what it wraps.
        next = match io.and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

enum TransportError {
    Broken(reqwest::Error),
    TooSlow,
    TooLarge,
}
