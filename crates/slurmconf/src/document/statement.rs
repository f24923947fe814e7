//! Parsing a line.

use super::{
    Line,
    lex::{self, Cooked, Span},
};
use crate::error::{Error, Problem, Result};
use std::{borrow::Cow, fmt, ops::Range};

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// Blank, or only a comment.
    Blank,
    /// `Include FILE`.
    Include(Cow<'a, str>),
    /// One `key=value`.
    Parameter(Pair<'a>),
    /// A line of many pairs, such as `NodeName=… CPUs=…`.
    Definition(Definition<'a>),
}

/// A line with attributes, such as `NodeName=…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    /// The kind of line.
    pub kind: DefinitionKind,
    /// The first pair.
    pub name: Pair<'a>,
    /// The other pairs, in order.
    pub attributes: Vec<Pair<'a>>,
}

/// The kind of a line with attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionKind {
    /// `NodeName=`
    Node,
    /// `PartitionName=`
    Partition,
    /// `NodeSet=`
    NodeSet,
    /// `DownNodes=`
    DownNodes,
    /// `FrontendName=`
    Frontend,
    /// `PowerAction=`, since 26.05
    PowerAction,
}

impl DefinitionKind {
    pub(super) fn of(key: &str) -> Option<Self> {
        let all = [
            Self::Node,
            Self::Partition,
            Self::NodeSet,
            Self::DownNodes,
            Self::Frontend,
            Self::PowerAction,
        ];
        all.into_iter().find(|kind| kind.key().eq_ignore_ascii_case(key))
    }

    fn key(self) -> &'static str {
        match self {
            Self::Node => "NodeName",
            Self::Partition => "PartitionName",
            Self::NodeSet => "NodeSet",
            Self::DownNodes => "DownNodes",
            Self::Frontend => "FrontendName",
            Self::PowerAction => "PowerAction",
        }
    }
}

impl fmt::Display for DefinitionKind {
    /// Writes the first key of such a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// One `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The key as written; Slurm ignores its case.
    pub key: Cow<'a, str>,
    /// The value without quotes and escapes; bytes that are not UTF-8, as in a `Reason`, are `�`.
    pub value: Cow<'a, str>,
    /// The range of the value with its quotes in the document.
    pub(super) range: Range<usize>,
}

impl Pair<'_> {
    pub(crate) fn offset(&self) -> usize {
        self.range.start
    }
}

pub(super) fn read<'a>(line: &Line<'a>) -> Result<Statement<'a>> {
    let cooked = Cooked::new(line.raw(), line.range.start);
    if let Some(file) = include(&cooked) {
        return included(line, &cooked, file);
    }
    let Some(first) = lex::pair(&cooked.text, 0) else {
        return Ok(Statement::Blank);
    };
    let fail = |at| line.error(cooked.origin(at).start, Problem::NotKeyValue);
    let first = first.map_err(fail)?;
    let name = pair(line, &cooked, &first)?;
    let mut at = first.end;
    let Some(kind) = DefinitionKind::of(&name.key) else {
        rest_is_blank(line, &cooked, at, &name.key)?;
        return Ok(Statement::Parameter(name));
    };
    let mut attributes = Vec::new();
    while let Some(span) = lex::pair(&cooked.text, at) {
        let span = span.map_err(fail)?;
        at = span.end;
        attributes.push(pair(line, &cooked, &span)?);
    }
    Ok(Statement::Definition(Definition { kind, name, attributes }))
}

/// The range of the value, if the line sets this parameter; the value need not be UTF-8.
pub(super) fn value_range(line: &Line<'_>, key: &str) -> Option<Range<usize>> {
    let cooked = Cooked::new(line.raw(), line.range.start);
    let span = lex::pair(&cooked.text, 0)?.ok()?;
    let found = cooked.text.get(span.key.clone())?;
    let rest = cooked.text.get(span.end..)?;
    let is_it = found.eq_ignore_ascii_case(key.as_bytes())
        && DefinitionKind::of(key).is_none()
        && rest.iter().all(|&byte| lex::is_space(byte))
        && include(&cooked).is_none();
    is_it.then(|| place(&cooked, &span))
}

/// The range of a value with its quotes in the document.
fn place(cooked: &Cooked<'_>, span: &Span) -> Range<usize> {
    let first = cooked.origin(span.value.start - usize::from(span.quoted));
    let last = cooked.origin(span.end - 1);
    first.start..last.end
}

/// The word after `include` at the start of a line, without a blank before it.
fn include(cooked: &Cooked<'_>) -> Option<Range<usize>> {
    let word = b"include";
    let (head, tail) = cooked.text.split_at_checked(word.len())?;
    let blank = tail.iter().take_while(|&&byte| lex::is_space(byte)).count();
    if !head.eq_ignore_ascii_case(word) || blank == 0 {
        return None;
    }
    let start = word.len() + blank;
    let length = tail.iter().skip(blank).take_while(|&&byte| !lex::is_space(byte)).count();
    Some(start..start + length)
}

fn included<'a>(line: &Line<'a>, cooked: &Cooked<'a>, file: Range<usize>) -> Result<Statement<'a>> {
    if file.is_empty() {
        return Err(line.error(line.range.start, Problem::NotKeyValue));
    }
    rest_is_blank(line, cooked, file.end, "Include")?;
    text(line, cooked, &file, "Include").map(Statement::Include)
}

fn rest_is_blank(line: &Line<'_>, cooked: &Cooked<'_>, from: usize, key: &str) -> Result<()> {
    let rest = cooked.text.get(from..).unwrap_or_default();
    match rest.iter().position(|&byte| !lex::is_space(byte)) {
        None => Ok(()),
        Some(blank) => {
            let problem = Problem::LeftOver { key: key.to_owned() };
            Err(line.error(cooked.origin(from + blank).start, problem))
        }
    }
}

fn pair<'a>(line: &Line<'a>, cooked: &Cooked<'a>, span: &Span) -> Result<Pair<'a>> {
    let key = text(line, cooked, &span.key, "key")?;
    let value = match text(line, cooked, &span.value, &key) {
        Err(_) if !names_things(&key) => lossy(cooked, &span.value),
        value => value?,
    };
    Ok(Pair { key, value, range: place(cooked, span) })
}

/// True if the value consists of names, which must not be changed.
fn names_things(key: &str) -> bool {
    let lists = ["Nodes", "NodeAddr", "NodeHostname", "SuspendExcNodes", "SuspendExcParts"];
    DefinitionKind::of(key).is_some() || lists.iter().any(|list| list.eq_ignore_ascii_case(key))
}

/// The text with `�` for bytes that are not UTF-8.
fn lossy<'a>(cooked: &Cooked<'a>, range: &Range<usize>) -> Cow<'a, str> {
    let bytes = cooked.text.get(range.clone()).unwrap_or_default();
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned())
}

fn text<'a>(
    line: &Line<'a>,
    cooked: &Cooked<'a>,
    range: &Range<usize>,
    key: &str,
) -> Result<Cow<'a, str>> {
    let error = || -> Error {
        line.error(cooked.origin(range.start).start, Problem::NotUtf8 { key: key.to_owned() })
    };
    match &cooked.text {
        Cow::Borrowed(bytes) => {
            let bytes = bytes.get(range.clone()).unwrap_or_default();
            std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| error())
        }
        Cow::Owned(bytes) => {
            let bytes = bytes.get(range.clone()).unwrap_or_default().to_vec();
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| error())
        }
    }
}
