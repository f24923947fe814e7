//! The error of every cloud.

use crate::ApiOperation;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Maximum length of a cloud's message in an [`Error`], in characters.
const LONGEST_MESSAGE: usize = 400;

/// A failed request to a cloud.
///
/// Displays the operation, its subject and the reason on one line. The cause is only in [`source`](StdError::source).
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
    answer: ErrorKind,
    operation: ApiOperation,
    subject: Option<String>,
    message: Option<String>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    answered: Option<SystemTime>,
    encoded: Option<String>,
    given_up: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of this kind in this operation.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: ApiOperation) -> Self {
        Self(Box::new(Inner {
            kind,
            answer: kind,
            operation,
            subject: None,
            message: None,
            code: None,
            request_id: None,
            retry_after: None,
            answered: None,
            encoded: None,
            given_up: false,
            source: None,
        }))
    }

    /// Creates the error for an operation that the cloud does not support.
    #[must_use]
    pub fn unsupported(operation: ApiOperation) -> Self {
        Self::new(ErrorKind::Unsupported, operation)
    }

    /// Sets the subject, such as an instance or image.
    #[must_use]
    pub fn on(mut self, subject: impl fmt::Display) -> Self {
        self.0.subject = Some(subject.to_string());
        self
    }

    /// Sets the reason from the cloud's message, cut to one line of bounded length.
    #[must_use]
    pub fn because(mut self, message: impl AsRef<str>) -> Self {
        let message = one_line(message.as_ref());
        self.0.message = (!message.is_empty()).then_some(message);
        self
    }

    /// Sets the cloud's code, such as `InternalError` or `429 TooManyRequests`.
    #[must_use]
    pub fn with_code(mut self, code: impl AsRef<str>) -> Self {
        self.0.code = Some(one_line(code.as_ref()));
        self
    }

    /// Sets the request id, by which the cloud's operators find the request in their logs.
    #[must_use]
    pub fn with_request_id(mut self, id: impl AsRef<str>) -> Self {
        self.0.request_id = Some(one_line(id.as_ref()));
        self
    }

    /// Sets the time to wait, as requested by the cloud.
    #[must_use]
    pub fn with_retry_after(mut self, pause: impl Into<Option<Duration>>) -> Self {
        self.0.retry_after = pause.into();
        self
    }

    /// Sets the time of the cloud's clock in its response. It is not displayed.
    #[must_use]
    pub fn with_answered(mut self, date: impl Into<Option<SystemTime>>) -> Self {
        self.0.answered = date.into();
        self
    }

    /// Sets the part of the message that the cloud has encoded. It is not displayed.
    #[must_use]
    pub fn with_encoded(mut self, encoded: impl Into<Option<String>>) -> Self {
        self.0.encoded = encoded.into();
        self
    }

    /// Marks that the cloud cannot be reached and that the caller does not want to wait for it.
    #[must_use]
    pub fn given_up(mut self) -> Self {
        self.0.given_up = true;
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Replaces the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The kind of the last answer alone. An [ambiguous](ErrorKind::Ambiguous) error may have one that is clear, which says
    /// nothing of what became of an earlier attempt: it is for people, and not to decide by.
    #[must_use]
    pub fn answer_kind(&self) -> ErrorKind {
        self.0.answer
    }

    /// The operation.
    #[must_use]
    pub fn operation(&self) -> ApiOperation {
        self.0.operation
    }

    /// The subject of the operation.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The cloud's message.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// The cloud's code.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The cloud's request id, or the client's if there was no response.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// The time to wait, as requested by the cloud.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// True if it makes sense to repeat the request later: its [kind](ErrorKind::is_transient) is transient, and the caller
    /// is willing to wait.
    #[must_use]
    pub fn is_worth_a_retry(&self) -> bool {
        self.0.kind.is_transient() && !self.0.given_up
    }

    /// True if the cloud cannot be reached and the caller does not want to wait for it.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.0.given_up
    }

    /// The time of the cloud's clock in its response.
    #[must_use]
    pub fn answered(&self) -> Option<SystemTime> {
        self.0.answered
    }

    /// The part of the message that the cloud has encoded, and decodes on request.
    #[must_use]
    pub fn encoded(&self) -> Option<&str> {
        self.0.encoded.as_deref()
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

/// The kind of a failure, common to all clouds.
///
/// The enum is exhaustive on purpose, so that a new kind has to be considered wherever errors are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// Authentication failed because of the key, the token or the clock.
    Unauthenticated,
    /// The caller is authenticated but not authorized.
    Forbidden,
    /// The resource does not exist, or the caller may not see it.
    NotFound,
    /// The state of the resource does not allow it now.
    Conflict,
    /// The instance of this launch token is gone. List the instances again, and launch with a new token.
    TokenUsedUp,
    /// The request is invalid.
    Invalid,
    /// The limit of the tenancy or project is reached.
    Quota,
    /// The cloud has no machine of this shape in this zone.
    Capacity,
    /// Too many requests. The request was refused and had no effect.
    Throttled,
    /// The cloud could not be reached or failed. The request had no effect.
    Unavailable,
    /// It is unknown whether the request was carried out.
    Ambiguous,
    /// The response was not understood.
    Protocol,
    /// The cloud does not support the operation.
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

    /// True if the same request may succeed later. Repeat it only if it is idempotent or had no effect
    /// ([`may_have_happened`](Self::may_have_happened)).
    #[must_use]
    pub fn is_transient(self) -> bool {
        match self {
            Self::Throttled
            | Self::Unavailable
            | Self::Ambiguous
            | Self::Conflict
            // For example a truncated response, or a load balancer's page.
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

    /// True if another zone or shape may have capacity.
    #[must_use]
    pub fn is_about_the_place(self) -> bool {
        matches!(self, Self::Quota | Self::Capacity)
    }

    /// True if the cloud rejects the caller. Repeating the request may lock the account.
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

/// Removes control characters from external text and bounds its length.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().nth(LONGEST_MESSAGE).is_none() {
        return line;
    }
    line.chars().take(LONGEST_MESSAGE).chain(['…']).collect()
}
