//! The error of every controller.

use std::{error::Error as StdError, fmt};

/// The kind of a failure, which says what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program does not exist or cannot be started.
    Missing,
    /// No answer from slurmctld in time: the request may have been carried out.
    Unavailable,
    /// No such node, job or partition; of a list of nodes, the others were changed.
    NotFound,
    /// slurmctld refused the request; of a list of nodes, the others were changed.
    Refused,
    /// The request is invalid and was not sent.
    Invalid,
    /// The answer was not understood or too long.
    Protocol,
}

/// A failed call: what was tried, the exit code, and Slurm's message.
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

/// The most further failures that are shown.
const MOST_SHOWN: usize = 3;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure of `tried`, such as a command line.
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

    /// Adds the exit code.
    #[must_use]
    pub fn with_exit_code(mut self, code: impl Into<Option<i32>>) -> Self {
        self.exit_code = code.into();
        self
    }

    /// Adds the message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into()).filter(|message| !message.is_empty());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// One error for all failures of a call that took several commands, the most serious first.
    pub(crate) fn all(mut failures: Vec<Self>) -> Result<()> {
        failures.sort_by_key(|error| error.kind.rank());
        let mut failures = failures.into_iter();
        failures.next().map_or(Ok(()), |first| Err(Self { also: failures.collect(), ..first }))
    }

    /// Further failures of a call that took several commands.
    #[must_use]
    pub fn also(&self) -> &[Self] {
        &self.also
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The exit code of the program, if it was not killed.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code
    }

    /// The message.
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
    /// The order in which kinds are reported: the most uncertain first.
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
            Self::NotFound => "no such node, job or partition",
            Self::Refused => "slurmctld refused",
            Self::Invalid => "invalid request",
            Self::Protocol => "the answer was not understood",
        })
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.source.as_ref()?;
        Some(&**source)
    }
}
