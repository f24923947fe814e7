//! Edits that keep every other byte.

use super::{Document, Statement, lex, statement::DefinitionKind};
use crate::error::{Problem, Result};
use std::{borrow::Cow, ops::Range};

/// The two comment lines around a generated section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Markers<'a> {
    /// The line before the section.
    pub start: &'a str,
    /// The line after it.
    pub end: &'a str,
}

impl Markers<'static> {
    /// The node section of Cluster in the Cloud.
    pub const NODES: Self = Self { start: "# STARTNODES", end: "# ENDNODES" };
}

impl Document {
    /// Sets a parameter in the line that sets it now, or else in a new line at the end.
    ///
    /// A value that slurm.conf cannot hold, such as one with both blanks and quotes, is an error; so is a repeated
    /// `SlurmctldHost`. A comment inside a continued value is removed with the value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut ranges: Vec<_> = self.ranges(key).map(|(_, range)| range).collect();
        if ranges.len() > 1 && key.eq_ignore_ascii_case("SlurmctldHost") {
            return Err(Problem::Repeated { key: key.to_owned(), count: ranges.len() }.into());
        }
        let Some(range) = ranges.pop() else {
            return self.append(key, value);
        };
        let text = written(key, value)?;
        self.replace(range, &text);
        Ok(())
    }

    /// Adds a line `key=value` at the end.
    pub fn append(&mut self, key: &str, value: &str) -> Result<()> {
        let newline = self.newline();
        let unended = self.bytes.last().is_some_and(|&byte| byte != b'\n');
        // A continuation in the last line must not join the new one.
        let open = lex::goes_on(&self.bytes);
        let before = newline.repeat(usize::from(unended) + usize::from(open));
        let line = format!("{before}{key}={}{newline}", written(key, value)?);
        let end = self.bytes.len();
        self.replace(end..end, &line);
        Ok(())
    }

    /// The text between two markers.
    pub fn section(&self, markers: Markers<'_>) -> Result<String> {
        let range = self.section_range(markers)?;
        let text = self.bytes.get(range).unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Replaces the text between two markers, each of which must be on exactly one line.
    ///
    /// The new text gets a final newline, and the line ends of the first marker's line.
    pub fn replace_section(&mut self, markers: Markers<'_>, text: &str) -> Result<()> {
        let range = self.section_range(markers)?;
        let inside = |marker: &str| text.lines().any(|line| line.trim_end() == marker);
        if let Some(marker) = [markers.start, markers.end].into_iter().find(|marker| inside(marker))
        {
            return Err(Problem::TwoMarkers(marker.to_owned()).into());
        }
        let newline = newline(self.bytes.get(..range.start).unwrap_or_default());
        let mut lines = String::with_capacity(text.len() + newline.len());
        for line in text.lines() {
            lines.push_str(line);
            lines.push_str(newline);
        }
        self.replace(range, &lines);
        Ok(())
    }

    fn section_range(&self, markers: Markers<'_>) -> Result<Range<usize>> {
        let start = self.marker(markers.start)?;
        let end = self.marker(markers.end)?;
        if end.start < start.end {
            return Err(self.error(end.start, Problem::MarkersSwapped(markers.end.to_owned())));
        }
        Ok(start.end..end.start)
    }

    /// The physical line with a marker.
    fn marker(&self, marker: &str) -> Result<Range<usize>> {
        let mut found = None;
        let mut offset = 0;
        for line in self.bytes.split_inclusive(|&byte| byte == b'\n') {
            let range = offset..offset + line.len();
            offset = range.end;
            if line.trim_ascii_end() != marker.as_bytes() {
                continue;
            }
            if found.is_some() {
                return Err(self.error(range.start, Problem::TwoMarkers(marker.to_owned())));
            }
            found = Some(range);
        }
        found.ok_or_else(|| {
            Problem::NoMarker { file: self.name.to_string(), marker: marker.to_owned() }.into()
        })
    }

    /// The line end of the first line.
    fn newline(&self) -> &'static str {
        newline(self.bytes.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default())
    }
}

/// The line end of the last line.
fn newline(text: &[u8]) -> &'static str {
    if text.ends_with(b"\r\n") { "\r\n" } else { "\n" }
}

/// The value in slurm.conf's syntax; an error if it would not read back.
pub(crate) fn written<'a>(key: &str, value: &'a str) -> Result<Cow<'a, str>> {
    let unwritable = || Problem::Unwritable { key: key.to_owned(), value: value.to_owned() };
    if DefinitionKind::of(key).is_some() {
        return Err(unwritable().into());
    }
    let text = encoded(value);
    let probe = Document::parse(format!("{key}={text}"));
    let mut lines = probe.lines();
    if let (Some(line), None) = (lines.next(), lines.next())
        && let Ok(Statement::Parameter(pair)) = line.read()
        && pair.value == value
    {
        return Ok(text);
    }
    Err(unwritable().into())
}

/// The value with quotes and escapes.
pub(crate) fn encoded(value: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte > b' ' && !matches!(byte, b'#' | b'\\' | b'"');
    if !value.is_empty() && value.bytes().all(plain) {
        return Cow::Borrowed(value);
    }
    let escaped = value.replace('\\', "\\\\").replace('#', "\\#");
    let blank = value.is_empty() || value.bytes().any(lex::is_space);
    Cow::Owned(if blank { format!("\"{escaped}\"") } else { escaped })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_value_reads_back_and_all_else_stays() {
        let cases = [
            ("A=1\nB=2\n", "B", "3", "A=1\nB=3\n"),
            ("A=1 # c\n", "a", "x#y", "A=x\\#y # c\n"),
            ("A=\"x y\"  # c\r\n", "A", "", "A=\"\"  # c\r\n"),
            ("A=\\#1\\\n2 # c\nB=1", "A", "z", "A=z # c\nB=1"),
            ("A=1\nA=2\n", "A", "3", "A=1\nA=3\n"),
            ("A=1", "B", "a b", "A=1\nB=\"a b\"\n"),
            ("A=1\r\n", "B", "c\\d", "A=1\r\nB=c\\\\d\r\n"),
            ("", "B", "2", "B=2\n"),
            ("A=1 \\\n", "B", "2", "A=1 \\\n\nB=2\n"),
            ("A=1 \\", "B", "2", "A=1 \\\n\nB=2\n"),
            ("A \\\n = \\\n 1\n", "A", "2", "A \\\n = \\\n 2\n"),
        ];
        for (before, key, value, after) in cases {
            let mut document = Document::parse(before);
            document.set(key, value).unwrap();
            assert_eq!(document.to_string(), after);
            assert_eq!(document.get(key).as_deref(), Some(value));
        }
    }

    #[test]
    fn a_section_ends_its_lines_as_its_marker_does() {
        let mut document = Document::parse("A=1\n# STARTNODES\r\nx\r\n# ENDNODES\r\n");
        document.replace_section(Markers::NODES, "a\nb").unwrap();
        assert_eq!(document.to_string(), "A=1\n# STARTNODES\r\na\r\nb\r\n# ENDNODES\r\n");
    }

    #[test]
    fn a_value_that_is_not_utf8_is_replaced_in_its_place() {
        let mut document = Document::parse(*b"Name=1\nname=caf\xe9 # c\nB=1\n");
        assert_eq!(document.get("Name"), None);
        document.set("Name", "x").unwrap();
        assert_eq!(document.to_string(), "Name=1\nname=x # c\nB=1\n");
    }

    #[test]
    fn a_comment_inside_a_continued_value_goes_with_it() {
        let mut document = Document::parse("A=1\\ # c\n2 # d\n");
        document.set("A", "3").unwrap();
        assert_eq!(document.to_string(), "A=3 # d\n");
    }

    #[test]
    fn a_backup_controller_is_not_overwritten() {
        let text = "SlurmctldHost=a\nslurmctldhost=b\n";
        let mut document = Document::parse(text);
        let error = document.set("SlurmctldHost", "c").unwrap_err().to_string();
        assert_eq!(error, "SlurmctldHost is set 2 times, and each value counts");
        assert_eq!(document.to_string(), text);
        assert_eq!(document.get_all("SlurmctldHost").collect::<Vec<_>>(), ["a", "b"]);
        let config = crate::Config::parse(text).unwrap();
        assert_eq!(config.get_all("SLURMCTLDHOST").collect::<Vec<_>>(), ["a", "b"]);
        let mut document = Document::parse("SlurmctldHost=a\n");
        document.set("SlurmctldHost", "c").unwrap();
        assert_eq!(document.to_string(), "SlurmctldHost=c\n");
    }

    #[test]
    fn a_value_that_cannot_be_written_is_refused() {
        for value in ["a \"b\"", "a\nb", "\"ab\"", "\"a b\""] {
            let mut document = Document::parse("A=1\n");
            let error = document.set("A", value).unwrap_err();
            assert!(matches!(error.into_problem(), Problem::Unwritable { .. }), "{value}");
            assert_eq!(document.to_string(), "A=1\n");
        }
        assert!(Document::parse("").set("NodeName", "n1").is_err());
        assert!(Document::parse("").set("a b", "1").is_err());
    }
}
