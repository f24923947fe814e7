//! What went wrong, in one type for every controller.

use std::{error::Error as StdError, fmt};

/// What kind of failure it was; what to do about it follows from this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program is not there or cannot be started.
    Missing,
    /// No answer from slurmctld, or none in time: what was asked for may have been done.
    Unavailable,
    /// slurmctld has no such node, job or partition; of a list of nodes, the others were changed.
    NotFound,
    /// slurmctld said no; of a list of nodes, to some of them, and the others were changed.
    Refused,
    /// What was asked for cannot be put to slurmctld; that part of it was not sent.
    Invalid,
    /// The answer was not understood, or was too long.
    Protocol,
}

/// A call that did not work: what was tried, how it ended, and what was said about it.
///
/// ```
/// use slurmctl::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::NotFound, "scontrol update nodename=x")
///     .with_exit_code(1)
///     .because("Invalid node name specified");
/// assert_eq!(
///     error.to_string(),
///     "scontrol update nodename=x: exit code 1: Invalid node name specified"
/// );
/// ```
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    tried: String,
    exit_code: Option<i32>,
    message: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    also: Vec<Error>,
}

/// Most further failures that are shown.
const MOST_SHOWN: usize = 3;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of what was tried: a command line, or what it stands for.
    #[must_use]
    pub fn new(kind: ErrorKind, tried: impl Into<String>) -> Self {
        Self {
            kind,
            tried: tried.into(),
            exit_code: None,
            message: None,
            source: None,
            also: Vec::new(),
        }
    }

    /// Adds how the program ended.
    #[must_use]
    pub fn with_exit_code(mut self, code: impl Into<Option<i32>>) -> Self {
        self.exit_code = code.into();
        self
    }

    /// Adds what was said about it.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into()).filter(|message| !message.is_empty());
        self
    }

    /// Adds the error below.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// One for all failures of a call that took several commands, the gravest first.
    pub(crate) fn all(mut failures: Vec<Self>) -> Result<()> {
        failures.sort_by_key(|error| error.kind.rank());
        let mut failures = failures.into_iter();
        failures.next().map_or(Ok(()), |first| Err(Self { also: failures.collect(), ..first }))
    }

    /// What else went wrong in a call that took several commands.
    #[must_use]
    pub fn also(&self) -> &[Self] {
        &self.also
    }

    /// What kind of failure it was.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was tried.
    #[must_use]
    pub fn tried(&self) -> &str {
        &self.tried
    }

    /// How the program ended, if it was started and not killed.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// What was said about it.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tried)?;
        if let Some(code) = self.exit_code {
            write!(f, ": exit code {code}")?;
        }
        match &self.message {
            Some(message) => write!(f, ": {message}")?,
            None if self.exit_code.is_none() => write!(f, ": {}", self.kind)?,
            None => {}
        }
        for other in self.also.iter().take(MOST_SHOWN) {
            write!(f, "; {other}")?;
        }
        match self.also.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl ErrorKind {
    /// What leaves more open comes first.
    fn rank(self) -> u8 {
        match self {
            Self::Unavailable => 0,
            Self::Missing => 1,
            Self::Protocol => 2,
            Self::Refused => 3,
            Self::NotFound => 4,
            Self::Invalid => 5,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "the program cannot be started",
            Self::Unavailable => "slurmctld does not answer",
            Self::NotFound => "slurmctld knows no such thing",
            Self::Refused => "slurmctld refused",
            Self::Invalid => "slurmctld cannot be asked this",
            Self::Protocol => "the answer was not understood",
        })
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.source {
            Some(source) => Some(&**source),
            None => None,
        }
    }
}
