//! Signers, and what can go wrong with them.

use crate::loopback::server::{Server, Step};
use crate::loopback::{config, pacer, request, witness};
use cloud_core::http::{
    Authorize, Client, Effect, HeaderName, Method, Outgoing, Request, Unsigned, by_status,
};
use cloud_core::pace::{Pace, Pacer};
use cloud_core::{
    ApiOperation, Error, ErrorKind, Generation, Held, Result, Secret, Token, TokenCache,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Gives out tokens, each another, and signs with them.
pub(crate) struct Tokens {
    cache: TokenCache<Secret<String>>,
    issued: AtomicU32,
}

impl Tokens {
    pub(crate) fn new() -> Self {
        Self { cache: TokenCache::new(Duration::from_mins(1)), issued: AtomicU32::new(0) }
    }
}

impl Authorize for Tokens {
    type Credential = Secret<String>;

    async fn credential(&self) -> Result<Held<Self::Credential>> {
        self.cache
            .get(|| async {
                let n = self.issued.fetch_add(1, Ordering::SeqCst) + 1;
                let value = Secret::new(format!("Bearer {}-{n}", witness::TOKEN));
                Ok(Token { value, life: Duration::from_hours(1) })
            })
            .await
    }

    fn sign(&self, credential: &Self::Credential, request: &mut Outgoing<'_>) -> Result<()> {
        request.set_secret(HeaderName::from_static("authorization"), credential.clone())
    }

    fn reject(&self, generation: Generation) -> bool {
        self.cache.forget(generation);
        true
    }
}

/// Counts the attempts.
pub(crate) struct Counting(pub(crate) AtomicU32);

impl Authorize for &Counting {
    type Credential = ();

    async fn credential(&self) -> Result<Held<()>> {
        Ok(Held::fixed(Arc::new(())))
    }

    fn sign(&self, (): &(), _request: &mut Outgoing<'_>) -> Result<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn a_failing_signer_sends_nothing() {
    struct Refuses;
    impl Authorize for Refuses {
        type Credential = ();

        async fn credential(&self) -> Result<Held<()>> {
            Err(Error::new(ErrorKind::Unauthenticated, ApiOperation::Authenticate))
        }

        fn sign(&self, (): &(), _request: &mut Outgoing<'_>) -> Result<()> {
            Ok(())
        }
    }
    let server = Server::start([Step::ok("never")]).await;
    let client = Client::new(config(), Refuses, by_status, pacer()).expect("a client");
    let result = client.send(&request(&server, Method::POST)).await;
    assert_eq!(result.expect_err("an error").kind(), ErrorKind::Unauthenticated);
    assert_eq!(server.connections(), 0);
}

/// Asks the cloud itself who we are, by another client that shares the pacer.
struct Nested {
    client: Client<Unsigned>,
    request: Request,
}

impl Authorize for Nested {
    type Credential = ();

    async fn credential(&self) -> Result<Held<()>> {
        self.client.send(&self.request).await?;
        Ok(Held::fixed(Arc::new(())))
    }

    fn sign(&self, (): &(), _request: &mut Outgoing<'_>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_request_that_waits_for_its_token_does_not_block_the_request_for_the_token() {
    let server = Server::start([Step::ok("token"), Step::ok("done")]).await;
    let narrow = Pacer::new(Pace { concurrency: 1, ..Pace::default() });
    let client = Client::new(config(), Unsigned, by_status, narrow.clone()).expect("a client");
    let wanted = request(&server, Method::GET);
    let url = format!("http://{}/token", server.address).parse().expect("a URL");
    let signer =
        Nested { client, request: Request::new(ApiOperation::Authenticate, Method::POST, url) };
    let client = Client::new(config(), signer, by_status, narrow).expect("a client");
    let sent = tokio::time::timeout(Duration::from_secs(20), client.send(&wanted)).await;
    assert_eq!(&sent.expect("no deadlock").expect("an answer").body[..], b"done");
}

/// Has a credential for the first attempts, and then this error.
struct Fails {
    good: u32,
    kind: ErrorKind,
    asked: AtomicU32,
}

impl Fails {
    fn after(good: u32, kind: ErrorKind) -> Self {
        Self { good, kind, asked: AtomicU32::new(0) }
    }
}

impl Authorize for Fails {
    type Credential = ();

    async fn credential(&self) -> Result<Held<()>> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.good {
            return Ok(Held::fixed(Arc::new(())));
        }
        Err(Error::new(self.kind, ApiOperation::Authenticate).because("from the token service"))
    }

    fn sign(&self, (): &(), _request: &mut Outgoing<'_>) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_missing_token_is_not_taken_for_a_missing_instance() {
    for (kind, expected) in [
        (ErrorKind::NotFound, ErrorKind::Unauthenticated),
        (ErrorKind::Conflict, ErrorKind::Unauthenticated),
        (ErrorKind::Capacity, ErrorKind::Unauthenticated),
        (ErrorKind::Ambiguous, ErrorKind::Unavailable),
        (ErrorKind::Throttled, ErrorKind::Throttled),
        (ErrorKind::Protocol, ErrorKind::Protocol),
    ] {
        let server = Server::start([Step::ok("never")]).await;
        let signer = Fails::after(0, kind);
        let client = Client::new(config(), signer, by_status, pacer()).expect("a client");
        let error = client.send(&request(&server, Method::DELETE)).await.expect_err("an error");
        assert_eq!(error.kind(), expected, "{error}");
        assert_eq!(error.operation(), ApiOperation::Launch, "what was tried");
        let cause = std::error::Error::source(&error).expect("a cause").to_string();
        assert!(cause.starts_with("authenticate: "), "{cause}");
        assert_eq!(server.connections(), 0);
    }
}

#[tokio::test]
async fn a_launch_stays_ambiguous_when_the_next_attempt_gets_no_credential() {
    for kind in [ErrorKind::Forbidden, ErrorKind::NotFound, ErrorKind::Invalid] {
        let server = Server::start([Step::status(503), Step::ok("never")]).await;
        let signer = Fails::after(1, kind);
        let client = Client::new(config(), signer, by_status, pacer()).expect("a client");
        let launch = request(&server, Method::POST).with_effect(Effect::Idempotent);
        let error = client.send(&launch).await.expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::Ambiguous, "{error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_token_service_is_asked_again_after_a_transient_error() {
    let server = Server::start([Step::status(503), Step::ok("token")]).await;
    let url = format!("http://{}/v3/auth/tokens", server.address).parse().expect("a URL");
    let request = Request::new(ApiOperation::Authenticate, Method::POST, url);
    let client = Client::new(config(), Unsigned, by_status, pacer()).expect("a client");
    assert_eq!(&client.send(&request).await.expect("a token").body[..], b"token");
}
