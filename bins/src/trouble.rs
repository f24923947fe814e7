//! Why a program cannot even begin.

use crate::output::chain;
use std::error::Error;
use std::fmt;

/// Why a program cannot even begin: wrong usage or configuration, each point one thing to mend. Exit code 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trouble(Vec<String>);

impl Trouble {
    /// One point.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(vec![text.into()])
    }

    /// An error with its causes.
    #[must_use]
    pub fn from_error(error: &(dyn Error + 'static)) -> Self {
        Self::new(chain(error))
    }

    /// Several errors.
    #[must_use]
    pub fn from_errors<E: Error + 'static>(errors: &[E]) -> Self {
        Self(errors.iter().map(|error| chain(error)).collect())
    }

    /// The points.
    #[must_use]
    pub fn points(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl Error for Trouble {}
