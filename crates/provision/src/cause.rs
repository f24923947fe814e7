//! Why nodes did not get what was asked for.

use cloud_core::ErrorKind;

words! {
    /// Why a node did not get what was asked for, as a code that machines can count.
    #[non_exhaustive]
    pub enum Cause {
        /// The cloud has no machine of that kind left.
        Capacity = "capacity",
        /// The cloud allows no more.
        Quota = "quota",
        /// Too many requests.
        Throttled = "throttled",
        /// The cloud could not answer.
        Unavailable = "unavailable",
        /// The cloud's answer was lost, and it is not known what was done.
        Ambiguous = "ambiguous",
        /// The credentials are not accepted.
        Unauthenticated = "unauthenticated",
        /// The credentials lack a permission.
        Forbidden = "forbidden",
        /// The cloud calls the request wrong, or cannot do it.
        Invalid = "invalid",
        /// Something that the request needs is not there.
        NotFound = "not_found",
        /// Something else is being done to the same thing.
        Conflict = "conflict",
        /// The cloud said something that we do not understand.
        Protocol = "protocol",
        /// It took too long.
        Timeout = "timeout",
        /// Every place where the node could go is cooling down.
        Cooling = "cooling",
        /// Another node of the same job could not start.
        JobIncomplete = "job_incomplete",
        /// The request is refused: see the reason.
        Refused = "refused",
        /// slurmctld did not do what was asked.
        Slurm = "slurm",
        /// The run was cancelled.
        Cancelled = "cancelled",
        /// What may be spent is spent.
        Budget = "budget",
        /// The maximum number of machines runs.
        MaxNodes = "max_nodes",
        /// The machine has failed its health check.
        Unhealthy = "unhealthy",
        /// The cloud takes the machine away.
        Preempted = "preempted",
        /// The machine runs, and its slurmd did not register before `ResumeTimeout`.
        NeverRegistered = "never_registered",
    }
}

impl Cause {
    /// A few words for people.
    #[must_use]
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Capacity => "out of capacity",
            Self::Quota => "quota exceeded",
            Self::Throttled => "too many requests",
            Self::Unavailable => "cloud unavailable",
            Self::Ambiguous => "answer lost",
            Self::Unauthenticated => "not authenticated",
            Self::Forbidden => "not allowed",
            Self::Invalid => "invalid request",
            Self::NotFound => "not found",
            Self::Conflict => "in use elsewhere",
            Self::Protocol => "answer not understood",
            Self::Timeout => "took too long",
            Self::Cooling => "cooling down",
            Self::JobIncomplete => "job cannot get all its nodes",
            Self::Refused => "refused",
            Self::Slurm => "slurm did not obey",
            Self::Cancelled => "cancelled",
            Self::Budget => "budget reached",
            Self::MaxNodes => "max_nodes reached",
            Self::Unhealthy => "unhealthy machines",
            Self::Preempted => "preempted",
            Self::NeverRegistered => "did not register",
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cause_has_a_code_of_its_own_that_reads_back() {
        let codes: BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        assert_eq!(codes.len(), Cause::ALL.len());
        for cause in Cause::ALL {
            assert_eq!(Cause::from_word(cause.as_str()), Some(cause));
        }
        assert_eq!(Cause::from_word("nonsense"), None);
    }
}
