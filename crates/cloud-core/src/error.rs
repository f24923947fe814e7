//! What went wrong, and what to do about it.

use crate::ApiOperation;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// What the library returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Longest part of a cloud's message that an [`Error`] keeps, in characters.
const LONGEST_MESSAGE: usize = 400;

/// A request to a cloud that did not succeed.
///
/// Prints what was tried, on what, and why, on one line; the cause is in
/// [`source`](StdError::source) and not in the text.
///
/// ```
/// use cloud_core::{Error, ErrorKind, ApiOperation};
///
/// let error = Error::new(ErrorKind::Capacity, ApiOperation::Launch)
///     .on("vm-0001")
///     .because("Out of host capacity.")
///     .with_code("InternalError")
///     .with_request_id("7F3A");
/// assert_eq!(
///     error.to_string(),
///     "launch vm-0001: out of capacity: Out of host capacity. (InternalError, request 7F3A)"
/// );
/// assert!(error.kind().is_about_the_place());
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: ApiOperation,
    subject: Option<String>,
    message: Option<String>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    answered: Option<SystemTime>,
    given_up: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind while doing this.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: ApiOperation) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            subject: None,
            message: None,
            code: None,
            request_id: None,
            retry_after: None,
            answered: None,
            given_up: false,
            source: None,
        }))
    }

    /// The typed answer of a cloud that cannot do this at all.
    #[must_use]
    pub fn unsupported(operation: ApiOperation) -> Self {
        Self::new(ErrorKind::Unsupported, operation)
    }

    /// Names the instance, image or other thing concerned.
    #[must_use]
    pub fn on(mut self, subject: impl fmt::Display) -> Self {
        self.0.subject = Some(subject.to_string());
        self
    }

    /// Keeps the reason in the cloud's own words, on one line and not too long.
    #[must_use]
    pub fn because(mut self, message: impl AsRef<str>) -> Self {
        let message = one_line(message.as_ref());
        self.0.message = (!message.is_empty()).then_some(message);
        self
    }

    /// Keeps the cloud's code, such as `InternalError` or `429 TooManyRequests`.
    #[must_use]
    pub fn with_code(mut self, code: impl AsRef<str>) -> Self {
        self.0.code = Some(one_line(code.as_ref()));
        self
    }

    /// Keeps the id by which the cloud's operators find the request in their logs.
    #[must_use]
    pub fn with_request_id(mut self, id: impl AsRef<str>) -> Self {
        self.0.request_id = Some(one_line(id.as_ref()));
        self
    }

    /// Keeps how long the cloud asked us to wait.
    #[must_use]
    pub fn with_retry_after(mut self, pause: impl Into<Option<Duration>>) -> Self {
        self.0.retry_after = pause.into();
        self
    }

    /// Keeps what the cloud's clock said when it answered; the text does not show it.
    #[must_use]
    pub fn with_answered(mut self, date: impl Into<Option<SystemTime>>) -> Self {
        self.0.answered = date.into();
        self
    }

    /// Notes that the cloud cannot be reached, and that whoever asked wants to know rather than to wait.
    #[must_use]
    pub fn given_up(mut self) -> Self {
        self.0.given_up = true;
        self
    }

    /// Keeps the cause, for those who print the whole chain.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Replaces the kind and keeps all else.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was tried.
    #[must_use]
    pub fn operation(&self) -> ApiOperation {
        self.0.operation
    }

    /// What it was tried on.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The reason in the cloud's own words.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// The cloud's code.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The cloud's request id, or ours when no answer came.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the cloud asked us to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// True if the same request may succeed later and is worth waiting for: its [kind](ErrorKind::is_transient) is
    /// transient, and nobody has given up.
    #[must_use]
    pub fn is_worth_a_retry(&self) -> bool {
        self.0.kind.is_transient() && !self.0.given_up
    }

    /// True if the cloud cannot be reached, and whoever asked does not wait for that to change.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.0.given_up
    }

    /// What the cloud's clock said when it answered.
    #[must_use]
    pub fn answered(&self) -> Option<SystemTime> {
        self.0.answered
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        write!(f, "{}", inner.operation)?;
        if let Some(subject) = &inner.subject {
            write!(f, " {subject}")?;
        }
        write!(f, ": {}", inner.kind)?;
        if let Some(message) = &inner.message {
            write!(f, ": {message}")?;
        }
        let details = [
            inner.code.clone(),
            inner.request_id.as_ref().map(|id| format!("request {id}")),
            inner.retry_after.map(|pause| format!("retry after {pause:?}")),
        ];
        let details: Vec<String> = details.into_iter().flatten().collect();
        if details.is_empty() { Ok(()) } else { write!(f, " ({})", details.join(", ")) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("text", &self.to_string())
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}

/// Kind of a failure, in words that every cloud shares.
///
/// Closed on purpose: whoever handles errors has to think about a new kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The cloud does not know who we are: key, token or clock.
    Unauthenticated,
    /// The cloud knows who we are and does not allow it.
    Forbidden,
    /// There is no such thing, or we may not see it.
    NotFound,
    /// The state of the thing does not allow it now.
    Conflict,
    /// The instance made with this launch token is gone, and the token with it: look, and launch with another.
    TokenUsedUp,
    /// The request itself is wrong and will stay wrong.
    Invalid,
    /// The tenancy's or project's limit is reached.
    Quota,
    /// The cloud has no machine of this shape in this zone.
    Capacity,
    /// Too many requests; the request was refused and had no effect.
    Throttled,
    /// The cloud could not be reached or was not well; the request certainly had no effect.
    Unavailable,
    /// The request may or may not have been carried out.
    Ambiguous,
    /// The answer makes no sense to us.
    Protocol,
    /// This cloud cannot do it at all.
    Unsupported,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 13] = [
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::TokenUsedUp,
        Self::Invalid,
        Self::Quota,
        Self::Capacity,
        Self::Throttled,
        Self::Unavailable,
        Self::Ambiguous,
        Self::Protocol,
        Self::Unsupported,
    ];

    /// True if the same request may succeed later. Repeat it only if it is idempotent, or if it
    /// certainly had no effect ([`may_have_happened`](Self::may_have_happened)).
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::Throttled
            | Self::Unavailable
            | Self::Ambiguous
            | Self::Conflict
            // Half a response, or a load balancer's page.
            | Self::Protocol => true,
            Self::Unauthenticated
            | Self::Forbidden
            | Self::NotFound
            | Self::TokenUsedUp
            | Self::Invalid
            | Self::Quota
            | Self::Capacity
            | Self::Unsupported => false,
        }
    }

    /// True if another zone or shape may have room although this one has none.
    #[must_use]
    pub fn is_about_the_place(self) -> bool {
        matches!(self, Self::Quota | Self::Capacity)
    }

    /// True if the cloud refuses the caller: repeating the request may lock the account.
    #[must_use]
    pub fn is_about_the_caller(self) -> bool {
        matches!(self, Self::Unauthenticated | Self::Forbidden)
    }

    /// True if the request may have been carried out; observe before repeating it.
    #[must_use]
    pub fn may_have_happened(self) -> bool {
        self == Self::Ambiguous
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unauthenticated => "not authenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::TokenUsedUp => "launch token used up",
            Self::Invalid => "invalid request",
            Self::Quota => "quota exceeded",
            Self::Capacity => "out of capacity",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::Ambiguous => "outcome unknown",
            Self::Protocol => "unexpected response",
            Self::Unsupported => "not supported by this cloud",
        })
    }
}

/// Text from outside, made fit for a log line: no control characters, bounded.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().nth(LONGEST_MESSAGE).is_none() {
        return line;
    }
    line.chars().take(LONGEST_MESSAGE).chain(['…']).collect()
}
