//! Tables with aligned columns, and the same data as CSV.

/// The lines of a table, the header first; the last column is not padded.
#[must_use]
pub fn lines<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let mut widths = head.map(|title| title.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded: Vec<String> =
            cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let head = std::iter::once(line(head));
    head.chain(rows.iter().map(|row| line(row.each_ref().map(String::as_str)))).collect()
}

/// The lines of a CSV file, the header first.
#[must_use]
pub fn csv(head: &[String], rows: &[Vec<String>]) -> Vec<String> {
    let cell = |text: &str| {
        let quoted = text.contains([',', '"', '\n', '\r']);
        if quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let line = |cells: &[String]| cells.iter().map(|text| cell(text)).collect::<Vec<_>>().join(",");
    let head = std::iter::once(line(head));
    head.chain(rows.iter().map(|row| line(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows =
            [["n001".to_owned(), "idle".to_owned()], ["x".to_owned(), "a, \"b\"".to_owned()]];
        assert_eq!(
            lines(["NODE", "STATE"], &rows),
            ["NODE  STATE", "n001  idle", "x     a, \"b\""]
        );
        assert_eq!(
            csv(&["node", "state"].map(str::to_owned), &rows.map(Vec::from)),
            ["node,state", "n001,idle", "x,\"a, \"\"b\"\"\""]
        );
    }
}
