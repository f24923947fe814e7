//! serde over a YAML tree: each error has its position, all errors are collected, and unknown keys are warnings.
//!
//! serde stops at the first error. So a wrong value is recorded and skipped, and the rest is read again without it.

use super::tree::{Notes, Tree};
use super::{Source, Value, YamlNode};
use crate::Error;
use serde::Deserialize;

/// A file whose top mapping is read into several types; each takes the keys that it knows.
///
/// ```
/// use slurmconf::yaml::{Reader, Source};
///
/// #[derive(Default, serde::Deserialize)]
/// #[serde(default)]
/// struct Site {
///     name: String,
///     count: u32,
/// }
///
/// let source = Source::new("site.yaml", "name: [a]\ncount: many\ncuont: 3\n");
/// let root = source.read()?;
/// let mut reader = Reader::new(&source, "site.yaml", &root)?;
/// let _: Site = reader.read();
/// let (errors, warnings) = reader.into_findings();
/// assert_eq!(errors.len(), 2);
/// assert!(warnings[0].to_string().contains("did you mean \"count\"?"));
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Debug)]
pub struct Reader<'a> {
    source: &'a Source<'a>,
    file: &'a str,
    root: &'a YamlNode,
    entries: &'a [(YamlNode, YamlNode)],
    known: Vec<&'static str>,
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

impl<'a> Reader<'a> {
    /// Creates a reader of the mapping `root`; `file` is its name in errors.
    pub fn new(source: &'a Source<'a>, file: &'a str, root: &'a YamlNode) -> Result<Self, Error> {
        let entries = source.map(file, root)?;
        let (known, errors, warnings) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { source, file, root, entries, known, errors, warnings })
    }

    /// Reads the keys of this type. A wrong value counts as absent.
    pub fn read<T: for<'de> Deserialize<'de> + Default>(&mut self) -> T {
        let mut notes = Notes::new(self.source);
        loop {
            let wrong = match T::deserialize(Tree::top(&notes, self.file, self.root)) {
                Ok(value) => {
                    self.known.extend(notes.known.take());
                    self.warnings.extend(notes.warnings.take());
                    return value;
                }
                Err(wrong) => wrong,
            };
            let (error, node) = wrong.at(self.source, self.file, self.root);
            self.errors.push(error);
            if std::ptr::eq(node, self.root) {
                return T::default();
            }
            notes.leave_out(node);
        }
    }

    /// Marks the keys of this type as known without reading their values.
    pub fn know<T: for<'de> Deserialize<'de> + Default>(&mut self) {
        let before = self.errors.len();
        let _ = self.read::<T>();
        self.errors.truncate(before);
    }

    /// True if the key exists, with any value.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        YamlNode::get(self.entries, key).is_some_and(|node| !node.is_null())
    }

    /// Records an error if a key is missing or empty.
    pub fn require(&mut self, key: &'static str) {
        let at = match YamlNode::get(self.entries, key) {
            Some(node) if matches!(&node.value, Value::Text(text) if text.is_empty()) => node,
            Some(node) if !node.is_null() => return,
            Some(_) | None => self.root,
        };
        self.errors.push(self.source.missing_key(self.file, at, key));
    }

    /// Errors and warnings, each in the order of the file.
    #[must_use]
    pub fn into_findings(self) -> (Vec<Error>, Vec<Error>) {
        let Self { mut errors, mut warnings, .. } = self;
        warnings.extend(self.source.unknown_keys(self.file, self.entries, &self.known));
        for findings in [&mut errors, &mut warnings] {
            findings.sort_by_key(|error| error.location().map(|at| (at.line, at.column)));
        }
        (errors, warnings)
    }
}
