//! Errors of the state directory.

use std::io;
use std::path::PathBuf;

/// A result with this module's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation on a file of the state directory.
#[derive(Debug, thiserror::Error)]
#[error("{doing} {}", path.display())]
pub struct Error {
    /// The operation.
    doing: &'static str,
    /// The file.
    path: PathBuf,
    /// The cause.
    pub(crate) source: io::Error,
}

impl Error {
    /// Creates an error from an I/O error about a file.
    pub(super) fn on(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { doing, path, source }
    }
}
