//! The HTTP client: paces, signs, sends, classifies and repeats requests.

use super::redact::redacted;
use super::retry::{Attempts, Failure, Fate, Next};
use super::transport::Transport;
use super::{
    Classification, Classify, ClientConfig, HeaderMap, HeaderName, HeaderValue, Method, Request,
    Response, Url,
};
use crate::pace::{Pacer, Permit};
use crate::{Error, ErrorKind, Generation, Held, Result, Secret};
use ::http::header::CONTENT_LENGTH;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Signs requests.
pub trait Authorize: Send + Sync {
    /// The credential to sign with, such as a key or a token.
    type Credential: Send + Sync;

    /// The credential to sign with, from a [`TokenCache`](crate::TokenCache) or
    /// [`Held::fixed`].
    ///
    /// Its own requests must have [`ApiOperation::Authenticate`](crate::ApiOperation::Authenticate): those are not paced,
    /// because the request that waits for them already holds a permit.
    fn credential(&self) -> impl Future<Output = Result<Held<Self::Credential>>> + Send;

    /// Adds the headers for authentication.
    fn sign(&self, credential: &Self::Credential, request: &mut Outgoing<'_>) -> Result<()>;

    /// Handles the rejection of a credential. Returns true if it makes sense to get another.
    fn reject(&self, generation: Generation) -> bool {
        let _ = generation;
        false
    }
}

/// Adds no signature: for metadata services, which trust the network, and for the requests that fetch a token.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsigned;

impl Authorize for Unsigned {
    type Credential = ();

    async fn credential(&self) -> Result<Held<()>> {
        Ok(Held::fixed(Arc::new(())))
    }

    fn sign(&self, (): &(), _request: &mut Outgoing<'_>) -> Result<()> {
        Ok(())
    }
}

/// A request to be signed.
#[derive(Debug)]
pub struct Outgoing<'a> {
    request: &'a Request,
    headers: HeaderMap,
    secrets: Vec<Secret<String>>,
}

impl Outgoing<'_> {
    /// The method.
    #[must_use]
    pub fn method(&self) -> &Method {
        &self.request.method
    }

    /// The whole URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.request.url
    }

    /// The headers so far. `Content-Length` is set only for an empty body of a method that expects one; a signer may set
    /// it.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.request.body
    }

    /// Sets a header that is not secret.
    pub fn set(&mut self, name: HeaderName, value: &str) -> Result<()> {
        let value = self.value(&name, value)?;
        self.headers.insert(name, value);
        Ok(())
    }

    /// Sets a secret header. It is kept out of logs, and out of errors even if the cloud echoes it.
    pub fn set_secret(&mut self, name: HeaderName, value: Secret<String>) -> Result<()> {
        let mut header = self.value(&name, value.expose())?;
        header.set_sensitive(true);
        self.headers.insert(name, header);
        self.secrets.push(value);
        Ok(())
    }

    /// Declares a part of a secret header as a secret of its own, such as the token inside a signature. It is also removed
    /// from what the cloud echoes.
    pub fn hide(&mut self, secret: Secret<String>) {
        self.secrets.push(secret);
    }

    fn value(&self, name: &HeaderName, value: &str) -> Result<HeaderValue> {
        HeaderValue::from_str(value).map_err(|_cause| {
            let message = format!("the value of {name} cannot be a header");
            self.request.error(ErrorKind::Invalid).because(message)
        })
    }
}

/// Sends requests to a cloud; see [the module](super) for what it does about failures.
pub struct Client<A> {
    transport: Transport,
    config: ClientConfig,
    authorize: A,
    classify: Classify,
    pacer: Pacer,
    random: Mutex<fastrand::Rng>,
}

impl<A: Authorize> Client<A> {
    /// Creates a client with a connection pool. All clients of a process should share one pacer.
    pub fn new(
        config: ClientConfig,
        authorize: A,
        classify: Classify,
        pacer: Pacer,
    ) -> Result<Self> {
        let transport = Transport::new(&config)?;
        let random = config.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        Ok(Self { transport, config, authorize, classify, pacer, random: Mutex::new(random) })
    }

    /// Sends a request until it succeeds (2xx), must not be repeated, or the bounds are reached.
    pub async fn send(&self, request: &Request) -> Result<Response> {
        let mut attempts = Attempts::new(self.config.retry, request.effect(), self.draw());
        let mut renewed = false;
        loop {
            let permit = match self.acquire_permit(request).await {
                Ok(permit) => permit,
                Err(failure) => return Err(attempts.conclude(failure)),
            };
            let begin = Instant::now();
            let attempted = self.attempt(request, permit).await;
            trace(request, &attempted, begin.elapsed());
            let Attempted { failure, rejected } = match attempted {
                Ok(response) => return Ok(response),
                Err(attempted) => attempted,
            };
            // Once, whatever the effect of the request: a cloud that rejects the credential does nothing.
            if let Some(generation) = rejected
                && !renewed
                && self.authorize.reject(generation)
                && attempts.renew(begin.elapsed())
            {
                renewed = true;
                continue;
            }
            match attempts.after(failure, begin.elapsed()) {
                Next::Again(pause) => sleep(pause).await,
                Next::GiveUp(error) => return Err(error),
            }
        }
    }

    /// Waits for the pacer, but not forever.
    async fn acquire_permit(&self, request: &Request) -> Result<Option<Permit>, Failure> {
        let Some(lane) = request.lane() else {
            return Ok(None);
        };
        let longest = self.config.longest_queue;
        timeout(longest, self.pacer.acquire(lane)).await.map(Some).map_err(|_elapsed| {
            let why = format!("queued for {longest:?} behind other requests");
            let error = request.error(ErrorKind::Throttled).because(why);
            Failure { fate: Fate::Unasked, error }
        })
    }

    async fn attempt(
        &self,
        request: &Request,
        permit: Option<Permit>,
    ) -> Result<Response, Attempted> {
        let credential = self.authorize.credential().await;
        let credential =
            credential.map_err(|error| Attempted::unsigned(request, "no credential", error))?;
        let outgoing = self.sign(request, &credential.value);
        let mut outgoing =
            outgoing.map_err(|error| Attempted::unsigned(request, "not signed", error))?;
        let id = self.add_request_id(&mut outgoing);
        let headers = std::mem::take(&mut outgoing.headers);
        let result = self.transport.exchange(request, headers, id).await;
        let result = result.and_then(|response| self.check(&outgoing, response));
        if let Some(permit) = permit {
            report_to_pacer(permit, &result);
        }
        result.map_err(|failure| {
            let rejected = failure.error.kind() == ErrorKind::Unauthenticated;
            Attempted { failure, rejected: rejected.then_some(credential.generation) }
        })
    }

    fn sign<'a>(&self, request: &'a Request, credential: &A::Credential) -> Result<Outgoing<'a>> {
        let mut headers = request.headers.clone();
        // Without a body hyper sends no length, and some servers answer 411 to that.
        if request.body.is_empty() && has_body(&request.method) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut outgoing = Outgoing { request, headers, secrets: request.secrets.clone() };
        self.authorize.sign(credential, &mut outgoing)?;
        Ok(outgoing)
    }

    /// Sets a request id for the attempt, if the cloud accepts one.
    fn add_request_id(&self, outgoing: &mut Outgoing<'_>) -> Option<String> {
        let name = self.config.request_ids.send.clone()?;
        let id = format!("{:016X}{:016X}", self.draw(), self.draw());
        outgoing.headers.insert(name, HeaderValue::from_str(&id).ok()?);
        Some(id)
    }

    fn check(&self, outgoing: &Outgoing<'_>, response: Response) -> Result<Response, Failure> {
        if response.status.is_success() {
            return Ok(response);
        }
        let classification = (self.classify)(&response);
        let fate = fate(&classification);
        let error = outgoing.request.error(classification.kind);
        let error =
            response.with_id(error.because(redacted(&classification.message, &outgoing.secrets)));
        let error = match classification.code {
            Some(code) => error.with_code(redacted(&code, &outgoing.secrets)),
            None => error,
        };
        let error = error.with_retry_after(response.retry_after()).with_answered(response.date());
        let error = error.with_encoded(classification.encoded);
        Err(Failure { fate, error })
    }

    fn draw(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).u64(..)
    }
}

impl<A> fmt::Debug for Client<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Emits an event about an attempt, without query and body.
fn trace(request: &Request, attempted: &Result<Response, Attempted>, took: Duration) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    let outcome: &dyn fmt::Display = match attempted {
        Ok(response) => &response.status,
        Err(attempted) => &attempted.failure.error,
    };
    let (purpose, ms) = (request.purpose(), took.as_millis());
    tracing::debug!(?request, %outcome, ms, "cloud: {purpose}");
}

/// A failed attempt, and the credential that the cloud rejected, if that was the reason.
struct Attempted {
    failure: Failure,
    rejected: Option<Generation>,
}

impl Attempted {
    /// The kind for the request: "not found" or "forbidden" from a token service does not mean the instance.
    fn unsigned(request: &Request, why: &str, cause: Error) -> Self {
        let kind = match cause.kind() {
            ErrorKind::Unavailable | ErrorKind::Ambiguous => ErrorKind::Unavailable,
            kind @ (ErrorKind::Throttled | ErrorKind::Invalid | ErrorKind::Protocol) => kind,
            ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::TokenUsedUp
            | ErrorKind::Quota
            | ErrorKind::Capacity
            | ErrorKind::Unsupported => ErrorKind::Unauthenticated,
        };
        let error = request.error(kind).because(why);
        let error = error.with_retry_after(cause.retry_after());
        let failure = Failure { fate: Fate::Unasked, error: error.caused_by(cause) };
        Self { failure, rejected: None }
    }
}

/// True if requests of this method should have a body, even an empty one.
fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

fn fate(classification: &Classification) -> Fate {
    if matches!(classification.kind, ErrorKind::Unavailable | ErrorKind::Ambiguous) {
        Fate::Unknown
    } else if classification.retryable {
        Fate::RefusedForNow
    } else {
        Fate::Refused
    }
}

/// Reports the outcome to the pacer. A missing response tells nothing about the rate.
fn report_to_pacer(permit: Permit, result: &Result<Response, Failure>) {
    match result {
        Ok(_) => permit.accepted(),
        Err(Failure { fate: Fate::Unasked | Fate::NotSent | Fate::Unknown, .. }) => drop(permit),
        Err(Failure { fate: Fate::Refused | Fate::RefusedForNow, error }) => {
            if error.kind() == ErrorKind::Throttled {
                permit.throttled(error.retry_after());
            } else {
                permit.accepted();
            }
        }
    }
}
