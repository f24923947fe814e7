//! A budget that is reached in the middle of a start.
#![expect(clippy::indexing_slicing, reason = "a missing field of JSON is null")]

use e2e::{Cluster, on_each_release};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;

/// Milliseconds of a day.
const DAY: u64 = 86_400_000;

/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;

/// 32 jobs for a node each, of which 20 fit into the budget of the day. The day is moved by dating the log back.
fn reached_in_the_middle(series: &str) {
    wait_past_midnight();
    let cluster =
        Cluster::builder(series).nodes(32).suspend_time(3).config("budget: {per_day: 20}");
    let cluster = cluster.start();
    // What a start reserves, an hour or what is left of the day, is 1.00, and so is a millisecond of the machine of the past.
    let reserved = (DAY - now() % DAY).min(HOUR);
    let price = 1.0 / std::time::Duration::from_millis(reserved).as_secs_f64() * 3600.0;
    let prices =
        format!("currency: USD\nshapes: {{VM.Standard2.1: {price:.4}, VM.Past: 3600000}}\n");
    fs::write(cluster.dir().join("etc/prices.yaml"), prices).unwrap();
    let submit = |number: u32| {
        let node = format!("--nodelist=vm-standard2-1-ad1-{number:04}");
        cluster.submit(&[&node], &cluster.wait_for_file("go"))
    };
    let jobs: Vec<u32> = (1..=32).map(submit).collect();
    let count = |state: &str| {
        let all = cluster.ask("squeue", &["--noheader", "--states=all", "--format=%T"]);
        all.lines().filter(|line| line.trim() == state).count()
    };
    cluster.until("twenty jobs run, and twelve wait", || {
        (count("RUNNING"), count("PENDING")) == (20, 12)
    });
    let waits =
        |job: &&u32| cluster.ask("scontrol", &["show", "job", &job.to_string()]).contains("budget");
    cluster.until("the owners of twelve know why", || jobs.iter().filter(waits).count() == 12);
    assert_eq!(cluster.cloud().instances().len(), 20, "nothing above it\n{}", cluster.story());
    // The money of the day is spent for good, and the twenty end.
    let log = cluster.dir().join("elastic/events.jsonl");
    let now = now();
    for (event, at) in [("launched", now - 20), ("terminated", now)] {
        append(
            &log,
            &json!({"at": at, "run": "past", "event": event, "node": "past", "instance": "past", "shape": "VM.Past"}),
        );
    }
    cluster.let_go(&["go"]);
    cluster.until("the machines of the twenty are gone", || {
        count("COMPLETED") == 20 && cluster.machines().is_empty()
    });
    let refusals = || cluster.log("elastic.log").matches("USD spent this day").count();
    let before = refusals();
    cluster.until("Slurm has tried the twelve again", || refusals() >= before + 12);
    assert_eq!(cluster.cloud().instances().len(), 20, "nothing more today\n{}", cluster.story());
    // A day later, all of it was spent the day before.
    let text = fs::read_to_string(&log).unwrap();
    let yesterday: Vec<String> = text.lines().map(dated_back).collect();
    fs::write(&log, yesterday.join("\n") + "\n").unwrap();
    cluster.until("all have run", || count("COMPLETED") == 32);
    cluster.wait_empty();
    let of = cluster.cloud().instances().len();
    println!("{of} machines for 32 jobs, 20 of them on the first day");
    assert_eq!(of, 32, "each job had one machine\n{}", cluster.story());
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// The scenario takes a few minutes of one day.
fn wait_past_midnight() {
    let minutes = 5 * 60_000;
    e2e::wait_for(std::time::Duration::from_mins(6), || {
        (now() % DAY < DAY - minutes).then_some(())
    });
}

fn append(log: &std::path::Path, event: &Value) {
    let mut file = fs::OpenOptions::new().append(true).open(log).unwrap();
    file.write_all(format!("{event}\n").as_bytes()).unwrap();
}

/// The event of a day before.
fn dated_back(line: &str) -> String {
    let mut event: Value = serde_json::from_str(line).unwrap();
    let at = event["at"].as_u64().unwrap();
    event["at"] = (at - DAY).into();
    event.to_string()
}

on_each_release! {
    a_start_of_32_nodes: reached_in_the_middle;
}
