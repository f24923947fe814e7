//! Lines of words, some of them `key=value`.

use hostlist::{Hostlist, NodeName};
use std::time::Duration;

/// The words of a line; `"` keeps blanks together.
pub(crate) struct Words(Vec<String>);

impl Words {
    pub(crate) fn new(line: &str) -> Self {
        let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(std::mem::take(&mut word)),
                _ => word.push(letter),
            }
        }
        words.push(word);
        words.retain(|word| !word.is_empty());
        Self(words)
    }

    /// The next word that is not `key=value`.
    pub(crate) fn next(&mut self) -> Option<String> {
        let place = self.0.iter().position(|word| !word.contains('='))?;
        Some(self.0.remove(place))
    }

    /// True if this very word was there.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let place = self.0.iter().position(|word| word == flag);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// The value of a key.
    pub(crate) fn value(&mut self, key: &str) -> Option<String> {
        let start = format!("{key}=");
        let place = self.0.iter().position(|word| word.starts_with(&start))?;
        Some(self.0.remove(place)[start.len()..].to_owned())
    }

    pub(crate) fn number(&mut self, key: &str) -> Option<usize> {
        self.value(key).map(|text| text.parse().unwrap())
    }

    pub(crate) fn time(&mut self, key: &str) -> Option<Duration> {
        self.value(key).map(|text| duration(&text))
    }

    /// Fails on whatever nobody asked for.
    pub(crate) fn end(self) {
        assert!(self.0.is_empty(), "not understood: {:?}", self.0);
    }
}

/// Reads `90s`, `10m` and `2h`.
pub(crate) fn duration(text: &str) -> Duration {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().unwrap();
    match unit {
        "s" => Duration::from_secs(number),
        "m" => Duration::from_mins(number),
        "h" => Duration::from_hours(number),
        _ => panic!("not a duration: {text}"),
    }
}

pub(crate) fn names(list: &str) -> Vec<NodeName> {
    list.parse::<Hostlist>().unwrap().node_names().unwrap()
}

pub(crate) fn name(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}
