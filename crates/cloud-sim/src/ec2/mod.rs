//! A proxy in front of a cloud that speaks EC2's Query API, such as moto's server: it adds what goes wrong between them.
//!
//! Requests are forwarded as they are, also the header `Host`, so that signatures stay valid. By the rules of [`Rule`],
//! it answers with errors in EC2's form, loses answers, and delays them. It bounds requests by [`Throttle`]. It carries
//! out a request with a client token once, and refuses a token with another request. It hides new instances for a while,
//! as EC2 does, whose listings lag.

mod admin;
mod answer;
mod client_token;
mod forward;
mod lag;
mod operation;
mod serve;

use crate::error::Error;
use crate::fault::{Faults, Rule};
use crate::record::{Recorded, Records};
use crate::shared::lock;
use crate::throttle::{Buckets, Throttle};
use client_token::ClientTokens;
use lag::Lag;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The most requests that are remembered.
const KEPT: usize = 10_000;

/// A proxy that listens until it is dropped; it runs on the caller's runtime.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What every connection shares.
#[derive(Debug)]
struct Shared {
    /// Host and port of the cloud.
    upstream: String,
    faults: Mutex<Faults>,
    buckets: Mutex<Buckets>,
    records: Arc<Mutex<Records>>,
    latency: Mutex<Duration>,
    tokens: ClientTokens,
    lag: Mutex<Lag>,
}

impl Proxy {
    /// Listens at an address such as `127.0.0.1:0` and forwards to host and port of a cloud, such as `127.0.0.1:5000`.
    pub async fn start(listen: &str, upstream: &str) -> Result<Self, Error> {
        let fail = |source| Error::Listen { address: listen.to_owned(), source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let shared = Arc::new(Shared {
            upstream: upstream.to_owned(),
            faults: Mutex::new(Faults::new(&[], 0)),
            buckets: Mutex::new(Buckets::new(Vec::new())),
            records: Arc::new(Mutex::new(Records::new(KEPT))),
            latency: Mutex::new(Duration::ZERO),
            tokens: ClientTokens::default(),
            lag: Mutex::new(Lag::default()),
        });
        let task = tokio::spawn(serve::serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, task })
    }

    /// Where it listens, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a fault rule and gives its number; refuses one that could never happen.
    pub fn add_fault(&self, rule: Rule) -> Result<u64, Error> {
        self.shared.add_fault(rule)
    }

    /// Sets how many requests are accepted; replaces all earlier settings.
    pub fn set_throttle(&self, throttle: Vec<Throttle>) -> Result<(), Error> {
        self.shared.set_throttle(throttle)
    }

    /// Delays every response; the work itself is done at once.
    pub fn set_latency(&self, latency: Duration) {
        *lock(&self.shared.latency) = latency;
    }

    /// Hides instances from all requests for this long after their launch.
    pub fn set_lag(&self, lag: Duration) {
        lock(&self.shared.lag).set(lag);
    }

    /// The newest requests, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.records).after(0)
    }

    /// How many requests there were of each operation.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.records).counts().clone()
    }

    /// How many requests had a token that was used before with another request.
    #[must_use]
    pub fn token_mismatches(&self) -> u64 {
        self.shared.tokens.mismatches()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn add_fault(&self, rule: Rule) -> Result<u64, Error> {
        rule.check_for(&operation::EC2)?;
        Ok(lock(&self.faults).add(rule))
    }

    fn set_throttle(&self, throttle: Vec<Throttle>) -> Result<(), Error> {
        throttle.iter().try_for_each(|bound| bound.check_for(&operation::EC2))?;
        *lock(&self.buckets) = Buckets::new(throttle);
        Ok(())
    }
}
