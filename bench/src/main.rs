//! `hostlist` against libslurm and its Rust peers: one run, one table, ratios to libslurm.

mod inputs;
mod measure;
mod slurm;
mod workloads;

use std::process::Command;
use workloads::{OURS, SLURM};

const ROUNDS: usize = 7;

fn main() {
    if let Some(what) = std::env::args().nth(1) {
        return hold(&what);
    }
    let inputs = workloads::Inputs::new();
    workloads::check(&inputs);
    println!("CPU time, best of {ROUNDS} rounds, and its ratio to libslurm (below 1 is faster).");
    println!("Parsing counts, freeing does not; look-ups go to a list that has its index.\n");
    let columns = [SLURM, OURS, "nodeset", "hostlist", "hostlist_iter", "hostlist-parser"];
    print!("{:29} {:>6} {:6}", "", "bar", "");
    for column in columns {
        print!(" {column:>20}");
    }
    println!();
    let mut missed = 0;
    for workload in workloads::all(&inputs) {
        let times = workload.measure(ROUNDS);
        let (slurm, ours) = (times[0], times[1]);
        let met = ours / slurm <= workload.bar;
        missed += usize::from(!met);
        print!("{:29} {:>6} {:6}", workload.name, workload.bar, if met { "met" } else { "MISSED" });
        for column in columns {
            let place = workload.contenders.iter().position(|contender| contender.name == column);
            let cell = place.map_or("–".into(), |place| cell(times[place], slurm));
            print!(" {cell:>20}");
        }
        println!();
    }
    println!("\nPeak memory of a process that does one thing (must not grow with the hosts):");
    for what in ["nothing", "count-1m", "count-10m", "iterate-1m", "iterate-10m"] {
        println!("  {what:12} {} KiB", peak_of(what));
    }
    println!("\n{missed} bars missed");
}

fn cell(time: f64, slurm: f64) -> String {
    let ratio = time / slurm;
    let digits = if ratio < 0.01 { 5 } else { 3 };
    format!("{} {ratio:.digits$}", human(time))
}

fn human(seconds: f64) -> String {
    match seconds {
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} µs", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}

/// Does one thing and prints the memory it took; run as a child, so that nothing else counts.
fn hold(what: &str) {
    let count = if what.ends_with("10m") { 10_000_000 } else { 1_000_000 };
    if what != "nothing" {
        let list: hostlist::Hostlist = inputs::hosts(count).text.parse().expect("valid");
        let mut seen = list.len();
        if what.starts_with("iterate") {
            seen = 0;
            list.for_each(|_| seen += 1);
        }
        assert_eq!(seen, count);
    }
    println!("{}", measure::peak_kib());
}

fn peak_of(what: &str) -> String {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).arg(what).output().expect("this program runs");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
