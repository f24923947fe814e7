//! A table of nodes that is drawn over itself on a terminal, and printed when it has changed elsewhere.

use e2e::{Cluster, Machine, TestCloud};
use std::collections::BTreeMap;
use std::io::{IsTerminal as _, stdout};
use std::time::{Duration, Instant};

/// Between two tables where they cannot be drawn over each other.
const PAUSE: Duration = Duration::from_secs(2);

/// Where the table is shown.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: bool,
    /// Lines of the table that is on the screen.
    drawn: usize,
    last: String,
    when: Option<Instant>,
    /// What the images are called that the table has the ids of.
    images: BTreeMap<String, &'static str>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let images = BTreeMap::new();
        Self { terminal: stdout().is_terminal(), drawn: 0, last: String::new(), when: None, images }
    }

    /// What an image is called.
    pub(crate) fn name_image(&mut self, id: &str, name: &'static str) {
        self.images.insert(id.to_owned(), name);
    }

    /// A line of its own; the table goes on below it.
    pub(crate) fn say(&mut self, text: &str) {
        let (bold, plain) = if self.terminal { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        println!("\n{bold}{text}{plain}");
        self.drawn = 0;
        self.when = None;
    }

    /// Shows how things stand, if that is new.
    pub(crate) fn show<C: TestCloud>(&mut self, cluster: &Cluster<C>) {
        let table = self.table(cluster);
        let soon = self.when.is_some_and(|when| when.elapsed() < PAUSE);
        if table == self.last || (soon && !self.terminal) {
            return;
        }
        if self.terminal && self.drawn > 0 {
            print!("\x1b[{}A\x1b[J", self.drawn);
        } else if self.drawn > 0 {
            println!();
        }
        print!("{table}");
        self.drawn = table.lines().count();
        self.last = table;
        self.when = Some(Instant::now());
    }

    /// Shows the last state, however soon after the one before.
    pub(crate) fn settle<C: TestCloud>(&mut self, cluster: &Cluster<C>) {
        self.when = None;
        self.show(cluster);
    }

    /// Node, Slurm's state, the cloud's, the zone, the address, the image and the job of each node that has any.
    fn table<C: TestCloud>(&self, cluster: &Cluster<C>) -> String {
        let (states, jobs, machines) = (cluster.nodes(), jobs(cluster), cluster.present());
        let mut text = row(["NODE", "SLURM", "CLOUD", "ZONE", "ADDRESS", "IMAGE", "JOB"]);
        let mut asleep = 0;
        for (node, state) in &states {
            let machine = machines.iter().find(|machine| machine.name == *node);
            let job = jobs.get(node).map(String::as_str).unwrap_or_default();
            let Some(Machine { state: cloud, zone, address, image, .. }) = machine else {
                if state.contains("POWERED_DOWN") && job.is_empty() {
                    asleep += 1;
                } else {
                    text.push_str(&row([node, &short(state), "-", "-", "-", "-", job]));
                }
                continue;
            };
            let zone = zone.rsplit(':').next().unwrap_or_default().trim_start_matches("PHX-");
            let image = self.images.get(image).copied().unwrap_or_default();
            text.push_str(&row([node, &short(state), cloud, zone, address, image, job]));
        }
        if asleep > 0 {
            let rest = format!("  and {asleep} powered down\n");
            text.push_str(&rest);
        }
        text
    }
}

fn row(columns: [&str; 7]) -> String {
    let [node, slurm, cloud, zone, address, image, job] = columns;
    format!("  {node:<24} {slurm:<28} {cloud:<13} {zone:<5} {address:<11} {image:<7} {job}\n")
}

/// Without what all of them are.
fn short(state: &str) -> String {
    state.replace("+CLOUD", "").replace("+NOT_RESPONDING", "")
}

/// The job on each node.
fn jobs<C: TestCloud>(cluster: &Cluster<C>) -> BTreeMap<String, String> {
    let text = cluster.ask("squeue", &["--noheader", "--format=%i %j %N"]);
    let mut jobs = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(id), Some(name), Some(nodes)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        for node in cluster.ask("scontrol", &["show", "hostnames", nodes]).lines() {
            jobs.insert(node.to_owned(), format!("{id} ({name})"));
        }
    }
    jobs
}
