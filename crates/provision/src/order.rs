//! Nodes in the order that people count in.

use hostlist::NodeName;
use std::cmp::Ordering;

/// Sorted by name and number, each once: `n9` before `n10`.
pub(crate) fn by_number(names: impl IntoIterator<Item = NodeName>) -> Vec<NodeName> {
    let mut names: Vec<NodeName> = names.into_iter().collect();
    names.sort_by(|a, b| compare(a.as_str(), b.as_str()));
    names.dedup();
    names
}

/// By the text before the last number, then that number, then the width it is written in.
pub(crate) fn compare(left: &str, right: &str) -> Ordering {
    let ((stem, digits), (other_stem, other_digits)) = (split(left), split(right));
    let by_stem = stem.cmp(other_stem);
    by_stem.then_with(|| value(digits).cmp(&value(other_digits))).then_with(|| left.cmp(right))
}

/// The text before the trailing digits, and these.
pub(crate) fn split(name: &str) -> (&str, &str) {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    name.split_at(stem.len())
}

/// A number of any length, as something that compares by value.
fn value(digits: &str) -> (usize, &str) {
    let digits = digits.trim_start_matches('0');
    (digits.len(), digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_counted_and_not_spelt() {
        let names = ["n10", "n9", "n010", "m2", "n", "n9", "n2"];
        let sorted = by_number(names.iter().map(|name| NodeName::new(name).unwrap()));
        let sorted: Vec<&str> = sorted.iter().map(NodeName::as_str).collect();
        assert_eq!(sorted, ["m2", "n", "n2", "n9", "n010", "n10"]);
    }
}
