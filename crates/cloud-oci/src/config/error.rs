//! Sources of values, and errors that name the source and the remedy.

use crate::key::KeyError;
use cloud_core::ConfigError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    Line(PathBuf, usize),
    /// The program's own configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(&'static str),
    /// The program's own settings.
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(path, line) => write!(f, "{} line {line}", path.display()),
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Program => f.write_str("settings"),
        }
    }
}

/// There is no configuration file.
pub(super) fn no_file(path: &Path) -> ConfigError {
    let path = path.display();
    ConfigError::new(format!(
        "no OCI configuration in {path}: write one with `oci setup config`, or name another with \
         OCI_CLI_CONFIG_FILE"
    ))
    .unspecified()
}

/// A file cannot be read.
pub(super) fn unreadable(path: &Path, source: io::Error) -> ConfigError {
    let path = path.display();
    ConfigError::new(format!("{path}: cannot be read: let the user of this program read it"))
        .caused_by(source)
}

/// A value has an invalid format.
pub(super) fn malformed(place: &Origin, key: &str, what: &str) -> ConfigError {
    ConfigError::new(format!("{place}: {key} is {what}"))
}

/// A named file does not exist.
pub(super) fn no_named_file(
    place: &Origin,
    key: &str,
    path: &Path,
    source: io::Error,
) -> ConfigError {
    let path = path.display();
    ConfigError::new(format!("{place}: {key} {path} is not there: name the file that has it"))
        .caused_by(source)
}

/// A file has no certificates.
pub(super) fn no_certificate(place: &Origin, path: &Path) -> ConfigError {
    let path = path.display();
    ConfigError::new(format!(
        "{place}: no certificate in PEM form in {path}: name a file that has one"
    ))
}

/// The key cannot be used.
pub(super) fn bad_key(path: &Path, source: KeyError) -> ConfigError {
    let path = path.display();
    ConfigError::new(format!("{path}: this private key cannot be used")).caused_by(source)
}
