//! Parse errors.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// An invalid expression.
///
/// Prints the reason and the position, then the expression with a caret under it:
///
/// ```
/// let error = "n[5-1]".parse::<hostlist::Hostlist>().unwrap_err();
/// assert_eq!(error.position(), 2);
/// assert_eq!(
///     error.to_string(),
///     "range runs backwards at byte 2\n  n[5-1]\n    ^"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    kind: ErrorKind,
    position: usize,
    excerpt: String,
    caret: usize,
}

/// The reason why an expression is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A `[` has no `]` after it.
    UnclosedBracket,
    /// A bracket, or an item between its commas, is empty.
    EmptyItem,
    /// An item is neither a number nor `low-high`.
    NotANumber,
    /// The low end of a range is above its high end.
    Reversed,
    /// One range holds more than [`MAX_RANGE`](crate::MAX_RANGE) hosts.
    RangeTooLarge,
    /// One bracket holds more than [`MAX_ITEMS`](crate::MAX_ITEMS) items.
    TooManyItems,
    /// A bracket before the last one holds more than [`MAX_PREFIX_VALUES`](crate::MAX_PREFIX_VALUES) values.
    PrefixTooLarge,
    /// The expression stands for more hosts than [`Parser::max_hosts`](crate::Parser::max_hosts) allows.
    TooManyHosts,
    /// The names together are longer than [`Parser::max_bytes`](crate::Parser::max_bytes) allows.
    TooManyBytes,
    /// Text follows the last bracket, which Slurm 22.05 does not read.
    Suffix,
    /// A name would be empty.
    EmptyName,
    /// A NUL byte, which no name can hold.
    Nul,
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The expression is longer than 4 GiB.
    TooLong,
}

impl ErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::UnclosedBracket => "`[` without `]`",
            Self::EmptyItem => "empty item in brackets",
            Self::NotANumber => "not a number or a range `low-high`",
            Self::Reversed => "range runs backwards",
            Self::RangeTooLarge => "more than 65536 hosts in one range",
            Self::TooManyItems => "more than 262144 items in one bracket",
            Self::PrefixTooLarge => "more than 65536 values in a bracket before the last",
            Self::TooManyHosts => "more hosts in all than the caller allows",
            Self::TooManyBytes => "longer names in all than the caller allows",
            Self::Suffix => "text after the last bracket, which Slurm 22.05 does not read",
            Self::EmptyName => "empty host name",
            Self::Nul => "NUL byte",
            Self::NotUtf8 => "not UTF-8",
            Self::TooLong => "expression longer than 4 GiB",
        }
    }
}

/// Characters of the expression shown on either side of the caret.
const CONTEXT: usize = 32;

impl ParseError {
    pub(crate) fn new(kind: ErrorKind, expression: &str, position: usize) -> Self {
        let before = expression.get(..position).unwrap_or(expression);
        let after = expression.get(position..).unwrap_or_default();
        let mut head: Vec<char> = before.chars().rev().take(CONTEXT + 1).map(printable).collect();
        if head.len() > CONTEXT {
            head.truncate(CONTEXT);
            head.push('…');
        }
        let caret = head.len();
        let mut tail: Vec<char> = after.chars().take(CONTEXT + 1).map(printable).collect();
        if tail.len() > CONTEXT {
            tail.truncate(CONTEXT);
            tail.push('…');
        }
        let excerpt = head.into_iter().rev().chain(tail).collect();
        Self { kind, position, excerpt, caret }
    }

    /// The reason.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The byte at which the expression is invalid.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The reason and the byte on one line, without the expression.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{} at byte {}", self.kind.message(), self.position)
    }
}

/// A control character would move the caret away from its place.
fn printable(character: char) -> char {
    if character.is_control() { '␣' } else { character }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, position, excerpt, caret } = self;
        write!(f, "{} at byte {position}\n  {excerpt}\n  {:caret$}^", kind.message(), "")
    }
}

impl core::error::Error for ParseError {}
