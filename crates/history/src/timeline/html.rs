//! The timeline as a self-contained HTML page.

use super::percentiles::{PhaseTimes, phase_times};
use super::svg::escape;
use super::time_format::length;
use super::{JobBar, RED, Timeline};
use crate::life::{Ending, Life};
use crate::phase::Phase;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The template of the page. Its script draws the data in the element `data`.
const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

/// Number of characters of a machine's id to show.
const ID_TAIL: usize = 12;

/// Renders the page.
pub(super) fn page(timeline: &Timeline<'_>, title: &str) -> String {
    // `<` could end the script element.
    let data = data(timeline).to_string().replace('<', "\\u003c");
    let mut page = String::with_capacity(PAGE.len() + SCRIPT.len() + STYLE.len() + data.len());
    for (index, part) in PAGE.split("{{").enumerate() {
        let (name, rest) =
            if index == 0 { ("", part) } else { part.split_once("}}").unwrap_or(("", part)) };
        match name {
            "title" => page.push_str(&escape(title)),
            "style" => page.push_str(STYLE),
            "script" => page.push_str(SCRIPT),
            "data" => page.push_str(&data),
            _ => {}
        }
        page.push_str(rest);
    }
    page
}

/// Interned texts, which many lives share.
#[derive(Default)]
struct Texts {
    known: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Texts {
    fn index(&mut self, text: &str) -> usize {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.texts.len();
        self.known.insert(text.to_owned(), index);
        self.texts.push(text.to_owned());
        index
    }

    /// The index of a text; -1 for none.
    fn optional(&mut self, text: Option<&str>) -> i64 {
        text.map_or(-1, |text| i64::try_from(self.index(text)).unwrap_or(-1))
    }
}

/// The data that the script draws. Times are in milliseconds after the start, and lives are arrays rather than objects, to
/// save space.
fn data(timeline: &Timeline<'_>) -> Value {
    let (mut pools, mut reasons) = (Texts::default(), Texts::default());
    let nodes: HashMap<&str, usize> =
        timeline.lanes.iter().enumerate().map(|(index, lane)| (lane.node, index)).collect();
    let mut lives = Vec::new();
    for (index, lane) in timeline.lanes.iter().enumerate() {
        lives.extend(
            lane.lives.iter().map(|it| life(it, index, timeline, (&mut pools, &mut reasons))),
        );
    }
    let coolings: Vec<Value> = timeline
        .coolings
        .iter()
        .map(|it| json!([relative(timeline, it.at), reasons.index(&it.reason)]))
        .collect();
    let jobs: Vec<Value> = timeline.jobs.iter().map(|it| job(it, timeline, &nodes)).collect();
    let phases =
        Phase::ALL.map(|it| json!({"name": it.name(), "words": it.words(), "colour": it.colour()}));
    json!({
        "from": timeline.from,
        "length": timeline.to.saturating_sub(timeline.from),
        "red": RED,
        "phases": phases,
        "starts": Phase::START.len(),
        "nodes": timeline.lanes.iter().map(|lane| lane.node).collect::<Vec<_>>(),
        "pools": pools.texts,
        "reasons": reasons.texts,
        "lives": lives,
        "jobs": jobs,
        "coolings": coolings,
        "times": phase_times(timeline.lives()).iter().map(times).collect::<Vec<_>>(),
    })
}

/// Milliseconds after the start; negative for earlier times.
fn relative(timeline: &Timeline<'_>, at: u64) -> i64 {
    let signed = |millis: u64| i64::try_from(millis).unwrap_or(i64::MAX);
    signed(at).saturating_sub(signed(timeline.from))
}

/// A life as `[node, pool, start, [phase, length, …], ending, reason, jobs, [mark, reason, …], machine]`.
fn life(
    life: &Life,
    node: usize,
    timeline: &Timeline<'_>,
    (pools, reasons): (&mut Texts, &mut Texts),
) -> Value {
    let spans = life.phases(timeline.now);
    let begin = spans.first().map_or_else(|| life.begin(), |span| span.from);
    let mut phases = Vec::new();
    for span in &spans {
        let index = Phase::ALL.iter().position(|it| *it == span.phase).unwrap_or_default();
        phases.extend([json!(index), json!(span.millis())]);
    }
    let ending = match life.end.as_ref().map(|end| end.how) {
        None => 0,
        Some(Ending::Terminated) => 1,
        Some(Ending::Failed) => 2,
        Some(Ending::Unseen) => 3,
    };
    let why = life.end.as_ref().and_then(|end| end.reason.as_deref());
    let why = why.or(life.returned.as_ref().map(|it| it.reason.as_str()));
    let mut marks = Vec::new();
    for refusal in &life.refusals {
        marks
            .extend([json!(relative(timeline, refusal.at)), json!(reasons.index(&refusal.reason))]);
    }
    let mut jobs = life.jobs.clone();
    for job in life.work.iter().flat_map(|work| &work.jobs) {
        if !jobs.contains(job) {
            jobs.push(*job);
        }
    }
    let refused = life.refusals.last().map(|refusal| &refusal.place);
    let place = Some(&life.place).filter(|place| !place.is_unknown()).or(refused);
    let pool = place.filter(|place| !place.is_unknown()).map(ToString::to_string);
    let machine = life.instance.as_deref().map(tail).unwrap_or_default();
    json!([
        node,
        pools.optional(pool.as_deref()),
        relative(timeline, begin),
        phases,
        ending,
        reasons.optional(why),
        jobs,
        marks,
        machine,
    ])
}

/// The end of an id, which distinguishes machines.
fn tail(id: &str) -> &str {
    let begin = id.char_indices().rev().nth(ID_TAIL - 1).map_or(0, |(index, _)| index);
    id.get(begin..).unwrap_or(id)
}

/// A job as `[id, label, waits, runs, ends, nodes, state]`. An unknown time is null.
fn job(job: &JobBar, timeline: &Timeline<'_>, nodes: &HashMap<&str, usize>) -> Value {
    let at = |at: Option<u64>| at.map(|at| relative(timeline, at));
    let nodes: Vec<usize> =
        job.nodes.iter().filter_map(|node| nodes.get(node.as_str()).copied()).collect();
    let (waits, runs, ends) = (relative(timeline, job.waits), at(job.runs), at(job.ends));
    json!([job.id, job.label, waits, runs, ends, nodes, job.state.as_deref().unwrap_or_default()])
}

fn times(times: &PhaseTimes) -> Value {
    let words = [times.p50, times.p90, times.p99, times.max].map(length);
    let phase = times.phase.map_or("whole start", Phase::name);
    json!({"phase": phase, "count": times.count, "sum": times.sum, "median": times.p50, "words": words})
}
