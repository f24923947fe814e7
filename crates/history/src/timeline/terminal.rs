//! The timeline as text for a terminal.

use super::percentiles::{PhaseTimes, phase_times};
use super::time_format::{length, local};
use super::{NodeLane, Timeline};
use crate::life::{Ending, Life};
use crate::phase::{Phase, PhaseSpan};
use std::fmt::Write as _;

/// Maximum number of lanes. The HTML page has all.
const MOST_LANES: usize = 200;

/// Renders one line per node, as wide as the terminal, with a letter for each phase, which `paint` may colour.
#[must_use]
pub fn terminal(
    timeline: &Timeline<'_>,
    width: usize,
    paint: &dyn Fn(Phase, &str) -> String,
) -> String {
    let mut text = String::new();
    let names = timeline.lanes.iter().map(|lane| lane.node.len()).max().unwrap_or_default();
    let bars = width.saturating_sub(names + 2).max(20);
    if timeline.lanes.is_empty() {
        return "no events in this time\n".to_owned();
    }
    let (from, to) = (local(timeline.from, "%Y-%m-%d %H:%M:%S"), local(timeline.to, "%H:%M:%S"));
    let _ = writeln!(text, "{from} to {to}, {}", length(timeline.to.saturating_sub(timeline.from)));
    for lane in timeline.lanes.iter().take(MOST_LANES) {
        let cells = cells(lane, timeline, bars);
        let _ = writeln!(text, "{:<names$}  {}", lane.node, painted(&cells, paint));
    }
    let more = timeline.lanes.len().saturating_sub(MOST_LANES);
    if more > 0 {
        let _ = writeln!(text, "{more} more nodes; --html FILE shows all");
    }
    let _ = writeln!(text, "\n{}", legend(paint));
    text + &times(&phase_times(timeline.lives()))
}

/// The content of one character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Nothing,
    Phase(Phase),
    Failed,
}

impl Cell {
    fn letter(self) -> char {
        match self {
            Self::Nothing => '·',
            Self::Phase(phase) => letter(phase),
            Self::Failed => 'x',
        }
    }
}

/// Time that a node spends in each phase during one column.
#[derive(Clone, Default)]
struct Column {
    phases: [u64; Phase::ALL.len()],
    failed: bool,
}

impl Column {
    /// A failure, or else the longest phase.
    fn cell(&self) -> Cell {
        let longest = Phase::ALL.into_iter().zip(self.phases).max_by_key(|(_, millis)| *millis);
        match longest {
            _ if self.failed => Cell::Failed,
            Some((phase, 1..)) => Cell::Phase(phase),
            Some((_, 0)) | None => Cell::Nothing,
        }
    }
}

/// The letter of a phase.
fn letter(phase: Phase) -> char {
    match phase {
        Phase::Asked => '?',
        Phase::Launched => '-',
        Phase::Running => '=',
        Phase::Booting => '+',
        Phase::Busy => '#',
        Phase::Idle => '_',
    }
}

fn cells(lane: &NodeLane<'_>, timeline: &Timeline<'_>, width: usize) -> Vec<Cell> {
    let mut columns = vec![Column::default(); width];
    for life in &lane.lives {
        for span in life.phases(timeline.now.min(timeline.to)) {
            add(&mut columns, timeline, &span);
        }
        for at in failures(life) {
            if let Some(column) = columns.get_mut(column(timeline, width, at)) {
                column.failed |= (timeline.from..=timeline.to).contains(&at);
            }
        }
    }
    columns.iter().map(Column::cell).collect()
}

/// Times of refused launches and failures.
fn failures(life: &Life) -> impl Iterator<Item = u64> {
    let end = life.end.as_ref().filter(|end| end.how == Ending::Failed);
    life.refusals.iter().map(|refusal| refusal.at).chain(end.map(|end| end.at))
}

/// The column of a time.
fn column(timeline: &Timeline<'_>, width: usize, at: u64) -> usize {
    let (begin, length) = (timeline.from, timeline.to.saturating_sub(timeline.from).max(1));
    let last = width.saturating_sub(1);
    let width = u64::try_from(width).unwrap_or(u64::MAX);
    let column = at.saturating_sub(begin).min(length).saturating_mul(width) / length;
    usize::try_from(column).unwrap_or(last).min(last)
}

/// Adds a period to the columns that it overlaps.
fn add(columns: &mut [Column], timeline: &Timeline<'_>, span: &PhaseSpan) {
    let (from, to) = (span.from.max(timeline.from), span.to.min(timeline.to));
    let width = columns.len();
    let (first, last) = (column(timeline, width, from), column(timeline, width, to));
    let length = timeline.to.saturating_sub(timeline.from);
    let each = length / u64::try_from(width.max(1)).unwrap_or(u64::MAX);
    let index = Phase::ALL.iter().position(|phase| *phase == span.phase).unwrap_or_default();
    if to <= from {
        return;
    }
    for (number, column) in columns.iter_mut().enumerate().take(last + 1).skip(first) {
        let begin = timeline.from + each * u64::try_from(number).unwrap_or_default();
        let part = to.min(begin + each + 1).saturating_sub(from.max(begin));
        if let Some(millis) = column.phases.get_mut(index) {
            *millis += part;
        }
    }
}

fn painted(cells: &[Cell], paint: &dyn Fn(Phase, &str) -> String) -> String {
    let mut text = String::new();
    for group in cells.chunk_by(|one, next| one == next) {
        let Some(cell) = group.first() else { continue };
        let letters: String = std::iter::repeat_n(cell.letter(), group.len()).collect();
        match cell {
            Cell::Phase(phase) => text.push_str(&paint(*phase, &letters)),
            Cell::Nothing | Cell::Failed => text.push_str(&letters),
        }
    }
    text
}

fn legend(paint: &dyn Fn(Phase, &str) -> String) -> String {
    let entry =
        |phase: Phase| format!("{} {}", paint(phase, &letter(phase).to_string()), phase.name());
    let phases: Vec<String> = Phase::ALL.into_iter().map(entry).collect();
    format!("{}   x refused or failed", phases.join("   "))
}

/// Renders a table of the durations of phases.
fn times(times: &[PhaseTimes]) -> String {
    if times.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<12}{:>7}{:>14}{:>14}{:>14}{:>14}\n",
        "PHASE", "COUNT", "MEDIAN", "90 %", "99 %", "LONGEST"
    );
    for row in times {
        let name = row.phase.map_or("whole start", Phase::name);
        let [p50, p90, p99, max] = [row.p50, row.p90, row.p99, row.max].map(length);
        let _ = writeln!(text, "{name:<12}{:>7}{p50:>14}{p90:>14}{p99:>14}{max:>14}", row.count);
    }
    text
}
