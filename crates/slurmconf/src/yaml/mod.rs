//! YAML as a tree in which every node knows its line and column.
//!
//! People write these files by hand and get the structure wrong: a list where a number belongs, a line that is not
//! indented. With a tree, a reader can report every such error with its position and the value found. [`Reader`] fills
//! types from it and continues after each error, where serde alone stops at the first one.
//!
//! ```
//! use slurmconf::yaml::{YamlNode, Source};
//!
//! let source = Source::new("site.yaml", "name: alpha\ncount: many\n");
//! let root = source.read()?;
//! let entries = source.map("site.yaml", &root)?;
//! let count = YamlNode::get(entries, "count").unwrap();
//! let error = source.number("count", count, (0, 10)).unwrap_err();
//! assert!(error.to_string().starts_with("site.yaml:2:8: count: expected a whole number"));
//! # Ok::<(), slurmconf::Error>(())
//! ```

mod duration;
mod reader;
mod tree;

pub use duration::duration;
pub use reader::Reader;

use crate::error::{Error, Location, Problem, Result};
use crate::near::nearest;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location as Mark, Spanned, UserMessageFormatter};
use std::{fmt, sync::Arc};

/// A YAML file, which can be read and which locates errors.
#[derive(Debug)]
pub struct Source<'a> {
    file: Arc<str>,
    text: &'a str,
    lines: Vec<&'a str>,
}

/// A value and where it is in the file.
#[derive(Clone, Debug)]
pub struct YamlNode {
    /// The value.
    pub value: Value,
    mark: Mark,
}

/// A YAML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`, or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// A sequence.
    List(Vec<YamlNode>),
    /// A mapping, in the order written.
    Map(Vec<(YamlNode, YamlNode)>),
}

/// Masks the characters after the scheme of a URL: a password or the whole address may be secret.
fn without_addresses(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some((before, address)) = rest.split_once("://") {
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | '}' | ']');
        let (address, after) = address.split_at(address.find(is_end).unwrap_or(address.len()));
        shown.extend([before, "://"]);
        shown.extend(address.chars().map(|_| '*'));
        rest = after;
    }
    shown + rest
}

/// The parser's message without its excerpt, because [`Error`] prints one.
#[derive(Debug)]
struct Cause(serde_saphyr::Error);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.without_snippet().render_with_formatter(&UserMessageFormatter))
    }
}

impl std::error::Error for Cause {}

impl<'a> Source<'a> {
    /// Creates a source from the name of a file in errors and its text.
    #[must_use]
    pub fn new(file: &str, text: &'a str) -> Self {
        Self { file: Arc::from(file), text, lines: text.lines().collect() }
    }

    /// Reads the one document in the file; an empty file is null.
    pub fn read(&self) -> Result<YamlNode> {
        serde_saphyr::from_str(self.text).map_err(|error| {
            let mark = error.location();
            let problem = Problem::Yaml(Box::new(Cause(error)));
            match mark {
                Some(mark) => Error::new(self.location(mark), problem),
                None => problem.into(),
            }
        })
    }

    /// The entries of a mapping; null has none.
    pub fn map<'n>(&self, what: &str, node: &'n YamlNode) -> Result<&'n [(YamlNode, YamlNode)]> {
        if let Value::Map(entries) = &node.value {
            return Ok(entries);
        }
        if node.is_null() { Ok(&[]) } else { Err(self.expected(what, "a mapping", node)) }
    }

    /// Reads a string. A whole number is accepted, as in `zone: 1`.
    pub fn text(&self, what: &str, node: &YamlNode) -> Result<String> {
        if let Value::Integer(number) = node.value {
            return Ok(number.to_string());
        }
        let Value::Text(text) = &node.value else {
            return Err(self.expected(what, "a string", node));
        };
        Ok(text.clone())
    }

    /// Reads a whole number within bounds, in quotes or not.
    pub fn number(&self, what: &str, node: &YamlNode, bounds: (u32, u32)) -> Result<u32> {
        let Some(count) = node.integer() else {
            // YAML's versions disagree whether `010` is octal, so that it is read as a float.
            let written = self.word(node);
            let octal =
                written.starts_with('0') && written.bytes().all(|byte| byte.is_ascii_digit());
            let expected =
                if octal { "a whole number without leading zeros" } else { "a whole number" };
            return Err(self.expected(what, expected, node));
        };
        let (least, most) = bounds;
        let number = u32::try_from(count).ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            let problem = Problem::OutOfBounds { what: what.to_owned(), count, least, most };
            self.error(node, problem)
        })
    }

    /// The value of a required key. A missing key is an error, located at `at`.
    pub fn required<'n>(
        &self,
        what: &str,
        at: &YamlNode,
        entries: &'n [(YamlNode, YamlNode)],
        key: &'static str,
    ) -> Result<&'n YamlNode> {
        YamlNode::get(entries, key).ok_or_else(|| self.missing_key(what, at, key))
    }

    /// The error that a mapping has no such key, located at `at`.
    #[must_use]
    pub fn missing_key(&self, what: &str, at: &YamlNode, key: &'static str) -> Error {
        self.error(at, Problem::MissingKey { what: what.to_owned(), key })
    }

    /// An error for each key that is not in `known`, with the most similar known key.
    #[must_use]
    pub fn unknown_keys(
        &self,
        what: &str,
        entries: &[(YamlNode, YamlNode)],
        known: &[&str],
    ) -> Vec<Error> {
        let unknown = |(key, _): &(YamlNode, YamlNode)| {
            let name = match &key.value {
                Value::Text(name) if known.contains(&name.as_str()) => return None,
                Value::Text(name) => name.clone(),
                Value::Bool(_) if known.iter().any(|known| self.is_key(key, known)) => return None,
                other => other.to_string(),
            };
            let near = nearest(&name, known.iter().copied()).map(str::to_owned);
            let problem = Problem::UnknownKey { what: what.to_owned(), key: name, near };
            Some(self.error(key, problem))
        };
        entries.iter().filter_map(unknown).collect()
    }

    /// The error that a node is not what was expected, such as `a number`.
    #[must_use]
    pub fn expected(&self, what: &str, expected: &str, node: &YamlNode) -> Error {
        // A float is shown as written: as a number it may look like what was expected.
        let float = matches!(node.value, Value::Float(_));
        let found = if float { self.word(node).to_owned() } else { node.value.to_string() };
        let (what, expected) = (what.to_owned(), expected.to_owned());
        self.error(node, Problem::Expected { what, expected, found })
    }

    pub(crate) fn error(&self, node: &YamlNode, problem: Problem) -> Error {
        Error::new(self.location_of(node), problem)
    }

    pub(crate) fn location_of(&self, node: &YamlNode) -> Location {
        self.location(node.mark)
    }

    fn location(&self, mark: Mark) -> Location {
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        self.at(whole(mark.line()), whole(mark.column()))
    }

    /// An error about the first line in which `find` finds something.
    pub(crate) fn line_error(&self, find: impl Fn(&str) -> Option<Problem>) -> Option<Error> {
        let mut lines = self.lines.iter().zip(1..);
        lines.find_map(|(line, number)| Some(Error::new(self.at(number, 1), find(line)?)))
    }

    fn at(&self, line: usize, column: usize) -> Location {
        let excerpt = without_addresses(self.line(line).trim_end());
        Location { file: Arc::clone(&self.file), line, column, excerpt }
    }

    fn line(&self, number: usize) -> &'a str {
        self.lines.get(number.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// True for the node of this key. YAML 1.1 reads the key `on` as true.
    fn is_key(&self, node: &YamlNode, key: &str) -> bool {
        match &node.value {
            Value::Text(text) => text == key,
            Value::Bool(_) => self.word(node).trim_end_matches(':') == key,
            _ => false,
        }
    }

    /// The first word of a node, as written.
    fn word(&self, node: &YamlNode) -> &'a str {
        let Location { line, column, .. } = self.location_of(node);
        let line = self.line(line);
        let start = line.char_indices().nth(column.saturating_sub(1));
        let rest = start.and_then(|(start, _)| line.get(start..)).unwrap_or_default();
        rest.split([' ', '\t', ',', ']', '}']).next().unwrap_or_default()
    }
}

impl YamlNode {
    /// The value of a key.
    #[must_use]
    pub fn get<'n>(entries: &'n [(Self, Self)], key: &str) -> Option<&'n Self> {
        let is_it = |name: &Self| matches!(&name.value, Value::Text(text) if text == key);
        entries.iter().find(|(name, _)| is_it(name)).map(|(_, value)| value)
    }

    /// True for `null`, and for nothing at all.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The whole number, in quotes or not.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        if let Value::Integer(number) = self.value {
            return Some(number);
        }
        let Value::Text(text) = &self.value else { return None };
        text.trim().parse().ok()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "the boolean {value}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(_) => f.write_str("a list"),
            Self::Map(_) => f.write_str("a mapping"),
        }
    }
}

impl<'de> Deserialize<'de> for YamlNode {
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

    fn shown(node: &YamlNode) -> String {
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
    fn every_node_knows_its_line_and_column() {
        let text = "a.b:\n  1: 2\n  \"3\": true\nc: [x, ~]\nd: -1\ne: 0x10\nf: 'yes'\ng: yes\n";
        let node = Source::new("t", text).read().unwrap();
        let expected = "{\"a.b\"@1:1 {1@2:3 2@2:6, \"3\"@3:3 the boolean true@3:8}@2:3, \
            \"c\"@4:1 [\"x\"@4:5, nothing@4:8]@4:4, \"d\"@5:1 -1@5:4, \"e\"@6:1 16@6:4, \
            \"f\"@7:1 \"yes\"@7:4, \"g\"@8:1 the boolean true@8:4}@1:1";
        assert_eq!(shown(&node), expected);
    }

    #[test]
    fn invalid_yaml_is_reported_where_it_is() {
        for text in ["a: [1\nb: 2\n", "a: 1\na: 2\n", "a: b: c\n", "a: {\n"] {
            let error = Source::new("limits.yaml", text).read().unwrap_err();
            assert!(error.to_string().starts_with("limits.yaml:"), "{error}");
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert_eq!(cause.lines().count(), 1, "{cause}");
        }
    }
}
