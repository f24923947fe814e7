//! slurm.conf as text that is given back byte for byte.

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

/// A slurm.conf, read without losing a byte.
///
/// Parsing cannot fail: it only finds where Slurm's lines begin and end (a line ends where the newline is not
/// escaped). What a line means is asked line by line with [`Line::read`], which can fail. Any bytes will do, but
/// values are only given out when they are UTF-8.
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

/// Where a logical line begins: its first byte, and its number among the physical lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    offset: usize,
    number: usize,
}

impl Document {
    /// Reads any text.
    #[must_use]
    pub fn parse(text: impl Into<Vec<u8>>) -> Self {
        let bytes = text.into();
        let lines = starts(&bytes);
        Self { name: Arc::from("slurm.conf"), bytes, lines }
    }

    /// Gives the document the name that errors call it by; without, it is `slurm.conf`.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Arc::from(name);
        self
    }

    /// The name errors call it by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, byte for byte.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The lines as Slurm counts them: with their continuations, comments and blank ones included.
    #[must_use]
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> {
        self.lines.iter().enumerate().map(|(index, start)| {
            let end = self.lines.get(index + 1).map_or(self.bytes.len(), |next| next.offset);
            Line { document: self, range: start.offset..end, number: start.number }
        })
    }

    /// The value of a parameter; given twice, the later counts, as in Slurm. `SlurmctldHost` means more when given
    /// twice: see [`get_all`](Document::get_all).
    ///
    /// Lines that do not parse are passed over, and files that this one includes are not looked into:
    /// [`Config`](crate::Config) does both.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<String> {
        self.ranges(key).last().and_then(|(line, range)| line.parameter(range))
    }

    /// All values of a parameter in the order given, such as the controllers of `SlurmctldHost`.
    pub fn get_all(&self, key: &str) -> impl Iterator<Item = String> {
        self.ranges(key).filter_map(|(line, range)| line.parameter(range))
    }

    /// The lines that give a parameter its value, and where that stands.
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

    /// Puts `text` in the place of `range`, and looks for the lines anew.
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
    /// Writes every byte; what is not UTF-8 cannot pass through here and becomes `�`: see
    /// [`as_bytes`](Document::as_bytes).
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

    /// The text with comment, continuations and newline.
    #[must_use]
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.raw())
    }

    /// What the line says.
    pub fn read(&self) -> Result<Statement<'a>> {
        statement::read(self)
    }

    /// The document that it is a line of.
    pub(crate) fn document(&self) -> &'a Document {
        self.document
    }

    /// The value in this range, if it is that of a parameter, and UTF-8.
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
