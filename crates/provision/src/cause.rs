//! Why nodes did not get what was asked for.

use cloud_core::ErrorKind;
use std::fmt;

/// Why a node did not get what was asked for, as a code that machines can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The cloud has no machine of that kind left.
    Capacity,
    /// The cloud allows no more.
    Quota,
    /// Too many requests.
    Throttled,
    /// The cloud could not answer.
    Unavailable,
    /// The cloud's answer was lost, and it is not known what was done.
    Ambiguous,
    /// The cloud does not know us.
    Unauthenticated,
    /// The cloud does not let us.
    Forbidden,
    /// The cloud calls the request wrong, or cannot do it.
    Invalid,
    /// Something that the request needs is not there.
    NotFound,
    /// Something else is being done to the same thing.
    Conflict,
    /// The cloud said something that we do not understand.
    Protocol,
    /// It took too long.
    Timeout,
    /// Every place where the node could go is cooling down.
    Cooling,
    /// Another node of the same job could not be had.
    JobIncomplete,
    /// We refused: see the reason.
    Refused,
    /// Slurm did not do what it was told.
    Slurm,
    /// Somebody told us to stop.
    Cancelled,
    /// What may be spent is spent.
    Budget,
    /// As many machines run as may.
    MaxNodes,
    /// The machine has failed its health check.
    Unhealthy,
    /// The cloud takes the machine away.
    Preempted,
}

/// Codes and words, in the order of the variants.
const CAUSES: [(Cause, &str, &str); 21] = [
    (Cause::Capacity, "capacity", "out of capacity"),
    (Cause::Quota, "quota", "quota exceeded"),
    (Cause::Throttled, "throttled", "too many requests"),
    (Cause::Unavailable, "unavailable", "cloud unavailable"),
    (Cause::Ambiguous, "ambiguous", "answer lost"),
    (Cause::Unauthenticated, "unauthenticated", "not authenticated"),
    (Cause::Forbidden, "forbidden", "not allowed"),
    (Cause::Invalid, "invalid", "invalid request"),
    (Cause::NotFound, "not_found", "not found"),
    (Cause::Conflict, "conflict", "in use elsewhere"),
    (Cause::Protocol, "protocol", "answer not understood"),
    (Cause::Timeout, "timeout", "took too long"),
    (Cause::Cooling, "cooling", "cooling down"),
    (Cause::JobIncomplete, "job_incomplete", "job cannot get all its nodes"),
    (Cause::Refused, "refused", "refused"),
    (Cause::Slurm, "slurm", "slurm did not obey"),
    (Cause::Cancelled, "cancelled", "cancelled"),
    (Cause::Budget, "budget", "budget reached"),
    (Cause::MaxNodes, "max_nodes", "max_nodes reached"),
    (Cause::Unhealthy, "unhealthy", "unhealthy machines"),
    (Cause::Preempted, "preempted", "preempted"),
];

impl Cause {
    /// The code, one word that does not change.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.row().1
    }

    /// A few words for people.
    #[must_use]
    pub(crate) fn words(self) -> &'static str {
        self.row().2
    }

    /// The cause with that code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        CAUSES.iter().find(|row| row.1 == code).map(|row| row.0)
    }

    /// Every cause, in order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        CAUSES.iter().map(|row| row.0)
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        let found = CAUSES.iter().find(|row| row.0 == self).copied();
        found.unwrap_or((self, "unknown", "unknown"))
    }
}

impl From<ErrorKind> for Cause {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unauthenticated => Self::Unauthenticated,
            ErrorKind::Forbidden => Self::Forbidden,
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Conflict | ErrorKind::TokenUsedUp => Self::Conflict,
            ErrorKind::Invalid | ErrorKind::Unsupported => Self::Invalid,
            ErrorKind::Quota => Self::Quota,
            ErrorKind::Capacity => Self::Capacity,
            ErrorKind::Throttled => Self::Throttled,
            ErrorKind::Unavailable => Self::Unavailable,
            ErrorKind::Ambiguous => Self::Ambiguous,
            ErrorKind::Protocol => Self::Protocol,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cause_has_a_code_of_its_own_that_reads_back() {
        let codes: BTreeSet<&str> = CAUSES.iter().map(|row| row.1).collect();
        assert_eq!(codes.len(), CAUSES.len());
        for (cause, _, _) in CAUSES {
            assert_eq!(Cause::from_code(cause.code()), Some(cause));
        }
        assert_eq!(Cause::from_code("nonsense"), None);
    }
}
