//! How far it is, drawn in one line of a terminal.

use crate::output::Output;
use provision::state::{Event, EventKind};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many signs wide a bar is.
const WIDE: usize = 20;

/// How far the work on some nodes is. Where nothing is drawn it does nothing.
#[derive(Debug, Default)]
pub struct Bar(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    all: usize,
    over: BTreeSet<String>,
    line: Option<String>,
}

impl Bar {
    /// So many nodes are worked on.
    pub fn expect(&self, output: Output, all: usize) {
        let mut counted = self.counted();
        *counted = Counted { all, ..Counted::default() };
        counted.draw_count(output);
    }

    /// Something happened to a node; also draws the line again, over which something may have been written.
    pub fn event(&self, output: Output, event: &Event) {
        let mut counted = self.counted();
        if let Some(node) = event.node.as_ref().filter(|_| ends(event.event)) {
            counted.over.insert(node.clone());
        }
        counted.draw_count(output);
    }

    /// Draws a line of one's own instead.
    pub fn draw(&self, output: Output, line: &str) {
        output.draw(line);
        self.counted().line = Some(line.to_owned());
    }

    /// Takes the line away.
    pub fn clear(&self, output: Output) {
        let mut counted = self.counted();
        if counted.all > 0 || counted.line.is_some() {
            output.draw("");
        }
        *counted = Counted::default();
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn draw_count(&self, output: Output) {
        let (over, all) = (self.over.len().min(self.all), self.all);
        if let Some(line) = &self.line {
            output.draw(line);
        } else if all > 0 {
            output.draw(format!("{} {over}/{all} nodes", bar(over, all)));
        }
    }
}

/// True if a node needs nothing more when this has happened.
fn ends(event: EventKind) -> bool {
    matches!(
        event,
        EventKind::Up | EventKind::Terminated | EventKind::GivenBack | EventKind::Rebuilt
    )
}

/// How far it is, at one look.
#[must_use]
pub fn bar(done: usize, all: usize) -> String {
    let full = (done * WIDE).checked_div(all).unwrap_or(WIDE).min(WIDE);
    format!("[{}{}]", "#".repeat(full), ".".repeat(WIDE - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        assert_eq!(bar(0, 4), "[....................]");
        assert_eq!(bar(1, 4), "[#####...............]");
        assert_eq!(bar(4, 4), "[####################]");
        assert_eq!(bar(0, 0), "[####################]");
        assert_eq!(bar(9, 4), "[####################]");
    }
}
