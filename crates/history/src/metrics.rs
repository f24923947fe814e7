//! Metrics in Prometheus' text format.

use crate::tally::{BOUNDS, Histogram, Series, Tally};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Name, type and help of each metric. Others are not written.
const METRICS: [(&str, &str, &str); 18] = [
    (
        "slurm_elastic_machines",
        "gauge",
        "Machines of this cluster, by the state in the cloud, pool and zone.",
    ),
    ("slurm_elastic_launches_total", "counter", "Launches that the cloud accepted."),
    ("slurm_elastic_refusals_total", "counter", "Launches that the cloud refused, by cause."),
    (
        "slurm_elastic_returned_nodes_total",
        "counter",
        "Nodes that were returned to Slurm, by cause.",
    ),
    ("slurm_elastic_terminations_total", "counter", "Machines that were terminated."),
    ("slurm_elastic_stops_total", "counter", "Machines that were stopped and are kept."),
    ("slurm_elastic_starts_total", "counter", "Stopped machines that were started again."),
    ("slurm_elastic_adoptions_total", "counter", "Machines that were there already and were used."),
    ("slurm_elastic_rebuilds_total", "counter", "Machines that got an image or were rebooted."),
    ("slurm_elastic_cooldowns_total", "counter", "Cool-downs of pools, by cause."),
    ("slurm_elastic_cooling", "gauge", "1 for each pool that cools down now."),
    ("slurm_elastic_findings", "gauge", "Discrepancies that the last reconcile found, by kind."),
    ("slurm_elastic_repairs_total", "counter", "Discrepancies that reconcile repaired, by kind."),
    (
        "slurm_elastic_cost",
        "gauge",
        "What machines have cost since midnight and this month, by period and currency.",
    ),
    (
        "slurm_elastic_budget",
        "gauge",
        "The budget of a day and of a month, by period and currency.",
    ),
    ("slurm_elastic_reconcile_failures", "gauge", "Failures of the last reconcile."),
    ("slurm_elastic_reconcile_seconds", "gauge", "How long the last reconcile took."),
    ("slurm_elastic_reconcile_timestamp_seconds", "gauge", "When the last reconcile ended."),
];

const PHASES: &str = "slurm_elastic_phase_seconds";

/// Formats counters and gauges.
#[must_use]
pub fn metrics(tally: &Tally, now: &BTreeMap<Series, f64>) -> String {
    let mut text = String::new();
    for (name, kind, help) in METRICS {
        let of_name = |series: &&Series| series.name == name;
        let counted = tally.counters.keys().filter(of_name);
        let counted = counted.filter_map(|it| Some((it, tally.counters.get(it)?.to_string())));
        let gauges =
            now.iter().filter(|(it, _)| of_name(it)).map(|(it, value)| (it, value.to_string()));
        let lines: Vec<String> =
            counted.chain(gauges).map(|(it, value)| line(name, &it.labels, &value)).collect();
        if !lines.is_empty() {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            text.push_str(&lines.concat());
        }
    }
    if !tally.phases.is_empty() {
        let help = "How long nodes are in each phase, and the whole start.";
        let _ = writeln!(text, "# HELP {PHASES} {help}\n# TYPE {PHASES} histogram");
        for (phase, histogram) in &tally.phases {
            text.push_str(&lines(phase, histogram));
        }
    }
    text
}

fn line(name: &str, labels: &str, value: &str) -> String {
    if labels.is_empty() {
        format!("{name} {value}\n")
    } else {
        format!("{name}{{{labels}}} {value}\n")
    }
}

fn lines(phase: &str, histogram: &Histogram) -> String {
    let label = format!("phase=\"{phase}\"");
    let (mut text, mut below) = (String::new(), 0);
    for (bound, bucket) in BOUNDS.iter().zip(histogram.buckets) {
        below = u64::saturating_add(below, bucket);
        let _ = writeln!(text, "{PHASES}_bucket{{{label},le=\"{bound}\"}} {below}");
    }
    let Histogram { count, sum, .. } = histogram;
    let _ = writeln!(text, "{PHASES}_bucket{{{label},le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "{PHASES}_sum{{{label}}} {}.{:03}", sum / 1000, sum % 1000);
    let _ = writeln!(text, "{PHASES}_count{{{label}}} {count}");
    text
}
