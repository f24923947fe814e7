//! The values of one mapping, with what is wrong about them collected.

use slurmconf::{
    Error, Result,
    yaml::{Node, Source, Value},
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Reads one mapping by its keys; a value that is wrong counts as not there, and is an error at the end.
pub(super) struct Reader<'a> {
    source: &'a Source<'a>,
    what: String,
    at: &'a Node,
    entries: &'a [(Node, Node)],
    errors: Vec<Error>,
    warnings: Vec<Error>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a Source<'a>, what: &str, node: &'a Node) -> Result<Self> {
        let entries = source.map(what, node)?;
        let what = what.to_owned();
        Ok(Self { source, what, at: node, entries, errors: Vec::new(), warnings: Vec::new() })
    }

    /// The items of a list, each with its own reader's errors added to these.
    pub(super) fn list<T>(
        &mut self,
        key: &str,
        read: impl Fn(&mut Reader<'a>) -> Option<T>,
    ) -> Vec<T> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else {
            self.errors.push(self.source.expected(key, "a list", node));
            return Vec::new();
        };
        let mut all = Vec::new();
        for item in items {
            all.extend(self.inner(key, item, &read).flatten());
        }
        all
    }

    /// What a mapping under a key says.
    pub(super) fn map<T>(&mut self, key: &str, read: impl Fn(&mut Reader<'a>) -> T) -> Option<T> {
        let node = self.get(key)?;
        self.inner(key, node, &read)
    }

    fn inner<T>(
        &mut self,
        key: &str,
        node: &'a Node,
        read: &impl Fn(&mut Reader<'a>) -> T,
    ) -> Option<T> {
        match Reader::new(self.source, key, node) {
            Ok(mut inner) => {
                let value = read(&mut inner);
                self.errors.append(&mut inner.errors);
                self.warnings.append(&mut inner.warnings);
                Some(value)
            }
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }

    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let node = self.get(key)?;
        let text = self.source.text(key, node);
        self.keep(text).filter(|text| !text.is_empty())
    }

    /// A text that must be there; an empty one is not.
    pub(super) fn required(&mut self, key: &'static str) -> Option<String> {
        let before = self.errors.len();
        let text = self.text(key);
        if text.is_none() && self.errors.len() == before {
            let at = self.get(key).unwrap_or(self.at);
            self.errors.push(self.source.missing_key(&self.what, at, key));
        }
        text
    }

    /// The words of a command: a list of them, or one text, of which spaces part them.
    pub(super) fn words(&mut self, key: &str) -> Vec<String> {
        match self.get(key).map(|node| &node.value) {
            Some(Value::List(_)) => self.texts(key),
            _ => self
                .text(key)
                .iter()
                .flat_map(|text| text.split_whitespace())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// One text, or a list of them.
    pub(super) fn texts(&mut self, key: &str) -> Vec<String> {
        let Some(node) = self.get(key) else { return Vec::new() };
        let Value::List(items) = &node.value else { return self.text(key).into_iter().collect() };
        let mut all = Vec::new();
        for item in items {
            let text = self.source.text(key, item);
            all.extend(self.keep(text));
        }
        all
    }

    /// All of the mapping, whatever the keys are called: a text under each.
    pub(super) fn all_texts(&mut self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (key, node) in self.pairs() {
            let text = self.source.text(&key, node);
            let empty = text.as_ref().is_ok_and(String::is_empty);
            let text = if empty { Err(self.source.expected(&key, "a text", node)) } else { text };
            all.extend(self.keep(text).map(|text| (key, text)));
        }
        all
    }

    /// The same with a mapping of texts under each.
    pub(super) fn all_maps_of_texts(&mut self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut all = BTreeMap::new();
        for (key, node) in self.pairs() {
            if matches!(node.value, Value::Null) {
                self.errors.push(self.source.expected(&key, "a mapping", node));
                continue;
            }
            let texts = self.inner(&key, node, &Self::all_texts);
            all.extend(texts.map(|texts| (key, texts)));
        }
        all
    }

    /// All keys, as texts, with what is under them.
    fn pairs(&mut self) -> Vec<(String, &'a Node)> {
        let mut pairs = Vec::new();
        for (key, node) in self.entries {
            let text = self.source.text(&self.what, key);
            pairs.extend(self.keep(text).map(|key| (key, node)));
        }
        pairs
    }

    pub(super) fn number(&mut self, key: &str, bounds: (u32, u32)) -> Option<u32> {
        let node = self.get(key)?;
        let number = self.source.number(key, node, bounds);
        self.keep(number)
    }

    pub(super) fn truth(&mut self, key: &str) -> Option<bool> {
        let node = self.get(key)?;
        if let Value::Bool(truth) = node.value {
            return Some(truth);
        }
        self.errors.push(self.source.expected(key, "true or false", node));
        None
    }

    /// A number, whole or not, above 0.
    pub(super) fn rate(&mut self, key: &str) -> Option<f64> {
        let node = self.get(key)?;
        let rate = match node.value {
            Value::Float(rate) => Some(rate),
            _ => node.integer().and_then(|whole| u32::try_from(whole).ok()).map(f64::from),
        };
        let rate = rate.filter(|rate| rate.is_finite() && *rate > 0.0);
        if rate.is_none() {
            self.errors.push(self.source.expected(key, "a number above 0", node));
        }
        rate
    }

    /// Seconds, or a number with `s`, `m` or `h`.
    pub(super) fn duration(&mut self, key: &str) -> Option<Duration> {
        let node = self.get(key)?;
        let duration = self.source.text(key, node).ok().as_deref().and_then(duration);
        if duration.is_none() {
            self.errors.push(self.source.expected(key, "a time such as 90, 90s, 15m or 2h", node));
        }
        duration
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &str, known: &[(&str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let text = self.source.text(key, node);
        let word = self.keep(text)?;
        let found = known.iter().find(|(name, _)| *name == word).map(|&(_, value)| value);
        if found.is_none() {
            let names: Vec<_> = known.iter().map(|&(name, _)| name).collect();
            let expected = format!("one of {}", names.join(", "));
            self.errors.push(self.source.expected(key, &expected, node));
        }
        found
    }

    /// Warns of each key that is none of these.
    pub(super) fn warn_unknown(&mut self, known: &[&str]) {
        self.warnings.extend(self.source.unknown_keys(&self.what, self.entries, known));
    }

    /// Errors and warnings, each in the order of the file.
    pub(super) fn into_findings(self) -> (Vec<Error>, Vec<Error>) {
        let Self { mut errors, mut warnings, .. } = self;
        for findings in [&mut errors, &mut warnings] {
            sort(findings);
        }
        (errors, warnings)
    }

    /// True if something was wrong so far.
    pub(super) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The value under a key; null is none.
    fn get(&self, key: &str) -> Option<&'a Node> {
        Node::get(self.entries, key).filter(|node| !matches!(node.value, Value::Null))
    }

    fn keep<T>(&mut self, value: Result<T>) -> Option<T> {
        value.map_err(|error| self.errors.push(error)).ok()
    }
}

/// Puts findings in the order of the file.
pub(super) fn sort(findings: &mut [Error]) {
    findings.sort_by_key(|error| error.location().map(|place| (place.line, place.column)));
}

/// Seconds, or a number with its unit.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split)?;
    let scale = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.parse::<u32>().ok().map(|number| Duration::from_secs(u64::from(number) * scale))
}
