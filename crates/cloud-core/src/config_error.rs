//! Errors in the configuration of a cloud.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// An error in the configuration of a cloud.
///
/// The text is one sentence that names the place, the problem and the remedy; the cause is in
/// [`source`](StdError::source).
#[derive(Clone, Debug)]
pub struct ConfigError {
    text: String,
    unspecified: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl ConfigError {
    /// Creates an error with this sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), unspecified: false, source: None }
    }

    /// Marks that no file or cloud is selected, so that a program can name its own setting for that.
    #[must_use]
    pub fn unspecified(mut self) -> Self {
        self.unspecified = true;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// True if no file or cloud is selected.
    #[must_use]
    pub fn is_unspecified(&self) -> bool {
        self.unspecified
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl StdError for ConfigError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}
