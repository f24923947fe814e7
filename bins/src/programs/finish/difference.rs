//! The difference between the old and the new node section.

use crate::diagnostic::Diagnostic;
use crate::output::{Colour, Output};
use provision::conf::MarkedFile;
use similar::{ChangeTag, TextDiff};

/// The changed lines of the node section, with one line of context.
pub(super) fn lines(
    marked: &MarkedFile,
    new: &str,
    output: Output,
) -> Result<Vec<String>, Diagnostic> {
    let old = marked.section()?;
    let diff = TextDiff::from_lines(old.as_str(), new);
    let mut lines = vec![output.paint(Colour::Bold, format!("--- {}", marked.path.display()))];
    for group in diff.grouped_ops(1) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let text = change.value().trim_end_matches('\n');
            lines.push(match change.tag() {
                ChangeTag::Delete => output.paint(Colour::Red, format!("-{text}")),
                ChangeTag::Insert => output.paint(Colour::Green, format!("+{text}")),
                ChangeTag::Equal => format!(" {text}"),
            });
        }
    }
    Ok(lines)
}
