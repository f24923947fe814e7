//! What can be wrong with a file, and where.

use crate::version::SlurmVersion;
use hostlist::Hostlist;
use std::{fmt, io, path::Path, sync::Arc};

/// A position in a file, with the line it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name as the caller gave it.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The text of the line.
    pub excerpt: String,
}

impl Location {
    /// The location of byte `offset` in `text`; past the end means the end. Lines are counted from `from`: the start
    /// of a line at or before `offset`, and its number.
    pub(crate) fn at(
        file: &Arc<str>,
        text: &[u8],
        offset: usize,
        (from, number): (usize, usize),
    ) -> Self {
        let text = text.get(from..).unwrap_or_default();
        let before = text.get(..offset.saturating_sub(from)).unwrap_or(text);
        let lines = before.split(|&byte| byte == b'\n').count();
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        let column = chars(before.get(start..).unwrap_or_default()) + 1;
        let rest = text.get(start..).unwrap_or_default();
        let whole = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let excerpt = String::from_utf8_lossy(whole).trim_end().to_owned();
        Self { file: Arc::clone(file), line: number.saturating_sub(1) + lines, column, excerpt }
    }
}

fn chars(bytes: &[u8]) -> usize {
    String::from_utf8_lossy(bytes).chars().count()
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// An invalid configuration file, or a configuration that cannot be generated.
///
/// Prints `file:line:column: message`, then the line with a caret under the column.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    location: Option<Location>,
    problem: Problem,
}

impl Error {
    pub(crate) fn new(location: Location, problem: Problem) -> Self {
        Self(Box::new(Inner { location: Some(location), problem }))
    }

    pub(crate) fn into_problem(self) -> Problem {
        self.0.problem
    }

    /// A `SuspendExcNodes` outside the generated section that omits persistent nodes; `line` is the value it needs.
    #[must_use]
    pub fn persistent_nodes_suspendable(said: String, nodes: Hostlist, line: String) -> Self {
        Problem::PersistentNodesSuspendable { said, nodes, line }.into()
    }

    /// Where the error is, if it is about a position in a file.
    #[must_use]
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// The name of the shape, if the error is that no such shape is known.
    #[must_use]
    pub fn unknown_shape(&self) -> Option<&str> {
        let Problem::UnknownShape { name, .. } = &self.0.problem else { return None };
        Some(name)
    }

    /// True if the file has no marker for the generated section.
    #[must_use]
    pub fn is_missing_marker(&self) -> bool {
        matches!(self.0.problem, Problem::NoMarker { .. })
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self(Box::new(Inner { location: None, problem }))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(location) = &self.0.location else {
            return self.0.problem.fmt(f);
        };
        let (number, indent) = (location.line, location.column.saturating_sub(1));
        let margin = number.to_string().len();
        writeln!(f, "{location}: {}", self.0.problem)?;
        writeln!(f, " {number} | {}", location.excerpt)?;
        // Tabs are kept, so that the mark stands under its character on any terminal.
        let lead: String = location
            .excerpt
            .chars()
            .take(indent)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(f, " {:margin$} | {lead}^", "")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.problem.source()
    }
}

/// What is wrong, without where.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(
    not(feature = "generate"),
    expect(dead_code, reason = "some are only about limits and shapes")
)]
pub(crate) enum Problem {
    #[error("expected key=value")]
    NotKeyValue,
    #[error("unexpected text after the value of {key}; write one parameter per line")]
    LeftOver { key: String },
    #[error("expected exactly one line of this kind")]
    NotOneLine,
    #[error("the value of {key} is not UTF-8")]
    NotUtf8 { key: String },
    /// A value that would not read back as itself.
    #[error("{value:?} cannot be written as a value of {key}")]
    Unwritable { key: String, value: String },
    /// A parameter to be set that is there more than once, where each counts.
    #[error("{key} is set {count} times, and each value counts")]
    Repeated { key: String, count: usize },
    #[error("invalid host list in {key}")]
    BadHostlist { key: String, source: hostlist::ParseError },
    #[error("{key}: expected a number, found {value:?}")]
    BadNumber { key: String, value: String },
    #[error("{key}: expected YES or NO, found {value:?}")]
    BadTruth { key: String, value: String },
    #[error("Include with a pattern: Slurm takes one file name")]
    IncludePattern,
    #[error("Include loop: {file} includes itself")]
    IncludeLoop { file: String },
    #[error("Include nested more than {0} deep")]
    IncludeDepth(usize),
    #[error("Include of more than {0} files in all")]
    IncludeFiles(usize),
    #[error("cannot read {file}")]
    Unreadable { file: String, source: io::Error },
    #[error("{0} is empty; write {{}} for no nodes at all")]
    NothingSaid(String),
    #[error("{file} has no line {marker:?}")]
    NoMarker { file: String, marker: String },
    #[error("duplicate line {0:?}")]
    TwoMarkers(String),
    #[error("{0:?} comes before the start of the section")]
    MarkersSwapped(String),
    #[error("invalid YAML")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{what}: expected {expected}, found {found}")]
    Expected { what: String, expected: String, found: String },
    #[error("{what}: unknown key {key:?}{}", suggestion(.near.as_ref()))]
    UnknownKey { what: String, key: String, near: Option<String> },
    #[error("{what}: missing key {key:?}")]
    MissingKey { what: String, key: &'static str },
    /// A shape without its availability domains, most often because they are not indented.
    #[error("{0} has no counts; indent the lines that belong to it")]
    NoCounts(String),
    #[error("{0} is not the name of a shape; indent the availability domains under their shape")]
    DomainAsShape(i64),
    #[error("{what}: {count} is not between {least} and {most}")]
    OutOfBounds { what: String, count: i64, least: u32, most: u32 },
    #[error("unknown shape {name:?}{}", suggestion(.near.as_ref()))]
    UnknownShape { name: String, near: Option<String> },
    #[error(
        "a machine of {place} has {lack}, and Slurm drains a node that has less than its line says: let the places of \
        {group} name shapes of at least its size"
    )]
    SmallPlace { group: String, place: String, lack: String },
    #[error("invalid name {name:?}: use letters, digits, '.', '-' and '_', and no reserved word")]
    BadName { name: String },
    #[error("{first:?} and {second:?} would both create nodes named {stem}…")]
    SameNames { first: String, second: String, stem: String },
    #[error("{first:?} and {second:?} would both be the node group {label}")]
    SameNodeGroup { first: String, second: String, label: String },
    #[error("{0:?} is not a Slurm version such as 24.11.5")]
    BadVersion(String),
    #[error("Slurm {version} starts {key} without arguments; name a script that adds them")]
    ProgramArguments { key: &'static str, version: SlurmVersion },
    #[error(
        "SuspendExcNodes={said} outside the markers leaves out the persistent nodes {nodes}: slurmctld would suspend \
         them when idle; write SuspendExcNodes={line} instead"
    )]
    PersistentNodesSuspendable { said: String, nodes: Hostlist, line: String },
}

fn suggestion(near: Option<&String>) -> String {
    near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The name a file goes by in errors.
pub(crate) fn file_name(path: &Path) -> Arc<str> {
    Arc::from(path.to_string_lossy())
}
