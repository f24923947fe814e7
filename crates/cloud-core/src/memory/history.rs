//! The history of requests to a cloud in memory.

use super::world::World;
use crate::{ApiOperation, ErrorKind, Instance};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Time at which it was carried out or refused, since the creation of the cloud.
    pub at: Duration,
    /// The operation.
    pub operation: ApiOperation,
    /// The subject.
    pub subject: Option<String>,
    /// The outcome.
    pub outcome: RequestOutcome,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// It was carried out, and the caller got the response.
    Done,
    /// It was carried out, and the response was lost.
    DoneUnacknowledged,
    /// It was refused with this kind of error.
    Refused(ErrorKind),
    /// It never arrived.
    Lost,
}

/// A request when it is carried out, refused or lost.
#[derive(Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The request.
    pub event: &'a LoggedRequest,
    /// The instance that the request names, before the request.
    pub before: Option<Instance>,
    world: &'a World,
    now: Instant,
}

impl<'a> Moment<'a> {
    pub(super) fn new(
        event: &'a LoggedRequest,
        before: Option<Instance>,
        world: &'a World,
        now: Instant,
    ) -> Self {
        Self { event, before, world, now }
    }

    /// All instances after the request, without lag, latency or faults.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.world.all(self.now)
    }
}

/// The watchers of requests.
#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<dyn Fn(&Moment<'_>) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
