//! What can go wrong with the state directory.

use std::io;
use std::path::PathBuf;

/// What this module returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A file of the state directory that could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{doing} {}", path.display())]
pub struct Error {
    /// What was tried.
    doing: &'static str,
    /// On which file.
    path: PathBuf,
    /// What the system said.
    pub(crate) source: io::Error,
}

impl Error {
    /// Makes an error out of what the system said about a file.
    pub(super) fn on(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { doing, path, source }
    }
}
