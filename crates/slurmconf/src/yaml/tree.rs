//! A serde deserializer over a YAML tree.

use super::{Source, Value, YamlNode};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer as _, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use std::cell::RefCell;
use std::fmt::{self, Display};

/// Errors and known keys, recorded while a tree is read.
pub(super) struct Notes<'n> {
    source: &'n Source<'n>,
    left_out: Vec<&'n YamlNode>,
    /// The keys that the type of the top mapping knows.
    pub(super) known: RefCell<Vec<&'static str>>,
    /// Unknown keys below the top mapping.
    pub(super) warnings: RefCell<Vec<crate::Error>>,
}

impl<'n> Notes<'n> {
    pub(super) fn new(source: &'n Source<'n>) -> Self {
        Self {
            source,
            left_out: Vec::new(),
            known: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    /// From now on, treats the node as absent.
    pub(super) fn leave_out(&mut self, node: &'n YamlNode) {
        self.left_out.push(node);
        self.warnings.take();
    }

    fn has(&self, node: &YamlNode) -> bool {
        !self.left_out.iter().any(|out| std::ptr::eq(*out, node))
    }
}

/// An error of a value.
#[derive(Debug)]
pub(super) enum Wrong<'n> {
    /// What was expected of the value that is being read.
    Expected(String),
    /// An error with its position, about this node.
    At(crate::Error, &'n YamlNode),
}

impl<'n> Wrong<'n> {
    /// The error with its position: this node's, unless it is about one within.
    pub(super) fn at(
        self,
        source: &Source<'_>,
        key: &str,
        node: &'n YamlNode,
    ) -> (crate::Error, &'n YamlNode) {
        match self {
            Self::Expected(expected) => (source.expected(key, &expected, node), node),
            Self::At(error, node) => (error, node),
        }
    }
}

impl Display for Wrong<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(expected) => write!(f, "expected {expected}"),
            Self::At(error, _) => error.fmt(f),
        }
    }
}

impl std::error::Error for Wrong<'_> {}

impl de::Error for Wrong<'_> {
    fn custom<T: Display>(expected: T) -> Self {
        Self::Expected(expected.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        // In YAML's terms.
        let expected = expected.to_string();
        Self::custom(match expected.as_str() {
            "a boolean" => "true or false",
            "a map" => "a mapping",
            "a sequence" => "a list",
            other => other,
        })
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(expected)
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::Expected(format!("one of {}", known.join(", ")))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Expected(format!("{field} once"))
    }
}

/// A node and its key.
#[derive(Clone, Copy)]
pub(super) struct Tree<'t, 'n> {
    notes: &'t Notes<'n>,
    key: &'t str,
    node: &'n YamlNode,
    top: bool,
}

impl<'t, 'n> Tree<'t, 'n> {
    pub(super) fn top(notes: &'t Notes<'n>, file: &'t str, root: &'n YamlNode) -> Self {
        Self { notes, key: file, node: root, top: true }
    }

    fn under(notes: &'t Notes<'n>, key: &'t str, node: &'n YamlNode) -> Self {
        Self { notes, key, node, top: false }
    }

    /// Reads the value. An error without a position gets that of this node.
    fn read<'de, T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Wrong<'n>> {
        let Self { notes, key, node, .. } = self;
        seed.deserialize(self).map_err(|wrong| {
            let (error, node) = wrong.at(notes.source, key, node);
            Wrong::At(error, node)
        })
    }

    /// A string that is not empty. A whole number is accepted.
    fn text(self) -> Result<String, Wrong<'n>> {
        let text = self.notes.source.text(self.key, self.node).ok();
        text.filter(|text| !text.is_empty()).ok_or_else(|| de::Error::custom("a string"))
    }

    fn items(self, items: &'n [YamlNode]) -> Items<'t, 'n> {
        Items { tree: self, left: items.iter() }
    }

    fn entries(self, entries: &'n [(YamlNode, YamlNode)]) -> Result<Entries<'t, 'n>, Wrong<'n>> {
        let Self { notes, key: what, .. } = self;
        let mut pairs = Vec::new();
        for (key, value) in entries.iter().filter(|(key, value)| notes.has(key) && notes.has(value))
        {
            let name = notes.source.text(what, key).map_err(|error| Wrong::At(error, key))?;
            pairs.push((name, value));
        }
        Ok(Entries { notes, left: pairs.into_iter(), value: None })
    }
}

impl<'de, 'n> Deserializer<'de> for Tree<'_, 'n> {
    type Error = Wrong<'n>;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong<'n>> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(truth) => visitor.visit_bool(*truth),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(self.items(items)),
            Value::Map(entries) => visitor.visit_map(self.entries(entries)?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong<'n>> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong<'n>> {
        let number = self.node.integer().ok_or_else(|| de::Error::custom("a whole number"))?;
        visitor.visit_i64(number)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong<'n>> {
        visitor.visit_string(self.text()?)
    }

    /// A key without a value, or with an empty one, counts as absent.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong<'n>> {
        let Self { notes, key, node, top } = self;
        let entries = notes.source.map(key, node).map_err(|error| Wrong::At(error, node))?;
        if top {
            notes.known.borrow_mut().extend(fields);
        } else {
            notes.warnings.borrow_mut().extend(notes.source.unknown_keys(key, entries, fields));
        }
        let absent = |node: &YamlNode| {
            matches!(&node.value, Value::Text(text) if text.is_empty()) || node.is_null()
        };
        let field = |name: &'static str| {
            let (_, value) = entries.iter().find(|(key, _)| notes.source.is_key(key, name))?;
            (notes.has(value) && !absent(value)).then(|| (name.to_owned(), value))
        };
        let pairs: Vec<_> = fields.iter().copied().filter_map(field).collect();
        visitor.visit_map(Entries { notes, left: pairs.into_iter(), value: None })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong<'n>> {
        let text = self.text()?;
        let text: StrDeserializer<'_, Wrong<'n>> = text.as_str().into_deserializer();
        visitor.visit_enum(text)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u64 u128 f32 f64 char str bytes byte_buf unit unit_struct newtype_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items<'t, 'n> {
    tree: Tree<'t, 'n>,
    left: std::slice::Iter<'n, YamlNode>,
}

impl<'de, 'n> SeqAccess<'de> for Items<'_, 'n> {
    type Error = Wrong<'n>;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Wrong<'n>> {
        let Tree { notes, key, .. } = self.tree;
        let item = self.left.find(|item| notes.has(item));
        item.map(|item| Tree::under(notes, key, item).read(seed)).transpose()
    }
}

struct Entries<'t, 'n> {
    notes: &'t Notes<'n>,
    left: std::vec::IntoIter<(String, &'n YamlNode)>,
    value: Option<(String, &'n YamlNode)>,
}

impl<'de, 'n> MapAccess<'de> for Entries<'_, 'n> {
    type Error = Wrong<'n>;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Wrong<'n>> {
        self.value = self.left.next();
        let Some((key, _)) = &self.value else { return Ok(None) };
        seed.deserialize(key.clone().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong<'n>> {
        let (key, node) = self.value.take().ok_or_else(|| de::Error::custom("a value"))?;
        Tree::under(self.notes, &key, node).read(seed)
    }
}
