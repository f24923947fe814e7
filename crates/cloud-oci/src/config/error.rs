//! Where a configuration is written, and the errors that name the place and the remedy.

use crate::key::KeyError;
use cloud_core::ConfigError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    Line(PathBuf, usize),
    /// A file of the program's own.
    File(PathBuf),
    /// An environment variable.
    Variable(&'static str),
    /// What the program was told.
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

/// A value does not have the form that it must have.
pub(super) fn malformed(place: &Origin, key: &str, what: &str) -> ConfigError {
    ConfigError::new(format!("{place}: {key} is {what}"))
}

/// A file that is named is not there.
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

/// A file that is to have certificates has none.
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
