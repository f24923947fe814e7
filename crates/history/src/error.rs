//! Why the log could not be read.

use std::io;
use std::path::PathBuf;

/// Why the log could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct Error {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}
