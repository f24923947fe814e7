//! Why a program cannot even begin.

use crate::output::chain;
use cloud_core::ErrorKind;
use std::error::Error;
use std::fmt;

/// Why a program cannot even begin: wrong usage or configuration, each point one thing to mend; or no answer from the
/// cloud, which will pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble {
    points: Vec<String>,
    passes: bool,
}

impl Trouble {
    /// One point.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { points: vec![text.into()], passes: false }
    }

    /// An error with its causes.
    #[must_use]
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        Self::new(chain(error))
    }

    /// Several errors.
    #[must_use]
    pub fn from_errors<E: Error + 'static>(errors: &[E]) -> Self {
        let points = errors.iter().map(|error| chain(error)).collect();
        Self { points, passes: false }
    }

    /// What the cloud says: that we may not or that there is no such thing is a matter of configuration, all else passes.
    #[must_use]
    pub fn from_cloud(error: &cloud_core::Error) -> Self {
        let passes = match error.kind() {
            ErrorKind::Conflict
            | ErrorKind::Quota
            | ErrorKind::Capacity
            | ErrorKind::Throttled
            | ErrorKind::Unavailable
            | ErrorKind::Ambiguous
            | ErrorKind::Protocol => true,
            ErrorKind::Unauthenticated
            | ErrorKind::Forbidden
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::Unsupported => false,
        };
        Self { passes, ..Self::from_error(error) }
    }

    /// The same, with what to do about all of it.
    #[must_use]
    pub fn advising(mut self, remedy: impl Into<String>) -> Self {
        self.points.push(remedy.into());
        self
    }

    /// The same, as something that passes or does not.
    #[must_use]
    pub fn passing(self, passes: bool) -> Self {
        Self { passes, ..self }
    }

    /// True if there is nothing to mend, but to try again.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.passes
    }

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[String] {
        &self.points
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.points.join("\n"))
    }
}

impl Error for Trouble {}
