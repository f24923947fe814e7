//! A configuration that cannot be used.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// A cloud that cannot be used as configured.
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
    /// An error with this sentence.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), unspecified: false, source: None }
    }

    /// Marks that nothing says which file or which cloud is meant, so that a program can name the
    /// setting of its own that does.
    #[must_use]
    pub fn unspecified(mut self) -> Self {
        self.unspecified = true;
        self
    }

    /// Keeps the cause, for those who print the whole chain.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// True if nothing says which file or which cloud is meant.
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
