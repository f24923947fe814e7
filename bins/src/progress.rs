//! The progress line on a terminal.

use crate::output::Output;
use provision::state::{Event, EventKind};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The width of a bar in characters.
const WIDTH: usize = 20;

/// Delay before the progress line says what the program waits for.
const SILENCE: Duration = Duration::from_secs(2);

/// Prefix of the line that says what the program waits for.
const WAITING: &str = "waiting for ";

/// The progress of work on nodes; nothing is drawn where standard error is no terminal.
#[derive(Debug, Default)]
pub struct ProgressBar(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    total: usize,
    done: BTreeSet<String>,
    line: Option<String>,
}

impl ProgressBar {
    /// Starts counting to a number of nodes.
    pub fn expect(&self, output: Output, total: usize) {
        let mut counted = self.counted();
        *counted = Counted { total, ..Counted::default() };
        counted.draw_count(output);
    }

    /// Counts a node whose work has ended, and redraws the line, because other output may have replaced it.
    pub fn event(&self, output: Output, event: &Event) {
        let mut counted = self.counted();
        if let Some(node) = event.node.as_ref().filter(|_| ends(event.event)) {
            counted.done.insert(node.clone());
        }
        counted.draw_count(output);
    }

    /// Draws another line instead of the count.
    pub fn draw(&self, output: Output, line: &str) {
        output.draw(line);
        self.counted().line = Some(line.to_owned());
    }

    /// Awaits a future. After two seconds, the progress line says what for, unless there is another line.
    pub async fn while_waiting<T>(
        &self,
        output: Output,
        what: &str,
        answer: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = tokio::time::sleep(SILENCE) => self.draw_waiting(output, what),
        }
        let answer = answer.await;
        self.clear_waiting(output);
        answer
    }

    /// Clears the line that says what the program waits for.
    fn clear_waiting(&self, output: Output) {
        let mut counted = self.counted();
        if counted.line.as_ref().is_some_and(|line| line.starts_with(WAITING)) {
            counted.line = None;
            output.draw("");
        }
    }

    /// Draws what the program waits for, unless there is another line.
    fn draw_waiting(&self, output: Output, what: &str) {
        let is_idle = {
            let counted = self.counted();
            counted.total == 0 && counted.line.is_none()
        };
        if is_idle {
            self.draw(output, &format!("{WAITING}{what}"));
        }
    }

    /// Clears the line and the count.
    pub fn clear(&self, output: Output) {
        let mut counted = self.counted();
        if counted.total > 0 || counted.line.is_some() {
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
        let (done, total) = (self.done.len().min(self.total), self.total);
        if let Some(line) = self.line.as_ref().filter(|line| !line.starts_with(WAITING)) {
            output.draw(line);
        } else if total > 0 {
            output.draw(format!("{} {done}/{total} nodes", bar(done, total)));
        }
    }
}

/// True for the last event of a node.
fn ends(event: EventKind) -> bool {
    matches!(
        event,
        EventKind::Up
            | EventKind::Terminated
            | EventKind::Stopped
            | EventKind::ReturnedToSlurm
            | EventKind::Rebuilt
    )
}

/// Renders a progress bar.
#[must_use]
pub fn bar(done: usize, total: usize) -> String {
    let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    format!("[{}{}]", "#".repeat(full), ".".repeat(WIDTH - full))
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
