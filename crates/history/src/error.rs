//! Errors of reading the log.

use std::io;
use std::path::PathBuf;

/// An error of reading the log.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct Error {
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}
