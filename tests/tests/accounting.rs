//! What jobs cost by Slurm's accounting, with a real slurmdbd on a real `MariaDB`.
#![expect(clippy::indexing_slicing, reason = "a missing field of JSON is null")]

use e2e::{Accounting, Cluster, in_namespaces};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// An hour of a machine costs so much that seconds are worth many cents.
const PRICE: u64 = 3600;

/// A cent, in its thousandths.
const CENT: u64 = 1000;

/// CPUs of a node.
const CPUS: u64 = 2;

/// Milliseconds since 1970.
type Span = (u64, u64);

fn overlap(one: Span, other: Span) -> u64 {
    one.1.min(other.1).saturating_sub(one.0.max(other.0))
}

/// The machines by node, from the raw lines of the log.
fn machines(cluster: &Cluster, now: u64) -> Vec<(String, Span)> {
    let text = fs::read_to_string(cluster.dir().join("elastic/events.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of =
        |event: &str| lines.iter().filter(move |line| line["event"] == event).collect::<Vec<_>>();
    let ends = of("terminated");
    let machine = |begun: &&Value| {
        let end = ends.iter().find(|end| end["instance"] == begun["instance"]);
        let end = end.map_or(now, |end| end["at"].as_u64().unwrap());
        (begun["node"].as_str().unwrap().to_owned(), (begun["at"].as_u64().unwrap(), end))
    };
    of("launched").iter().map(machine).collect()
}

/// What each user owes in thousandths of a cent, by hand from sacct's raw fields: times, nodes and CPUs.
fn by_hand(cluster: &Cluster, machines: &[(String, Span)]) -> BTreeMap<String, u64> {
    let fields = "--format=User,NodeList,AllocCPUS,NNodes,ElapsedRaw,Start";
    let arguments = ["-a", "-X", "-D", "-n", "-P", "--starttime=now-1hours", fields];
    let text = cluster.ask("sacct", &arguments);
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('|').collect();
        let [user, nodes, cpus, count, elapsed, start] = fields[..] else { panic!("{line}") };
        if nodes == "None assigned" {
            continue;
        }
        let begin = seconds(start) * 1000;
        let run = (begin, begin + elapsed.parse::<u64>().unwrap() * 1000);
        let [cpus, count] = [cpus, count].map(|number| number.parse::<u64>().unwrap());
        for node in cluster.ask("scontrol", &["show", "hostnames", nodes]).lines() {
            let own = machines.iter().filter(|(name, _)| name == node);
            let millis: u64 = own.map(|(_, span)| overlap(*span, run)).sum();
            // A machine costs a tenth of a cent in a millisecond; of that the job pays for its share of the CPUs.
            let owed = millis * 100 * cpus / (count * CPUS);
            *sums.entry(user.to_owned()).or_default() += owed;
        }
    }
    sums
}

/// A time that Slurm prints, in seconds since 1970.
fn seconds(text: &str) -> u64 {
    let output = std::process::Command::new("date").args(["-d", text, "+%s"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

fn three_users(series: &str) {
    let cluster = Cluster::builder(series).nodes(4).suspend_time(5).credential(60).start();
    let _accounting = Accounting::start(&cluster, series);
    let prices = format!("currency: USD\nshapes: {{VM.Standard2.1: {PRICE}}}\n");
    fs::write(cluster.dir().join("etc/prices.yaml"), prices).unwrap();
    let users = ["games", "mail", "news"];
    for (user, account) in users.iter().zip(["physics", "physics", "chemistry"]) {
        let _ = cluster.slurm("sacctmgr", &["-i", "add", "account", account]);
        let account = format!("account={account}");
        let _ = cluster.ask("sacctmgr", &["-i", "add", "user", user, &account]);
    }
    // Whole nodes, one CPU, two jobs on one node, and one that is requeued.
    let submit = |user: &str, options: &[&str], seconds: u32| {
        let user = format!("--uid={user}");
        let own = ["--output=/dev/null", "--error=/dev/null", "--chdir=/tmp", &user];
        cluster.submit(&[&own[..], options].concat(), &format!("sleep {seconds}"))
    };
    let jobs = [
        submit("games", &["--nodes=2", "--exclusive"], 6),
        submit("mail", &["--ntasks=1"], 8),
        submit("news", &["--ntasks=1"], 5),
        submit("news", &["--nodes=1", "--exclusive", "--requeue"], 12),
    ];
    let [.., last] = jobs;
    cluster.wait_job(last, "RUNNING");
    cluster.scontrol(&format!("requeue {last}"));
    for job in jobs {
        cluster.wait_job(job, "COMPLETED");
    }
    cluster.wait_empty();
    let now = seconds("now") * 1000;
    let machines = machines(&cluster, now);
    assert!(machines.len() >= 4, "{machines:?}");
    let hand = by_hand(&cluster, &machines);
    let total: u64 = machines.iter().map(|(_, (from, until))| until - from).sum();
    let total = total * 100;
    let arguments = ["--since", "1h", "--json", "--by", "user"];
    let json: Value = serde_json::from_str(&cluster.well("cost", &arguments)).unwrap();
    let cents =
        |amount: &Value| amount.as_str().unwrap().replace('.', "").parse::<u64>().unwrap() * 1000;
    for row in json["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        println!(
            "{name}: {} of jobs, {} idle; by hand {:?}",
            row["jobs"],
            row["idle"],
            hand.get(name)
        );
        if let Some(hand) = hand.get(name) {
            assert!(cents(&row["jobs"]).abs_diff(*hand) <= CENT, "{name}: {row} {hand}");
        }
    }
    assert_eq!(hand.keys().map(String::as_str).collect::<Vec<_>>(), users, "{json}");
    let sum = cents(&json["total"]["jobs"]) + cents(&json["total"]["idle"]);
    assert!(sum.abs_diff(total) <= CENT, "{sum} {total}");
    let jobs: u64 = hand.values().sum();
    assert!(cents(&json["total"]["jobs"]).abs_diff(jobs) <= CENT, "{jobs} {json}");
    println!("machines by hand {total}, cost says {sum}, in thousandths of a cent");
    let accounts = cluster.well("cost", &["--since", "1h", "--csv", "--by", "account"]);
    assert!(accounts.contains("\nphysics,") && accounts.contains("\nchemistry,"), "{accounts}");
}

#[test]
fn jobs_of_three_users_agree_with_a_sum_made_by_hand_on_22_05() {
    in_namespaces(|| three_users("22.05"));
}

#[test]
fn jobs_of_three_users_agree_with_a_sum_made_by_hand_on_24_11() {
    in_namespaces(|| three_users("24.11"));
}

#[test]
fn jobs_of_three_users_agree_with_a_sum_made_by_hand_on_26_05() {
    in_namespaces(|| three_users("26.05"));
}
