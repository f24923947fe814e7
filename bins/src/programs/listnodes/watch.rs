//! `listnodes --watch`: the table drawn in place, with a line for each event as it happens.

use super::columns::{Layout, cut, lines};
use crate::output::Output;
use history::{Event, EventKind};
use provision::listing::NodeRow;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most events that are shown.
const MOST_EVENTS: usize = 8;

/// How many bytes of the newest events are read: more than a burst of a thousand nodes writes in a second.
const NEWEST: u64 = 1 << 20;

/// Over which time requests are counted, in milliseconds.
const MINUTE: u64 = 60_000;

/// The size of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Size {
    /// The size of the terminal on standard output, if it is one.
    pub(super) fn of_terminal() -> Option<Self> {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        let (width, height) = (usize::from(size.ws_col), usize::from(size.ws_row));
        (width > 0 && height > 0).then_some(Self { width, height })
    }
}

/// The events since the watch began, as the log has them.
#[derive(Debug)]
pub(super) struct Tail {
    directory: PathBuf,
    since: u64,
    shown: VecDeque<Event>,
    /// Requests that changed something, or that the cloud refused, in the last minute.
    rate: usize,
}

impl Tail {
    pub(super) fn new(directory: &Path, now: SystemTime) -> Self {
        let since = history::millis(now);
        Self { directory: directory.to_owned(), since, shown: VecDeque::new(), rate: 0 }
    }

    /// Reads what has happened since; a log that cannot be read has nothing new.
    pub(super) fn read(&mut self, now: SystemTime) {
        let Ok(log) = history::read_at_most(&self.directory, NEWEST) else { return };
        self.take(&log.events, history::millis(now));
    }

    fn take(&mut self, events: &[Event], now: u64) {
        let lately = events.iter().filter(|event| event.at + MINUTE >= now);
        self.rate = lately.filter(|event| is_request(event.event)).count();
        let new: Vec<&Event> =
            events.iter().filter(|event| event.at >= self.since && event.node.is_some()).collect();
        let newest = new.iter().skip(new.len().saturating_sub(MOST_EVENTS));
        self.shown = newest.map(|event| (*event).clone()).collect();
    }
}

/// True for what the cloud was asked to do.
fn is_request(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Launched
            | EventKind::LaunchFailed
            | EventKind::Terminated
            | EventKind::Stopped
            | EventKind::Started
            | EventKind::Rebuilt
    )
}

/// The lines of one picture.
pub(super) fn frame(
    rows: &[NodeRow],
    tail: &Tail,
    layout: Layout<'_>,
    shape: Shape<'_>,
) -> Vec<String> {
    let Shape { output, height, status } = shape;
    let events: Vec<String> = tail.shown.iter().map(|event| told(event, layout.width)).collect();
    let count = |cloud: &str| rows.iter().filter(|row| row.cloud.as_deref() == Some(cloud)).count();
    let head = format!(
        "{} nodes, {} running, {} pending; {} requests to change something in the last minute{status}",
        rows.len(),
        count("running"),
        count("pending"),
        tail.rate
    );
    let mut picture = vec![cut(&head, layout.width.unwrap_or(usize::MAX))];
    let table = lines(rows, layout, output);
    // The line above, the one that says how many are left out, and an empty one before the events.
    let room = height.map_or(table.len(), |height| height.saturating_sub(events.len() + 4).max(2));
    let left_out = table.len().saturating_sub(room);
    picture.extend(table.into_iter().take(room));
    if left_out > 0 {
        picture.push(format!("… and {left_out} more; enlarge the terminal, or name nodes"));
    }
    if !events.is_empty() {
        picture.push(String::new());
    }
    picture.extend(events);
    picture
}

/// What a picture has besides nodes and events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape<'a> {
    pub(super) output: Output,
    /// The height to fit into.
    pub(super) height: Option<usize>,
    /// What could not be seen.
    pub(super) status: &'a str,
}

/// An event in one line.
fn told(event: &Event, width: Option<usize>) -> String {
    let at = i64::try_from(event.at).unwrap_or_default();
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or_default();
    let at = at.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S");
    let detail = event.detail.as_deref().or(event.instance.as_deref()).unwrap_or_default();
    let node = event.node.as_deref().unwrap_or_default();
    let line = format!("{at}  {node}  {}  {detail}", event.event.as_str());
    cut(line.trim_end(), width.unwrap_or(usize::MAX))
}

/// The picture, drawn over the one before.
pub(super) fn over(picture: &[String]) -> String {
    format!("\x1b[H{}\x1b[K\x1b[J", picture.join("\x1b[K\r\n"))
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::{matches, plain, rows};
    use super::*;
    use hostlist::NodeName;
    use std::time::{Duration, UNIX_EPOCH};

    fn tail() -> Tail {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let event = |seconds, kind, number: u32, detail: &str| {
            let node = NodeName::new(&format!("vm-standard2-1-ad1-000{number}")).unwrap();
            Event::new(at(seconds), "r", kind).of(&node).because(detail)
        };
        let events = [
            event(10, EventKind::Up, 9, "long ago"),
            event(
                100,
                EventKind::LaunchFailed,
                5,
                "launch: out of capacity (VM.Standard2.1 in Uocm:PHX-AD-1)",
            ),
            event(101, EventKind::Launched, 2, "cloud.instance.oc1.phx.anyhqljtinstance002"),
            event(102, EventKind::Up, 1, "10.77.0.1"),
        ];
        let mut tail = Tail::new(Path::new("/nonexistent"), at(60));
        tail.take(&events, history::millis(at(110)));
        tail
    }

    #[test]
    fn a_watch_fits_the_terminal_and_has_a_line_for_each_event() {
        for width in [80, 120, 200] {
            let layout = Layout { chosen: &[], width: Some(width) };
            let shape = Shape { output: plain(), height: Some(12), status: "" };
            let picture = frame(&rows(), &tail(), layout, shape);
            let fits = picture.iter().all(|line| line.chars().count() <= width);
            assert!(fits && picture.len() <= 12, "{picture:#?}");
            // The time zone is the reader's.
            let zoneless = |line: &String| match line.as_bytes() {
                [_, _, b':', ..] => line.replacen(line.get(..2).unwrap(), "hh", 1),
                _ => line.clone(),
            };
            matches(&format!("watch-{width}"), &picture.iter().map(zoneless).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_low_terminal_leaves_nodes_out_and_says_so() {
        let layout = Layout { chosen: &[], width: Some(80) };
        let shape = Shape { output: plain(), height: Some(10), status: "" };
        let picture = frame(&rows(), &tail(), layout, shape);
        assert!(picture.iter().any(|line| line.starts_with("… and 3 more")), "{picture:#?}");
        assert!(picture.len() <= 10 && picture.iter().any(|line| line.contains("launch_failed")));
    }

    #[test]
    fn a_picture_is_drawn_in_place_and_leaves_nothing_of_the_one_before() {
        let drawn = over(&["a".to_owned(), "b".to_owned()]);
        assert_eq!(drawn, "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }
}
