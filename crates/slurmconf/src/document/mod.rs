//! slurm.conf as a lossless document.

mod edit;
mod lex;
mod statement;

pub use edit::Markers;
pub(crate) use edit::encoded;
#[cfg(feature = "generate")]
pub(crate) use edit::written;
pub use statement::{Definition, DefinitionKind, Pair, Statement};

use crate::error::{Error, Location, Problem, Result};
use std::{borrow::Cow, fmt, ops::Range, sync::Arc};

/// A slurm.conf as a lossless document.
///
/// Parsing cannot fail: it only splits the text into Slurm's lines, which end at a newline that is not escaped.
/// [`Line::read`] parses a line and can fail. Any bytes are accepted; values are returned only if they are UTF-8.
///
/// ```
/// use slurmconf::Document;
///
/// let text = "ClusterName=hpc   # ours\r\nSuspendTime=600 # ten minutes\r\n";
/// let mut conf = Document::parse(text);
/// assert_eq!(conf.to_string(), text);
///
/// conf.set("suspendtime", "900")?;
/// assert_eq!(conf.to_string(), "ClusterName=hpc   # ours\r\nSuspendTime=900 # ten minutes\r\n");
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    name: Arc<str>,
    bytes: Vec<u8>,
    lines: Vec<Start>,
}

/// The start of a logical line: its first byte, and the number of its first physical line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    offset: usize,
    number: usize,
}

impl Document {
    /// Parses any text.
    #[must_use]
    pub fn parse(text: impl Into<Vec<u8>>) -> Self {
        let bytes = text.into();
        let lines = starts(&bytes);
        Self { name: Arc::from("slurm.conf"), bytes, lines }
    }

    /// Sets the name that errors call the document by, `slurm.conf` by default.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Arc::from(name);
        self
    }

    /// The name that errors call the document by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, byte for byte.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All lines with their continuations, comments and blank lines included.
    #[must_use]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> {
        self.lines.iter().enumerate().map(|(index, start)| {
            let end = self.lines.get(index + 1).map_or(self.bytes.len(), |next| next.offset);
            Line { document: self, range: start.offset..end, number: start.number }
        })
    }

    /// The value of a parameter, the last one if it is repeated. `SlurmctldHost` may be repeated: see
    /// [`get_all`](Document::get_all).
    ///
    /// Invalid lines and includes are ignored; [`Config`](crate::Config) handles both.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        self.ranges(key).last().and_then(|(line, range)| line.parameter(range))
    }

    /// All values of a repeated parameter, such as `SlurmctldHost`, in order.
    pub fn get_all(&self, key: &str) -> impl Iterator<Item = String> {
        self.ranges(key).filter_map(|(line, range)| line.parameter(range))
    }

    /// The lines that set a parameter, and the ranges of its values.
    fn ranges(&self, key: &str) -> impl Iterator<Item = (Line<'_>, Range<usize>)> {
        self.lines().filter_map(move |line| {
            let range = statement::value_range(&line, key)?;
            Some((line, range))
        })
    }

    pub(crate) fn error(&self, offset: usize, problem: Problem) -> Error {
        let after = self.lines.partition_point(|start| start.offset <= offset);
        let line = after.checked_sub(1).and_then(|index| self.lines.get(index));
        let from = line.map_or((0, 1), |start| (start.offset, start.number));
        Error::new(Location::at(&self.name, &self.bytes, offset, from), problem)
    }

    /// Replaces a range by `text`.
    fn replace(&mut self, range: Range<usize>, text: &str) {
        self.bytes.splice(range, text.bytes());
        self.lines = starts(&self.bytes);
    }
}

fn starts(bytes: &[u8]) -> Vec<Start> {
    let mut lines = Vec::new();
    let (mut offset, mut number) = (0, 1);
    while offset < bytes.len() {
        lines.push(Start { offset, number });
        let (length, count) = lex::logical_line(bytes.get(offset..).unwrap_or_default());
        offset += length;
        number += count;
    }
    lines
}

impl fmt::Display for Document {
    /// Writes the text; bytes that are not UTF-8 become `�`, unlike in [`as_bytes`](Document::as_bytes).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

/// One line of a document, continuations included.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    document: &'a Document,
    range: Range<usize>,
    number: usize,
}

impl<'a> Line<'a> {
    /// The number of its first physical line, from 1.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The text with comments, continuations and newline.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.raw())
    }

    /// Parses the line.
    pub fn read(&self) -> Result<Statement<'a>> {
        statement::read(self)
    }

    /// The document of the line.
    pub(crate) fn document(&self) -> &'a Document {
        self.document
    }

    /// The value of a parameter in this range, if it is UTF-8.
    fn parameter(&self, range: Range<usize>) -> Option<String> {
        std::str::from_utf8(self.document.bytes.get(range)?).ok()?;
        match self.read() {
            Ok(Statement::Parameter(pair)) => Some(pair.value.into_owned()),
            Ok(Statement::Blank | Statement::Include(_) | Statement::Definition(_)) | Err(_) => {
                None
            }
        }
    }

    /// An error about the line as a whole.
    pub(crate) fn problem(&self, problem: Problem) -> Error {
        self.error(self.range.start, problem)
    }

    fn raw(&self) -> &'a [u8] {
        self.document.bytes.get(self.range.clone()).unwrap_or_default()
    }

    fn error(&self, offset: usize, problem: Problem) -> Error {
        self.document.error(offset, problem)
    }
}
