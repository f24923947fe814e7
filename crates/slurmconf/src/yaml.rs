//! YAML as a tree in which every node knows its line and column.
//!
//! The files read here are written by hand, and their errors are mostly of form: a list for a number, a line not
//! indented. A tree lets the reader say what it found and where, which typed deserialisation does not.
//!
//! ```
//! use slurmconf::yaml::{Node, Source};
//!
//! let source = Source::new("site.yaml", "name: alpha\ncount: many\n");
//! let root = source.read()?;
//! let entries = source.map("site.yaml", &root)?;
//! let count = Node::get(entries, "count").unwrap();
//! let error = source.number("count", count, (0, 10)).unwrap_err();
//! assert!(error.to_string().starts_with("site.yaml:2:8: count: expected a whole number"));
//! # Ok::<(), slurmconf::Error>(())
//! ```

use crate::error::{Error, Location, Problem, Result};
use crate::near::nearest;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location as Mark, Spanned, UserMessageFormatter};
use std::{fmt, sync::Arc};

/// A YAML file, for its nodes to be reported in.
pub struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
    /// For the places of all entries, each of which would have to look for its line.
    lines: Vec<&'a str>,
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub value: Value,
    mark: Mark,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum Value {
    /// Nothing.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order written.
    Map(Vec<(Node, Node)>),
}

/// The reader's error in words for people, without the excerpt that [`Error`] has already.
#[derive(Debug)]
struct Cause(serde_saphyr::Error);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.without_snippet().render_with_formatter(&UserMessageFormatter))
    }
}

impl std::error::Error for Cause {}

impl<'a> Source<'a> {
    /// The text of a file, and the name that errors call it by.
    #[must_use]
    pub fn new(file: &str, text: &'a str) -> Self {
        Self { file: Arc::from(file), text, lines: text.lines().collect() }
    }

    /// Reads the one document in the file; an empty file is null.
    pub fn read(&self) -> Result<Node> {
        serde_saphyr::from_str(self.text).map_err(|error| {
            let location = error.location();
            let problem = Problem::Yaml(Box::new(Cause(error)));
            match location {
                Some(location) => Error::new(self.location(location), problem),
                None => problem.into(),
            }
        })
    }

    /// The entries of a mapping; null is one without entries.
    pub fn map<'n>(&self, what: &str, node: &'n Node) -> Result<&'n [(Node, Node)]> {
        match &node.value {
            Value::Map(entries) => Ok(entries),
            Value::Null => Ok(&[]),
            Value::Bool(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => Err(self.expected(what, "a mapping", node)),
        }
    }

    /// A text; a number will do, as in `mgmt_shape: 1`.
    pub fn text(&self, what: &str, node: &Node) -> Result<String> {
        match &node.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Integer(number) => Ok(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => {
                Err(self.expected(what, "a text", node))
            }
        }
    }

    /// A whole number between bounds, in quotes or not.
    pub fn number(&self, what: &str, node: &Node, bounds: (u32, u32)) -> Result<u32> {
        let Some(count) = node.integer() else {
            // Octal or decimal: YAML's versions disagree, and the reader makes a float of it.
            let octal = matches!(node.value, Value::Float(_)) && self.word(node).starts_with('0');
            let octal = octal && self.word(node).bytes().all(|byte| byte.is_ascii_digit());
            let plain =
                if octal { "a whole number without leading zeros" } else { "a whole number" };
            return Err(self.expected(what, plain, node));
        };
        let (least, most) = bounds;
        match u32::try_from(count) {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ => {
                let problem = Problem::OutOfBounds { what: what.to_owned(), count, least, most };
                Err(self.error(node, problem))
            }
        }
    }

    /// The value under a key that must be there; without it, the error is about `at`.
    pub fn field<'n>(
        &self,
        (what, at): (&str, &Node),
        entries: &'n [(Node, Node)],
        key: &'static str,
    ) -> Result<&'n Node> {
        let missing = || self.error(at, Problem::MissingKey { what: what.to_owned(), key });
        Node::get(entries, key).ok_or_else(missing)
    }

    /// An error for each key that is none of `known`, with the nearest that is.
    #[must_use]
    pub fn unknown_keys(&self, what: &str, entries: &[(Node, Node)], known: &[&str]) -> Vec<Error> {
        let unknown = |(key, _): &(Node, Node)| {
            let name = match &key.value {
                Value::Text(name) if known.contains(&name.as_str()) => return None,
                Value::Text(name) => name.clone(),
                other => other.to_string(),
            };
            let near = nearest(&name, known.iter().copied()).map(str::to_owned);
            let problem = Problem::UnknownKey { what: what.to_owned(), key: name, near };
            Some(self.error(key, problem))
        };
        entries.iter().filter_map(unknown).collect()
    }

    /// The error that there is something else than should be.
    #[must_use]
    pub fn expected(&self, what: &str, expected: &'static str, node: &Node) -> Error {
        let found = match node.value {
            // As written: as a number it may look like what was expected.
            Value::Float(_) => self.word(node).to_owned(),
            Value::Null
            | Value::Bool(_)
            | Value::Integer(_)
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => node.value.to_string(),
        };
        self.error(node, Problem::Expected { what: what.to_owned(), expected, found })
    }

    /// An error about a node.
    #[must_use]
    pub fn error(&self, node: &Node, problem: Problem) -> Error {
        Error::new(self.location(node.mark), problem)
    }

    /// The word that a node begins with, as written.
    fn word(&self, node: &Node) -> &'a str {
        let whole = |number: u64| usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let line = self.lines.get(whole(node.mark.line())).copied().unwrap_or_default();
        let start = line.char_indices().nth(whole(node.mark.column()));
        let rest = start.and_then(|(start, _)| line.get(start..)).unwrap_or_default();
        rest.split([' ', '\t', ',', ']', '}']).next().unwrap_or_default()
    }

    /// The first line that `look` finds something in: its number from 0, and what was found.
    pub(crate) fn find_line<T>(&self, look: impl Fn(&str) -> Option<T>) -> Option<(usize, T)> {
        self.lines.iter().enumerate().find_map(|(index, line)| Some((index, look(line)?)))
    }

    /// An error about a line, its number from 0.
    pub(crate) fn line_error(&self, index: usize, problem: Problem) -> Error {
        Error::new(self.at(index + 1, 1), problem)
    }

    pub(crate) fn location(&self, mark: Mark) -> Location {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.at(whole(mark.line()), whole(mark.column()))
    }

    fn at(&self, line: usize, column: usize) -> Location {
        let excerpt = self.lines.get(line.saturating_sub(1)).map_or("", |text| text.trim_end());
        Location { file: Arc::clone(&self.file), line, column, excerpt: excerpt.to_owned() }
    }
}

impl Node {
    /// The value under a key.
    #[must_use]
    pub fn get<'n>(entries: &'n [(Self, Self)], key: &str) -> Option<&'n Self> {
        let is_it = |name: &Self| matches!(&name.value, Value::Text(text) if text == key);
        entries.iter().find(|(name, _)| is_it(name)).map(|(_, value)| value)
    }

    /// The number, if it is a whole one or the text of one.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match &self.value {
            Value::Integer(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Null | Value::Bool(_) | Value::Float(_) | Value::List(_) | Value::Map(_) => None,
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "the truth value {value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, mark: spanned.referenced })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> std::result::Result<Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, number: i64) -> std::result::Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> std::result::Result<Value, E> {
        // Beyond i64 there is no count; the largest one is refused by every bound.
        Ok(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn visit_f64<E>(self, number: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> std::result::Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut items: A) -> std::result::Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = items.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(node: &Node) -> String {
        let at = format!("@{}:{}", node.mark.line(), node.mark.column());
        match &node.value {
            Value::Map(entries) => {
                let entries: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| format!("{} {}", shown(key), shown(value)))
                    .collect();
                format!("{{{}}}{at}", entries.join(", "))
            }
            Value::List(items) => {
                format!("[{}]{at}", items.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            value => format!("{value}{at}"),
        }
    }

    #[test]
    fn every_node_has_its_place() {
        let text = "a.b:\n  1: 2\n  \"3\": true\nc: [x, ~]\nd: -1\ne: 0x10\nf: 'yes'\ng: yes\n";
        let node = Source::new("t", text).read().unwrap();
        let expected = "{\"a.b\"@1:1 {1@2:3 2@2:6, \"3\"@3:3 the truth value true@3:8}@2:3, \
            \"c\"@4:1 [\"x\"@4:5, nothing@4:8]@4:4, \"d\"@5:1 -1@5:4, \"e\"@6:1 16@6:4, \
            \"f\"@7:1 \"yes\"@7:4, \"g\"@8:1 the truth value true@8:4}@1:1";
        assert_eq!(shown(&node), expected);
    }

    #[test]
    fn bad_yaml_is_reported_with_its_place() {
        for text in ["a: [1\nb: 2\n", "a: 1\na: 2\n", "a: b: c\n", "a: {\n"] {
            let error = Source::new("limits.yaml", text).read().unwrap_err();
            assert!(error.to_string().starts_with("limits.yaml:"), "{error}");
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(cause.lines().count(), 1, "{cause}");
        }
    }
}
