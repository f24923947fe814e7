//! `timeline`: a picture of the lives of nodes.

use crate::args::{Common, nodes};
use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::output::Output;
use crate::process::{SOME_FAILED, SUCCESS};
use clap::Parser;
use history::timeline::{PhaseTimes, Selection, Timeline, moment, phase_times, terminal};
use history::{Lives, Phase, millis};
use hostlist::{Hostlist, NodeName};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Draw what nodes did: when they were asked for, launched, booted, ran jobs, and ended or failed.
///
/// The events are in the state directory, so neither the cloud nor Slurm has to answer. Without --svg and --html, a compact
/// picture is printed, with how long each phase takes.
#[derive(Debug, Parser)]
#[command(name = "timeline", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    /// From when: 2026-11-18T10:00, 2026-11-18, or 2h for two hours ago [default: the first event].
    #[arg(long, value_name = "TIME")]
    since: Option<String>,

    /// Until when [default: now].
    #[arg(long, value_name = "TIME")]
    until: Option<String>,

    /// Write one page with zoom, reasons and filters, which loads nothing else.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write a picture.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Only these nodes, such as n[001-004],gpu7.
    #[arg(value_name = "HOSTLIST", value_parser = nodes)]
    nodes: Option<Hostlist>,
}

const EXAMPLES: &str = "\
Examples:
  timeline --since 2h                 the last two hours, in the terminal
  timeline --html nodes.html          a page to open in a browser
  timeline --svg nodes.svg gpu[1-8]   a picture of eight nodes
  timeline --json --since 1d          how long each phase takes, for machines

Exit code: 0 success, 1 events could not be read (the others are shown), 2 wrong usage or configuration.";

/// Draws the lives of nodes.
pub async fn run(arguments: Arguments) -> u8 {
    let bootstrap = Bootstrap::open("timeline", &arguments.common);
    begin(&bootstrap, &arguments).unwrap_or_else(|why| bootstrap.fail(&why))
}

fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let now = millis(SystemTime::now());
    let selection = selection(arguments, now)?;
    let directory = match &arguments.common.state_dir {
        // A log from elsewhere needs no configuration.
        Some(directory) => directory.clone(),
        None => bootstrap.state_path(Some(&bootstrap.settings()?)),
    };
    let log = history::read(&directory)?;
    let lives = Lives::of(&log.events);
    let timeline = Timeline::new(&lives, Vec::new(), &selection, now);
    show(bootstrap, arguments, &timeline)?;
    let warnings = log.warnings();
    for warning in &warnings {
        bootstrap.output.print_error(format_args!("warning: {warning}"));
    }
    Ok(if warnings.is_empty() { SUCCESS } else { SOME_FAILED })
}

fn selection(arguments: &Arguments, now: u64) -> Result<Selection, Diagnostic> {
    let at = |text: &Option<String>| {
        let Some(text) = text else { return Ok(None) };
        let wrong = || {
            Diagnostic::new(format!(
                "{text} is no time: write 2026-11-18T10:00, 2026-11-18, or 2h for two hours ago"
            ))
        };
        moment(text, now).map(Some).ok_or_else(wrong)
    };
    let (since, until) = (at(&arguments.since)?, at(&arguments.until)?);
    if since.is_some_and(|since| since >= until.unwrap_or(now)) {
        return Err(Diagnostic::new("--since is not before --until"));
    }
    let nodes = arguments.nodes.as_ref().map(Hostlist::node_names).transpose()?;
    let nodes = nodes.unwrap_or_default().iter().map(NodeName::to_string).collect();
    Ok(Selection { since, until, nodes })
}

/// Writes the files that are asked for, or prints.
fn show(
    bootstrap: &Bootstrap,
    arguments: &Arguments,
    timeline: &Timeline<'_>,
) -> Result<(), Diagnostic> {
    let output = bootstrap.output;
    let title = title(bootstrap);
    if let Some(path) = &arguments.html {
        write(path, &timeline.to_html(&title), output)?;
    }
    if let Some(path) = &arguments.svg {
        write(path, &timeline.to_svg(&title), output)?;
    }
    if arguments.common.json {
        let times: Vec<Value> = phase_times(timeline.lives()).iter().map(row).collect();
        let (nodes, jobs) = (timeline.lanes.len(), timeline.jobs.len());
        let (from, to) = (timeline.from, timeline.to);
        output
            .print(json!({"from": from, "to": to, "nodes": nodes, "jobs": jobs, "phases": times}));
    } else if arguments.html.is_none() && arguments.svg.is_none() {
        let paint = |phase: Phase, text: &str| painted(output, phase, text);
        output.print(terminal(timeline, output.width(), &paint).trim_end());
    }
    Ok(())
}

fn title(bootstrap: &Bootstrap) -> String {
    let settings = bootstrap.settings.as_ref().ok();
    let cluster = settings.and_then(|settings| settings.cluster_id.as_deref());
    cluster.map_or_else(|| "Timeline".to_owned(), |cluster| format!("Timeline of {cluster}"))
}

fn write(path: &Path, text: &str, output: Output) -> Result<(), Diagnostic> {
    std::fs::write(path, text)
        .map_err(|error| Diagnostic::new(format!("cannot write {}: {error}", path.display())))?;
    output.print_unless_quiet(format_args!("wrote {}", path.display()));
    Ok(())
}

fn row(times: &PhaseTimes) -> Value {
    let PhaseTimes { phase, count, p50, p90, p99, max, sum } = *times;
    let phase = phase.map_or("start", Phase::name);
    json!({"phase": phase, "count": count, "p50_ms": p50, "p90_ms": p90, "p99_ms": p99, "max_ms": max, "sum_ms": sum})
}

/// The text in the colour of a phase.
fn painted(output: Output, phase: Phase, text: &str) -> String {
    if !output.colour {
        return text.to_owned();
    }
    let code = match phase {
        Phase::Asked => 226,
        Phase::Launched => 214,
        Phase::Running => 175,
        Phase::Booting => 74,
        Phase::Busy => 36,
        Phase::Idle => 250,
    };
    format!("\x1b[38;5;{code}m{text}\x1b[0m")
}
