//! Folding with steps, as ClusterShell does with `--autostep`: `n[0,2,4,6]` becomes `n[0-6/2]`.

use std::fmt::Write as _;

/// Numbers `lo..=hi` as written, padded to `width`.
#[derive(Clone, Copy)]
struct Item {
    lo: u64,
    hi: u64,
    width: usize,
}

/// Single numbers with one distance between them that may become a step.
struct Row {
    first: u64,
    last: u64,
    /// Unknown while there is one number only.
    step: Option<u64>,
    count: usize,
    width: usize,
}

/// Rewrites the brackets of a folded list, so that `fewest` or more numbers at one distance become a step.
pub(crate) fn fold(folded: &str, fewest: usize) -> String {
    let mut out = String::new();
    let mut rest = folded;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((numbers, after)) = after.split_once(']') else { break };
        let items: Option<Vec<Item>> = numbers.split(',').map(item).collect();
        let stepped = items.map_or_else(|| numbers.to_owned(), |items| bracket(&items, fewest));
        let _ = write!(out, "{before}[{stepped}]");
        rest = after;
    }
    out + rest
}

fn item(text: &str) -> Option<Item> {
    let (lo, hi) = text.split_once('-').unwrap_or((text, text));
    Some(Item { lo: lo.parse().ok()?, hi: hi.parse().ok()?, width: lo.len() })
}

fn bracket(items: &[Item], fewest: usize) -> String {
    let mut out = Vec::new();
    let mut row: Option<Row> = None;
    for item in items {
        let mut item = *item;
        while let Some(mut current) = row.take() {
            let distance = item.lo.checked_sub(current.last).filter(|_| same_width(&current, item));
            let single = item.lo == item.hi;
            let ends_a_step = current.step.is_some() && distance == current.step;
            if single && distance.is_some() && (ends_a_step || current.step.is_none()) {
                current.extend(item.lo, distance);
                row = Some(current);
                break;
            }
            // The first number of a range may still end a step.
            if ends_a_step && current.count + 1 >= fewest {
                current.extend(item.lo, distance);
                item.lo += 1;
            }
            row = current.give_up(fewest, &mut out);
        }
        match row {
            Some(_) => {}
            None if item.lo == item.hi => row = Some(Row::new(item)),
            None => {
                let (lo, hi) = (number(item.lo, item.width), number(item.hi, item.width));
                out.push(format!("{lo}-{hi}"));
            }
        }
    }
    while let Some(current) = row.take() {
        row = current.give_up(fewest, &mut out);
    }
    out.join(",")
}

/// True if the number's padding is that of the row.
fn same_width(row: &Row, item: Item) -> bool {
    number(item.lo, row.width).len() == item.width.max(number(item.lo, 1).len())
}

fn number(value: u64, width: usize) -> String {
    format!("{value:0width$}")
}

impl Row {
    fn new(Item { lo, width, .. }: Item) -> Self {
        Self { first: lo, last: lo, step: None, count: 1, width }
    }

    fn extend(&mut self, value: u64, step: Option<u64>) {
        (self.last, self.step) = (value, step);
        self.count += 1;
    }

    /// Prints a step that is long enough, else the first number; the rest may begin another step.
    fn give_up(self, fewest: usize, out: &mut Vec<String>) -> Option<Self> {
        let first = number(self.first, self.width);
        if self.count >= fewest {
            let last = number(self.last, self.width);
            out.push(format!("{first}-{last}/{}", self.step.unwrap_or(1)));
            return None;
        }
        out.push(first);
        let count = self.count.checked_sub(1).filter(|count| *count > 0)?;
        let first = self.first + self.step.unwrap_or_default();
        Some(Self { first, count, step: self.step.filter(|_| count > 1), ..self })
    }
}
