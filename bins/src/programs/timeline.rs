//! `timeline`: a picture of the lives of nodes.

use crate::args::{Common, Window, nodes, time_at};
use crate::bootstrap::Bootstrap;
use crate::diagnostic::Diagnostic;
use crate::output::{Colour, Output, chain};
use clap::Parser;
use history::timeline::{JobBar, PhaseTimes, Selection, Timeline, phase_times, terminal};
use history::{Life, Lives, Phase, TimeZone, millis};
use hostlist::{Hostlist, NodeName};
use provision::job_costs::job_bars;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// Draw what nodes did: when they were asked for, launched, booted, ran jobs, and ended or failed.
///
/// The events are in the state directory, so neither the cloud nor slurmctld has to answer. Jobs come from Slurm's accounting
/// (sacct) where it runs, and else from the events. Times are local. Without --svg and --html, a compact picture is printed, with
/// how long each phase takes.
#[derive(Debug, Parser)]
#[command(name = "timeline", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,

    #[command(flatten)]
    window: Window,

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
    begin(&bootstrap, &arguments).await.unwrap_or_else(|why| bootstrap.fail(&why))
}

async fn begin(bootstrap: &Bootstrap, arguments: &Arguments) -> Result<u8, Diagnostic> {
    let now = millis(SystemTime::now());
    let selection = selection(arguments, now)?;
    let directory = match &arguments.common.state_dir {
        // A log from elsewhere needs no configuration.
        Some(directory) => directory.clone(),
        None => bootstrap.state_path(Some(bootstrap.settings()?)),
    };
    let log = history::read(&directory)?;
    let lives = Lives::of(&log.events);
    let mut warnings = log.warnings();
    let first = lives.lives.iter().map(Life::begin).min().unwrap_or(now);
    let times = time_at(selection.since.unwrap_or(first))..time_at(selection.until.unwrap_or(now));
    let accounts = accounts(bootstrap, arguments, times).await.unwrap_or_else(|why| {
        warnings.push(format!("sacct does not answer, jobs are taken from events: {why}"));
        Vec::new()
    });
    let timeline = Timeline::new(&lives, accounts, &selection, now);
    show(bootstrap, arguments, &timeline)?;
    Ok(bootstrap.warn_all(&warnings))
}

/// How long sacct may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The jobs as Slurm accounts for them; none where it does not.
async fn accounts(
    bootstrap: &Bootstrap,
    arguments: &Arguments,
    times: Range<SystemTime>,
) -> Result<Vec<JobBar>, String> {
    // A log from elsewhere is about other jobs.
    if arguments.common.state_dir.is_some() || bootstrap.settings.is_err() {
        return Ok(Vec::new());
    }
    let Ok(slurm) = bootstrap.slurm().await else {
        return Ok(Vec::new());
    };
    let records = timeout(PATIENCE, slurm.controller.job_records(times.start, times.end)).await;
    let records = records.map_err(|_| "no answer in time".to_owned())?;
    let records = records.map_err(|error| chain(&error))?;
    Ok(job_bars(&records.unwrap_or_default()))
}

fn selection(arguments: &Arguments, now: u64) -> Result<Selection, Diagnostic> {
    let (since, until) = arguments.window.read(now, TimeZone::Local)?;
    let nodes = arguments.nodes.as_ref().map(Hostlist::node_names).transpose()?;
    let nodes = nodes.unwrap_or_default().iter().map(NodeName::to_string).collect();
    Ok(Selection { since, until: Some(until), nodes })
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
        let paint = |phase: Phase, text: &str| output.paint(colour(phase), text);
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

/// The colour of a phase.
fn colour(phase: Phase) -> Colour {
    Colour::Indexed(match phase {
        Phase::Asked => 226,
        Phase::Launched => 214,
        Phase::Running => 175,
        Phase::Booting => 74,
        Phase::Busy => 36,
        Phase::Idle => 250,
    })
}
