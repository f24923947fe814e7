//! Why a program cannot start its work.

use crate::output::chain;
use std::error::Error;
use std::fmt;

/// Why a program cannot start its work: wrong usage or configuration, with one message for each error, or a transient
/// failure of the cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostic {
    messages: Vec<String>,
    transient: bool,
}

impl Diagnostic {
    /// Creates a diagnostic with one message.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { messages: vec![text.into()], transient: false }
    }

    /// Creates a diagnostic with one message for each error.
    #[must_use]
    pub fn from_errors<E: Error + 'static>(errors: &[E]) -> Self {
        let messages = errors.iter().map(|error| chain(error)).collect();
        Self { messages, transient: false }
    }

    /// Creates a diagnostic from a cloud error. It is transient unless the configuration has to change.
    #[must_use]
    pub fn from_cloud(error: &cloud_core::Error) -> Self {
        let kind = error.kind();
        Self::new(chain(error)).transient(kind.is_transient() || kind.is_about_the_place())
    }

    /// Adds a message that says what to do.
    #[must_use]
    pub fn with_help(mut self, remedy: impl Into<String>) -> Self {
        self.messages.push(remedy.into());
        self
    }

    /// Sets whether it is transient.
    #[must_use]
    pub fn transient(self, transient: bool) -> Self {
        Self { transient, ..self }
    }

    /// True if a later attempt may succeed without a change of the configuration.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.transient
    }

    /// The messages.
    #[must_use]
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}

impl<E: Error + 'static> From<E> for Diagnostic {
    fn from(error: E) -> Self {
        let error: &(dyn Error + 'static) = &error;
        match error.downcast_ref() {
            Some(cloud) => Self::from_cloud(cloud),
            None => Self::new(chain(error)),
        }
    }
}
