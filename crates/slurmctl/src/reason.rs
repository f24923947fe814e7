//! Reasons for the state of a node.

use std::fmt;

/// The reason for a change of a node's state: one line, fit for `reason=` and for a log.
///
/// Control characters become blanks, double quotes single ones, and a long text is cut.
///
/// ```
/// use slurmctl::Reason;
///
/// let reason = Reason::new("cloud:\n  \"out of capacity\"\t");
/// assert_eq!(reason.as_str(), "cloud: 'out of capacity'");
/// assert_eq!(Reason::new(" \n ").as_str(), "unspecified");
/// assert!(Reason::new(&"x".repeat(1000)).as_str().len() <= Reason::LONGEST);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(String);

impl Reason {
    /// The most bytes of a reason.
    pub const LONGEST: usize = 240;

    /// A reason with this text, cleaned.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = clean(text, Self::LONGEST);
        Self(if text.is_empty() { "unspecified".into() } else { text })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One printable line without double quotes and backslashes, of at most `longest` bytes.
pub(crate) fn clean(text: &str, longest: usize) -> String {
    let mut line = String::new();
    for character in text.chars() {
        let character = match character {
            '"' => '\'',
            '\\' => '/',
            other if is_blank(other) => ' ',
            other => other,
        };
        if character == ' ' && (line.is_empty() || line.ends_with(' ')) {
            continue;
        }
        if line.len() + character.len_utf8() > longest {
            break;
        }
        line.push(character);
    }
    line.truncate(line.trim_end().len());
    line
}

/// True for control characters, blanks of all kinds, and characters that change the direction of text.
fn is_blank(character: char) -> bool {
    character.is_control()
        || character.is_whitespace()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = Reason::new(&"ä".repeat(500));
        assert_eq!(reason.as_str().len(), Reason::LONGEST);
    }

    proptest! {
        #[test]
        fn a_reason_is_one_clean_line(text in ".*") {
            let reason = Reason::new(&text);
            let line = reason.as_str();
            prop_assert!(!line.is_empty() && line.len() <= Reason::LONGEST);
            let bad = ['"', '\\', '\n', '\0', '\u{1b}'];
            prop_assert!(!line.contains(bad));
            prop_assert_eq!(line.trim(), line);
            prop_assert_eq!(Reason::new(line), reason.clone());
        }
    }
}
