//! The timeline as an SVG image, for reports.

use super::time_format::{length, local, ticks};
use super::{JobBar, RED, Timeline};
use crate::life::Life;
use crate::phase::Phase;
use std::fmt::{self, Write as _};

const WIDTH: u64 = 1200;
const LANE: u64 = 18;
const BAR: u64 = 12;
const RIGHT: u64 = 20;
const TOP: u64 = 86;

/// An SVG image in progress, with its shared dimensions.
struct Canvas<'t> {
    timeline: &'t Timeline<'t>,
    /// The x coordinate of the lanes.
    left: u64,
    text: String,
}

/// Renders the image.
pub(super) fn picture(timeline: &Timeline<'_>, title: &str) -> String {
    let longest = timeline.lanes.iter().map(|lane| lane.node.len()).max().unwrap_or_default();
    let left = 20 + 7 * u64::try_from(longest.max(4)).unwrap_or(4);
    let mut canvas = Canvas { timeline, left, text: String::new() };
    let rows = pack(&timeline.jobs, timeline);
    let job_rows = rows.iter().map(|row| row + 1).max().unwrap_or_default();
    let lanes = u64::try_from(timeline.lanes.len()).unwrap_or_default();
    let lanes_top = TOP + job_rows * LANE + if job_rows > 0 { 10 } else { 0 };
    let height = lanes_top + lanes * LANE + 16;
    // Writing to a string cannot fail.
    let _ = canvas.frame(title, height, (lanes_top, lanes));
    for (job, row) in timeline.jobs.iter().zip(rows) {
        let _ = canvas.job(job, TOP + row * LANE);
    }
    for (index, lane) in (0..).zip(&timeline.lanes) {
        let _ = canvas.label(lane.node, lanes_top + index * LANE);
        for life in &lane.lives {
            let _ = canvas.life(life, lanes_top + index * LANE);
        }
    }
    canvas.text + "</svg>\n"
}

/// Assigns each job to the first row in which it does not overlap another.
fn pack(jobs: &[JobBar], timeline: &Timeline<'_>) -> Vec<u64> {
    let mut ends: Vec<u64> = Vec::new();
    let gap = timeline.to.saturating_sub(timeline.from) / 50;
    let mut row_of = |job: &JobBar| {
        let end = job.ends.or(job.runs).unwrap_or(job.waits).max(job.waits) + gap;
        let free = ends.iter().position(|taken| *taken <= job.waits);
        match free.and_then(|row| ends.get_mut(row)) {
            Some(taken) => *taken = end,
            None => ends.push(end),
        }
        u64::try_from(free.unwrap_or(ends.len().saturating_sub(1))).unwrap_or_default()
    };
    jobs.iter().map(&mut row_of).collect()
}

impl Canvas<'_> {
    fn x(&self, at: u64) -> u64 {
        let Timeline { from, to, .. } = *self.timeline;
        let (length, width) = (to.saturating_sub(from).max(1), WIDTH - self.left - RIGHT);
        self.left + at.clamp(from, to.max(from)).saturating_sub(from).saturating_mul(width) / length
    }

    fn frame(&mut self, title: &str, height: u64, (top, lanes): (u64, u64)) -> fmt::Result {
        let Timeline { from, to, .. } = *self.timeline;
        writeln!(
            self.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"system-ui,sans-serif\" font-size=\"11\" fill=\"#24292f\">\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text x=\"20\" y=\"24\" font-size=\"15\" font-weight=\"600\">{}</text>\n\
             <text x=\"{}\" y=\"24\" text-anchor=\"end\" fill=\"#57606a\">{} to {}, {}</text>",
            escape(title),
            WIDTH - RIGHT,
            local(from, "%Y-%m-%d %H:%M:%S"),
            local(to, "%H:%M:%S"),
            length(to.saturating_sub(from)),
        )?;
        self.legend()?;
        for (at, label) in ticks(from, to, 10) {
            let x = self.x(at);
            writeln!(
                self.text,
                "<path d=\"M{x} {}V{}\" stroke=\"#d8dee4\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#57606a\">{label}</text>",
                TOP - 6,
                top + lanes * LANE,
                TOP - 12,
            )?;
        }
        Ok(())
    }

    fn legend(&mut self) -> fmt::Result {
        let mut x = 20;
        for phase in Phase::ALL {
            let (colour, name) = (phase.colour(), phase.name());
            writeln!(
                self.text,
                "<rect x=\"{x}\" y=\"38\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"48\">{name}</text>",
                x + 17,
            )?;
            x += 90;
        }
        writeln!(
            self.text,
            "<path d=\"M{x} 39l10 10m0-10l-10 10\" stroke=\"{RED}\" stroke-width=\"2.5\"/><text x=\"{}\" y=\"48\">refused or failed</text>",
            x + 17,
        )
    }

    fn label(&mut self, name: &str, y: u64) -> fmt::Result {
        let (x, y) = (self.left - 8, y + 12);
        writeln!(self.text, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{}</text>", escape(name))
    }

    fn job(&mut self, job: &JobBar, y: u64) -> fmt::Result {
        let runs = job.runs.unwrap_or(self.timeline.to);
        let ends = job.ends.unwrap_or(if job.runs.is_some() { self.timeline.to } else { runs });
        let [waits, runs, ends] = [job.waits, runs, ends].map(|at| self.x(at));
        let title = escape(&format!("job {} {}", job.id, job.label));
        writeln!(
            self.text,
            "<g><title>{}</title><path d=\"M{waits} {}H{runs}\" stroke=\"#8c959f\" stroke-dasharray=\"2 2\"/>\
             <rect x=\"{runs}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" rx=\"2\" fill=\"#0072b2\"/>\
             <text x=\"{}\" y=\"{}\" font-size=\"9\">{}</text></g>",
            title.trim_end(),
            y + BAR / 2,
            ends.saturating_sub(runs).max(1),
            ends + 3,
            y + 9,
            job.id,
        )
    }

    fn life(&mut self, life: &Life, y: u64) -> fmt::Result {
        let Timeline { from, to, now, .. } = *self.timeline;
        for span in life.phases(now.min(to)) {
            if span.to < from || span.from > to {
                continue;
            }
            let (x, end) = (self.x(span.from), self.x(span.to));
            let (phase, how_long) = (span.phase, length(span.millis()));
            writeln!(
                self.text,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{BAR}\" fill=\"{}\"><title>{}: {}, {how_long}</title></rect>",
                end.saturating_sub(x).max(1),
                phase.colour(),
                escape(life.node.as_deref().unwrap_or_default()),
                phase.name(),
            )?;
        }
        let failed = life.end.as_ref().filter(|_| life.has_failed());
        let end = failed.map(|end| (end.at, end.reason.clone().unwrap_or_default()));
        let refused = life.refusals.iter().map(|it| (it.at, it.reason.clone()));
        for (at, reason) in refused.chain(end).filter(|(at, _)| (from..=to).contains(at)) {
            let x = self.x(at).saturating_sub(4);
            writeln!(
                self.text,
                "<path d=\"M{x} {}l8 8m0-8l-8 8\" stroke=\"{RED}\" stroke-width=\"2.5\"><title>{}</title></path>",
                y + 2,
                escape(&reason),
            )?;
        }
        Ok(())
    }
}

/// Escapes a text for XML, without characters that XML does not allow.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
