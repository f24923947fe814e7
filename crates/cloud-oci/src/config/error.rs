//! What is wrong with a configuration: one sentence with the place and the remedy.

use crate::key::KeyError;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

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

/// A configuration that cannot be used; nothing has been sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is no configuration file.
    #[error(
        "no OCI configuration in {}: write one with `oci setup config`, or name another with \
         OCI_CLI_CONFIG_FILE",
        .0.display()
    )]
    NoFile(PathBuf),
    /// A file cannot be read.
    #[error("{}: cannot be read: let the user of this program read it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line of the configuration file makes no sense.
    #[error("{} line {line}: {what}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong and how to mend it.
        what: String,
    },
    /// There is no such profile.
    #[error("{}: no profile [{profile}]: choose one of {}", path.display(), list(have))]
    NoProfile {
        /// The file.
        path: PathBuf,
        /// The profile that was asked for.
        profile: String,
        /// Those that are there.
        have: Vec<String>,
    },
    /// A value is missing.
    #[error("{}: profile [{profile}] has no {key}: add `{key}=…`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The profile.
        profile: String,
        /// What is missing.
        key: &'static str,
    },
    /// A value is not of the form that it must have.
    #[error("{place}: {key} is {what}")]
    Malformed {
        /// Where it stands.
        place: Origin,
        /// Of what.
        key: &'static str,
        /// What is wrong and what it should be.
        what: String,
    },
    /// A file that is named is not there.
    #[error("{place}: {key} {} is not there: name the file that has it", path.display())]
    NoNamedFile {
        /// Where the name stands.
        place: Origin,
        /// Which name.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file that is to have certificates has none.
    #[error("{place}: no certificate in PEM form in {}: name a file that has one", path.display())]
    NoCertificate {
        /// Where the name stands.
        place: Origin,
        /// The file.
        path: PathBuf,
    },
    /// We may not read the key or the token.
    #[error(
        "{}: {key} cannot be read: make the user of this program its owner, and run `chmod 600 {}`",
        path.display(),
        path.display()
    )]
    Closed {
        /// The file.
        path: PathBuf,
        /// What it is, by the name that names it.
        key: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Others may read the key or the token.
    #[error(
        "{}: {key} can be read by others (mode {mode:o}): make the user of this program its owner, \
         and run `chmod 600 {}`",
        path.display(),
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// What it is, by the name that names it.
        key: &'static str,
        /// Its permission bits.
        mode: u32,
    },
    /// The key cannot be used.
    #[error("{}: this private key cannot be used", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why.
        source: KeyError,
    },
    /// The fingerprint is that of another key.
    #[error(
        "{place}: fingerprint {given} is not that of {}, which is {actual}: set the fingerprint \
         or name the other key",
        path.display()
    )]
    Fingerprint {
        /// Where it stands.
        place: Origin,
        /// What stands there.
        given: String,
        /// What it is.
        actual: String,
        /// The file of the key.
        path: PathBuf,
    },
    /// There is no such region.
    #[error(
        "{place}: unknown region {region}: did you mean {nearest}? for one that this program is \
         too old to know name the domain of its realm, as realm or as OCI_DEFAULT_REALM"
    )]
    Region {
        /// Where it stands.
        place: Origin,
        /// What stands there.
        region: String,
        /// The region that it is most like.
        nearest: &'static str,
    },
    /// The session is over.
    #[error(
        "{}: the session has expired, at {} by our clock, which says {}: run `oci session authenticate`, or set the clock",
        path.display(), httpdate::fmt_http_date(*end), httpdate::fmt_http_date(*now)
    )]
    Expired {
        /// The file of its token.
        path: PathBuf,
        /// When it ended.
        end: SystemTime,
        /// What time it is here.
        now: SystemTime,
    },
}

fn list(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("[{name}]")).collect();
    if names.is_empty() { "none, the file is empty".to_owned() } else { names.join(", ") }
}
