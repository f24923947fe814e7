//! What was asked of a cloud in memory, and what came of it.

use super::world::World;
use crate::{ApiOperation, ErrorKind, Instance};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was carried out or refused, counted from the beginning of the cloud.
    pub at: Duration,
    /// What was asked.
    pub operation: ApiOperation,
    /// Of what.
    pub subject: Option<String>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, and the caller knows.
    Done,
    /// It was carried out, and the answer was lost.
    DoneUnacknowledged,
    /// It was refused with this kind of error.
    Refused(ErrorKind),
    /// It never arrived.
    Lost,
}

/// A request at the very moment when it is carried out, refused or lost.
#[derive(Debug)]
#[non_exhaustive]
pub struct Moment<'a> {
    /// The request.
    pub event: &'a Event,
    /// The instance that it is about, as it was before, if the request names one.
    pub before: Option<Instance>,
    world: &'a World,
    now: Instant,
}

impl<'a> Moment<'a> {
    pub(super) fn new(
        event: &'a Event,
        before: Option<Instance>,
        world: &'a World,
        now: Instant,
    ) -> Self {
        Self { event, before, world, now }
    }

    /// Everything as it is afterwards, without lag, latency or faults.
    #[must_use]
    pub fn instances(&self) -> Vec<Instance> {
        self.world.all(self.now)
    }
}

/// Who is told of every request.
#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<dyn Fn(&Moment<'_>) + Send + Sync>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}
