//! The numbers that matter, each the best of several runs beside its limit: `cargo bench -p slurmconf`.
//!
//! The last part starts real slurmctlds, from the cache that `tests/slurm/fetch 22.05 24.11 26.05` fills. A number
//! past its limit is printed and no more: on a machine that others use too, it would often be their fault.
#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that measures, prints, and has nobody to return an error to"
)]

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod common;

use slurmconf::{Config, Document, GenerateOptions, Limits, Style, diff, generate};
use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

fn main() {
    let lines = node_lines();
    println!("{:<58} {:>10}  {:>10}", "what", "found", "limit");
    // First, before anything else has used memory.
    memory(&lines);
    generation();
    parsing(&lines);
    slurmctld();
}

fn row(what: &str, found: &str, limit: &str) {
    println!("{what:<58} {found:>10}  {limit:>10}");
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1000.0)
}

fn best<T>(mut run: impl FnMut() -> T) -> Duration {
    let time = |_| {
        let started = Instant::now();
        black_box(run());
        started.elapsed()
    };
    (0..7).map(time).min().unwrap_or_default()
}

/// A hundred thousand nodes: more than one entry may have.
fn limits(style: Style, count: u32) -> String {
    let limits = format!("VM.Standard2.1: {{1: {}, 2: {}}}\n", count / 2, count - count / 2);
    let limits = Limits::read("limits.yaml", &limits).unwrap();
    generate(
        &limits,
        &slurm_testbed::shapes(),
        &GenerateOptions { style, ..GenerateOptions::default() },
    )
    .unwrap()
    .to_string()
}

fn generation() {
    let folded = best(|| limits(Style::Folded, 100_000));
    row("100,000 nodes from limits to text, folded", &milliseconds(folded), "50 ms");
    let citc = best(|| limits(Style::Citc, 100_000));
    row("100,000 nodes from limits to text, citc", &milliseconds(citc), "400 ms");
}

fn node_lines() -> String {
    format!("ClusterName=large\n{}", limits(Style::Citc, 100_000))
}

fn parsing(lines: &str) {
    let document = best(|| Document::parse(lines).to_string());
    row("slurm.conf of 100,000 lines, parsed and printed", &milliseconds(document), "300 ms");
    let read = || Document::parse(lines).lines().filter(|line| line.read().is_ok()).count();
    row("  every line read as key=value pairs", &milliseconds(best(read)), "");
    let config = best(|| Config::parse(lines).unwrap());
    row("  every node as a type, defaults applied", &milliseconds(config), "");
    let (old, new) =
        (Config::parse(lines).unwrap(), Config::parse(&limits(Style::Folded, 100_000)).unwrap());
    let changes = best(|| diff(&old, &new));
    row("  compared with the same nodes folded", &milliseconds(changes), "");
    let mut edited = Document::parse(lines);
    let edit = best(|| edited.set("ClusterName", "other").unwrap());
    row("  one parameter set", &milliseconds(edit), "");
}

/// What parsing and printing adds to the process at its peak.
fn memory(lines: &str) {
    let kilobytes = |key: &str| -> Option<f64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with(key))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    // Forget the peak so far.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let before = kilobytes("VmRSS:").unwrap_or_default();
    let document = Document::parse(lines);
    let text = document.to_string();
    let after = kilobytes("VmHWM:").unwrap_or_default();
    assert_eq!(text.len(), lines.len());
    let size = f64::from(u32::try_from(lines.len()).unwrap_or(u32::MAX)) / 1024.0;
    row(
        "slurm.conf of 100,000 lines, parsed and printed: memory",
        &format!("{:.1} ×", (after - before) / size),
        "10 × text",
    );
}

/// From the start of the process to the first answered `scontrol ping`.
fn slurmctld() {
    for series in ["22.05", "24.11", "26.05"] {
        let mut bed = common::Testbed::new(slurm_testbed::Release::find(series));
        for (style, name) in [(Style::Folded, "folded"), (Style::Citc, "one line a node")] {
            let nodes = limits(style, 10_000);
            let conf = format!("ClusterName=test\n{nodes}PartitionName=p Nodes=ALL Default=YES\n");
            let time = (0..3).map(|_| bed.start(&conf)).min().unwrap_or_default();
            let what = format!("slurmctld {series}, 10,000 nodes {name}: start to ping");
            row(&what, &milliseconds(time), "");
        }
    }
}
