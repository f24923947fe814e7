//! The known name that looks most like a mistyped one.

use crate::error::{Error, Problem};

/// The nearest of `known`, if any is near enough to be what was meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let (distance, near) = known
        .into_iter()
        .map(|known| (distance(&wanted, &known.to_ascii_lowercase()), known))
        .min_by_key(|&(distance, _)| distance)?;
    // Half of the name wrong is another name.
    (distance * 2 <= wanted.chars().count().max(2)).then_some(near)
}

/// The value that `name` stands for; a name that none has is an error with the nearest one.
pub(crate) fn named<T: Copy>(
    what: &'static str,
    name: &str,
    known: &[(&'static str, T)],
) -> Result<T, Error> {
    let found = known.iter().find(|(word, _)| *word == name);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let near = nearest(name, known.iter().map(|&(word, _)| word)).map(str::to_owned);
        Problem::UnknownName { what, name: name.to_owned(), near }.into()
    })
}

/// The name of a value; empty if it has none.
pub(crate) fn name_of<T: PartialEq>(value: &T, known: &[(&'static str, T)]) -> &'static str {
    known.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}

/// How many characters must be added, dropped or changed to make one word the other.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (index, a) in from.chars().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        let mut next = vec![left];
        for (b, &above) in to.chars().zip(row.iter().skip(1)) {
            left = (above + 1).min(left + 1).min(diagonal + usize::from(a != b));
            diagonal = above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        let cases = [
            ("", "", 0),
            ("a", "", 1),
            ("kitten", "sitting", 3),
            ("abc", "abc", 0),
            ("ab", "ba", 2),
        ];
        for (a, b, expected) in cases {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_nearest_is_named_only_when_near() {
        let known = ["VM.Standard2.1", "VM.Standard2.16", "BM.HPC2.36"];
        assert_eq!(nearest("vm.standard2.1", known), Some("VM.Standard2.1"));
        assert_eq!(nearest("VM.Standrd2.1", known), Some("VM.Standard2.1"));
        assert_eq!(nearest("m1.small", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
