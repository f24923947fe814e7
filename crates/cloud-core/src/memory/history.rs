//! What was asked of a cloud in memory, and what came of it.

use crate::{ErrorKind, Operation};
use std::time::Duration;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was carried out or refused, counted from the beginning of the cloud.
    pub at: Duration,
    /// What was asked.
    pub operation: Operation,
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
    DoneUnheard,
    /// It was refused with this kind of error.
    Refused(ErrorKind),
    /// It never arrived.
    Lost,
}
