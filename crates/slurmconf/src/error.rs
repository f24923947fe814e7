//! What can be wrong with a file, and where.

use std::{fmt, io, path::Path, sync::Arc};

/// A place in a text somebody wrote: file, line, column, and the line itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file's name as the caller gave it.
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The line, without its end.
    pub excerpt: String,
}

impl Location {
    /// The place of byte `offset` in `text`; past the end means the end.
    ///
    /// `from` is the start of a line at or before it, and the line's number: lines are counted from there.
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

/// A file that cannot be read as what it should be.
///
/// Prints `file:line:column: what is wrong`, then the line with a mark under the spot.
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

    /// Where it is, unless it is about no place in a text.
    #[must_use]
    pub fn location(&self) -> Option<&Location> {
        self.0.location.as_ref()
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.0.problem
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
#[non_exhaustive]
pub enum Problem {
    /// Text that is no `key=value`.
    #[error("not key=value")]
    NotKeyValue,
    /// More after the one parameter that such a line takes.
    #[error("text after the value of {key}: a line takes one parameter")]
    LeftOver {
        /// The parameter.
        key: String,
    },
    /// Text that should be one line of a kind, and is none or several.
    #[error("not one line of this kind")]
    NotOneLine,
    /// A key, a path or a name in some other encoding.
    #[error("the value of {key} is not UTF-8")]
    NotUtf8 {
        /// The key.
        key: String,
    },
    /// A value that would not read back as itself.
    #[error("{value:?} cannot be written as a value of {key}")]
    Unwritable {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A parameter to be set that is there more than once, where each counts.
    #[error("{key} is there {count} times, each with a meaning of its own")]
    Repeated {
        /// The key.
        key: String,
        /// How often.
        count: usize,
    },
    /// A host list that does not parse.
    #[error("bad host list in {key}")]
    BadHostlist {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: hostlist::ParseError,
    },
    /// A number that is none, or too large.
    #[error("bad number in {key}: {value:?}")]
    BadNumber {
        /// The key.
        key: String,
        /// The text.
        value: String,
    },
    /// A truth value that is none.
    #[error("bad truth value in {key}: {value:?}; YES or NO")]
    BadTruth {
        /// The key.
        key: String,
        /// The text.
        value: String,
    },
    /// An `Include` with a pattern; Slurm does not expand one.
    #[error("Include with a pattern: Slurm takes one file name")]
    IncludePattern,
    /// An `Include` of a file that is being read already.
    #[error("Include goes round in a circle: {file} is being read already")]
    IncludeLoop {
        /// The file.
        file: String,
    },
    /// Includes in includes in includes.
    #[error("Include nested more than {0} deep")]
    IncludeDepth(usize),
    /// Includes of more files than anyone has.
    #[error("Include of more than {0} files in all")]
    IncludeFiles(usize),
    /// A file that cannot be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// Limits in which nothing stands, be it none.
    #[error("{0} says nothing; write {{}} for no nodes at all")]
    NothingSaid(String),
    /// A marker that should be there once and is not there.
    #[error("{file} has no line {marker:?}")]
    NoMarker {
        /// The file.
        file: String,
        /// The marker.
        marker: String,
    },
    /// A marker that should be there once and is there again.
    #[error("a second line {0:?}")]
    TwoMarkers(String),
    /// The end before the start.
    #[error("{0:?} stands before the section's start")]
    MarkersSwapped(String),
    /// YAML that does not parse.
    #[error("bad YAML")]
    Yaml(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// YAML that parses, with something else than should be there.
    #[error("{what}: expected {expected}, found {found}")]
    Expected {
        /// Whose value it is.
        what: String,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A key under a mapping that has no such key.
    #[error("{what} has no key {key:?}{}", nearest(.near.as_ref()))]
    UnknownKey {
        /// The mapping.
        what: String,
        /// The key.
        key: String,
        /// The known key that looks most like it.
        near: Option<String>,
    },
    /// A mapping without a key it must have.
    #[error("{what} lacks {key:?}")]
    MissingKey {
        /// The mapping.
        what: String,
        /// The key.
        key: &'static str,
    },
    /// A shape without its availability domains, most often because they are not indented.
    #[error("{0} has no counts; lines that belong to it must be indented")]
    NoCounts(String),
    /// An availability domain in the place of a shape.
    #[error("{0} is not the name of a shape; indent the availability domains under their shape")]
    DomainAsShape(i64),
    /// A count outside its bounds.
    #[error("{what}: {count} is not between {least} and {most}")]
    OutOfBounds {
        /// Whose count.
        what: String,
        /// The count.
        count: i64,
        /// The least it may be.
        least: u32,
        /// The most it may be.
        most: u32,
    },
    /// A shape nobody knows.
    #[error("unknown shape {name:?}{}", nearest(.near.as_ref()))]
    UnknownShape {
        /// The name.
        name: String,
        /// The known shape that looks most like it.
        near: Option<String>,
    },
    /// A name that none of those to choose from has.
    #[error("unknown {what} {name:?}{}", nearest(.near.as_ref()))]
    UnknownName {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The known name that looks most like it.
        near: Option<String>,
    },
    /// A word that is none of the few to choose from.
    #[error("{what} is {found:?}, and may be: {known}")]
    NotOneOf {
        /// Whose value it is.
        what: String,
        /// The word.
        found: String,
        /// The words to choose from.
        known: String,
    },
    /// A name that would not be one word of a node name, a feature or a partition.
    #[error("{name:?} is no word of letters, digits, '.', '-' and '_', or a reserved one")]
    BadName {
        /// The name.
        name: String,
    },
    /// Two entries that would give one name to two nodes.
    #[error("{first:?} and {second:?} would both make nodes named {stem}…")]
    SameNames {
        /// One entry.
        first: String,
        /// The other.
        second: String,
        /// What the names begin with.
        stem: String,
    },
    /// Two entries that would be one node group.
    #[error("{first:?} and {second:?} would both be the node group {label}")]
    SameNodeGroup {
        /// One entry.
        first: String,
        /// The other.
        second: String,
        /// The node group.
        label: String,
    },
    /// A version text that names no version.
    #[error("{0:?} is no Slurm version such as 24.11.5")]
    BadVersion(String),
    /// Arguments for a program that Slurm starts with none.
    #[error("Slurm {version} starts {key} without arguments; name a script that adds them")]
    ProgramArguments {
        /// The parameter.
        key: &'static str,
        /// The version.
        version: crate::SlurmVersion,
    },
    /// A line outside the section says which nodes are never stopped, and not all that are always there.
    #[error(
        "SuspendExcNodes={said} outside the markers leaves out {nodes}, which are to be there always: slurmctld would \
         stop them when they are idle; write SuspendExcNodes={line} in its place"
    )]
    PersistentNodesSuspendable {
        /// What the line says.
        said: String,
        /// The nodes that it leaves out.
        nodes: hostlist::Hostlist,
        /// What it should say.
        line: String,
    },
}

fn nearest(near: Option<&String>) -> String {
    near.map(|near| format!("; nearest is {near:?}")).unwrap_or_default()
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The name a file goes by in errors.
pub(crate) fn file_name(path: &Path) -> Arc<str> {
    Arc::from(path.to_string_lossy())
}
