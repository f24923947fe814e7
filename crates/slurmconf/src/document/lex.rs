//! Lexing in Slurm's order: cut the comment, join continuations, resolve escapes, split into pairs.
//!
//! Observed on slurmctld 22.05, 24.11 and 26.05, which agree. `#` starts a comment even inside quotes, unless an odd
//! number of backslashes comes before it. An odd number of backslashes at the end, before optional blanks, joins the next
//! line. `\x` is then `x` everywhere, so that `\"` is an ordinary quote.

use std::{borrow::Cow, ops::Range};

/// The length in bytes of the first logical line, and its number of physical lines.
pub(super) fn logical_line(bytes: &[u8]) -> (usize, usize) {
    let (mut end, mut count) = (0, 0);
    for physical in bytes.split_inclusive(|&byte| byte == b'\n') {
        end += physical.len();
        count += 1;
        if continuation(physical).is_none() {
            break;
        }
    }
    (end, count)
}

/// True if the last line of the text is continued.
pub(super) fn goes_on(bytes: &[u8]) -> bool {
    let last = bytes.split_inclusive(|&byte| byte == b'\n').next_back();
    last.is_some_and(|physical| continuation(physical).is_some())
}

/// The line without its comment.
fn uncommented(physical: &[u8]) -> &[u8] {
    let mut escaped = false;
    for (index, &byte) in physical.iter().enumerate() {
        if byte == b'#' && !escaped {
            return physical.get(..index).unwrap_or_default();
        }
        escaped = byte == b'\\' && !escaped;
    }
    physical
}

/// The line without comment and final backslash, if it is continued.
fn continuation(physical: &[u8]) -> Option<&[u8]> {
    // The common case, as fast as a memory scan.
    if !physical.contains(&b'\\') {
        return None;
    }
    let text = uncommented(physical);
    let last = text.iter().rposition(|&byte| !is_space(byte))?;
    let (rest, _) = text.split_at_checked(last)?;
    let before = rest.iter().rev().take_while(|&&byte| byte == b'\\').count();
    (text.get(last) == Some(&b'\\') && before % 2 == 0).then_some(rest)
}

/// A logical line as Slurm's parser sees it, and the position of each byte in the document.
pub(super) struct Cooked<'a> {
    pub(super) text: Cow<'a, [u8]>,
    start: usize,
    /// Only for lines with an escape or a continuation.
    origins: Option<Vec<Range<usize>>>,
}

impl<'a> Cooked<'a> {
    /// `raw` begins at byte `start` of its document.
    pub(super) fn new(raw: &'a [u8], start: usize) -> Self {
        if !raw.contains(&b'\\') {
            return Self { text: Cow::Borrowed(uncommented(raw)), start, origins: None };
        }
        let (mut text, mut origins) = (Vec::new(), Vec::new());
        for (byte, origin) in unescaped(joined(raw, start)) {
            text.push(byte);
            origins.push(origin);
        }
        Self { text: Cow::Owned(text), start, origins: Some(origins) }
    }

    /// The position of byte `index` in the document; an escaped byte includes its backslash.
    pub(super) fn origin(&self, index: usize) -> Range<usize> {
        let plain = self.start + index;
        match &self.origins {
            None => plain..plain + 1,
            Some(origins) => origins.get(index).cloned().unwrap_or_else(|| {
                let end = origins.last().map_or(self.start, |last| last.end);
                end..end
            }),
        }
    }
}

fn joined(raw: &[u8], start: usize) -> Vec<(u8, usize)> {
    let mut all = Vec::with_capacity(raw.len());
    let mut offset = start;
    for physical in raw.split_inclusive(|&byte| byte == b'\n') {
        let kept = continuation(physical).unwrap_or_else(|| uncommented(physical));
        all.extend(kept.iter().copied().zip(offset..));
        offset += physical.len();
    }
    all
}

fn unescaped(bytes: Vec<(u8, usize)>) -> impl Iterator<Item = (u8, Range<usize>)> {
    let mut escape = None;
    bytes.into_iter().filter_map(move |(byte, offset)| {
        if byte == b'\\' && escape.is_none() {
            escape = Some(offset);
            return None;
        }
        Some((byte, escape.take().unwrap_or(offset)..offset + 1))
    })
}

/// One `key=value`, as ranges of the cooked text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
    pub(super) quoted: bool,
    /// The first byte after the pair, its quotes included.
    pub(super) end: usize,
}

/// The pair at or after `from`; `None` at the end of the line, `Err` with the position of anything else.
pub(super) fn pair(text: &[u8], from: usize) -> Option<Result<Span, usize>> {
    let start = from + run(text, from, is_space);
    (start < text.len()).then(|| key_value(text, start).ok_or(start))
}

fn key_value(text: &[u8], start: usize) -> Option<Span> {
    let key = start..start + run(text, start, is_key);
    let mut at = key.end + run(text, key.end, is_space);
    // Slurm reads `+=`, `-=`, `*=` and `/=`, and treats them like `=`.
    if matches!(text.get(at), Some(b'+' | b'-' | b'*' | b'/')) {
        at += 1;
    }
    if key.is_empty() || text.get(at) != Some(&b'=') {
        return None;
    }
    at += 1;
    at += run(text, at, is_space);
    let (value, quoted) = match quoted(text, at) {
        Some(value) => (value, true),
        None => (at..at + run(text, at, |byte| !is_space(byte)), false),
    };
    let end = value.end + usize::from(quoted);
    (quoted || !value.is_empty()).then_some(Span { key, value, quoted, end })
}

/// The text between two quotes, if a blank or the end follows the second.
fn quoted(text: &[u8], at: usize) -> Option<Range<usize>> {
    // Otherwise each unquoted value would search the rest of the line for a quote.
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let value = at + 1..at + 1 + run(text, at + 1, |byte| byte != b'"');
    let closed = text.get(value.end) == Some(&b'"');
    (closed && text.get(value.end + 1).is_none_or(|&byte| is_space(byte))).then_some(value)
}

fn run(text: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    text.get(from..).unwrap_or_default().iter().take_while(|&&byte| accept(byte)).count()
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

/// C's `isspace`, which includes the vertical tab.
pub(super) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cooked(raw: &str) -> String {
        String::from_utf8(Cooked::new(raw.as_bytes(), 0).text.into_owned()).unwrap()
    }

    #[test]
    fn text_is_cooked_in_slurms_order() {
        let cases = [
            ("a=1 # c", "a=1 "),
            ("a=\"x # y\"", "a=\"x "),
            ("a=x\\#y # c", "a=x#y "),
            ("a=x\\\\# c", "a=x\\"),
            ("a=1 \\\n b=2\n", "a=1  b=2\n"),
            ("a=ab\\  \r\ncd\r\n", "a=abcd\r\n"),
            ("a=1 \\ # c\nb=2", "a=1 b=2"),
            ("a=1 # c \\", "a=1 "),
            ("a=1\\\\\n", "a=1\\\n"),
            ("a=1 \\\n# c\n", "a=1 "),
            ("a=1 \\", "a=1 "),
            ("a=1\\\\\\ \x0b\n2", "a=1\\2"),
        ];
        for (raw, expected) in cases {
            assert_eq!(cooked(raw), expected, "{raw:?}");
        }
    }

    #[test]
    fn a_logical_line_ends_where_no_continuation_is() {
        let cases = [
            ("a\nb\n", (2, 1)),
            ("a \\\nb\nc\n", (6, 2)),
            ("a # c \\\nb\n", (8, 1)),
            ("a \\\\\nb\n", (5, 1)),
            ("a \\\n", (4, 1)),
            ("a", (1, 1)),
        ];
        for (raw, expected) in cases {
            assert_eq!(logical_line(raw.as_bytes()), expected, "{raw:?}");
        }
    }

    #[test]
    fn values_are_found_as_slurm_finds_them() {
        let cases = [
            ("a=1", Some(("a", "1", false))),
            (" a = 1 b=2", Some(("a", "1", false))),
            ("a+=1", Some(("a", "1", false))),
            ("a=\"x y\" b=1", Some(("a", "x y", true))),
            ("a=\"\"", Some(("a", "", true))),
            ("a=\"x y", Some(("a", "\"x", false))),
            ("a=\"p,q\"r", Some(("a", "\"p,q\"r", false))),
            ("a= b=2", Some(("a", "b=2", false))),
            ("a=", None),
            ("a", None),
            ("=1", None),
            ("a+ =1", None),
        ];
        for (text, expected) in cases {
            let span = pair(text.as_bytes(), 0).unwrap().ok();
            let found = span
                .as_ref()
                .map(|span| (&text[span.key.clone()], &text[span.value.clone()], span.quoted));
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(pair(b"  \r\n", 0), None);
    }
}
