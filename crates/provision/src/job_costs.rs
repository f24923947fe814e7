//! Whose jobs ran on which CPUs, for what machines cost; and when, for the timeline.

use crate::world::Roster;
use cloud_core::Tags;
use history::cost::{JobRun, Owner, spread};
use history::millis;
use history::timeline::JobBar;
use hostlist::NodeName;
use slurmconf::NodeDef;
use slurmctl::{JobId, JobOwner, JobRecord};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// How many CPUs slurm.conf gives a node; 0 if it does not say.
#[must_use]
pub fn cpus(conf: &Roster<'_>, node: &str) -> u32 {
    let def = NodeName::new(node).ok().and_then(|name| conf.get(&name));
    def.map(cpus_of).unwrap_or_default()
}

fn cpus_of(def: &NodeDef) -> u32 {
    let product = || {
        let parts = [def.sockets, def.cores_per_socket, def.threads_per_core];
        let boards = def.sockets_per_board.map(|sockets| sockets * def.boards.unwrap_or(1));
        let [sockets, cores, threads] = parts;
        boards.or(sockets).map(|sockets| sockets * cores.unwrap_or(1) * threads.unwrap_or(1))
    };
    // Without any of them, Slurm takes a node to have one.
    def.cpus.or_else(product).unwrap_or(1)
}

/// The runs of jobs, as Slurm's accounting has them.
#[must_use]
pub fn job_runs(records: &[JobRecord], conf: &Roster<'_>, now: SystemTime) -> Vec<JobRun> {
    let run = |record: &JobRecord| {
        let names: Vec<String> = record.nodes.iter().collect();
        let known: Vec<u32> = names.iter().map(|name| cpus(conf, name)).collect();
        let nodes = names.into_iter().zip(spread(record.cpus, &known)).collect();
        let owner = Owner {
            job: record.id.to_string(),
            user: record.user.clone(),
            account: record.account.clone(),
            partition: record.partition.clone(),
        };
        JobRun {
            owner,
            nodes,
            from: millis(record.start),
            until: millis(record.end.unwrap_or(now)),
        }
    };
    records.iter().map(run).collect()
}

/// The jobs of a timeline, as Slurm's accounting has them: a job that was requeued waits from its first run on, and ends with
/// its last.
#[must_use]
pub fn job_bars(records: &[JobRecord]) -> Vec<JobBar> {
    let mut bars: BTreeMap<u32, JobBar> = BTreeMap::new();
    for record in records {
        let id = record.id.get();
        let bar =
            bars.entry(id).or_insert_with(|| JobBar { id, waits: u64::MAX, ..JobBar::default() });
        bar.waits = bar.waits.min(millis(record.eligible));
        // Runs come in the order in which they began.
        bar.label = format!("{} ({})", record.name, record.user);
        bar.runs = Some(millis(record.start));
        bar.ends = record.end.map(millis);
        bar.nodes = record.nodes.iter().collect();
        bar.state = Some(record.state.clone());
    }
    bars.into_values().collect()
}

/// Longest value of a tag that every cloud takes.
const LONGEST_TAG: usize = 255;

/// The tags of machines that are launched for one job alone, as far as is known whose it is.
#[must_use]
pub fn labels(job: JobId, owner: Option<&JobOwner>) -> Tags {
    let value = |text: &str| -> String {
        text.chars().filter(|letter| !letter.is_control()).take(LONGEST_TAG).collect()
    };
    let mut labels = Tags::from([("job", job.to_string())]);
    if let Some(JobOwner { user, account }) = owner {
        for (key, text) in [("user", user), ("account", account)] {
            if !text.is_empty() {
                labels = labels.with(key, value(text));
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use slurmconf::Config;

    #[test]
    fn labels_are_short_and_never_empty() {
        let owner = JobOwner { user: "ada\n".repeat(100), account: String::new() };
        let labels = labels(JobId::new(7), Some(&owner));
        assert_eq!(labels.get("job"), Some("7"));
        assert_eq!(labels.get("user").map(str::len), Some(LONGEST_TAG));
        assert_eq!(labels.get("account"), None);
    }

    #[test]
    fn a_requeued_job_is_one_bar_that_waits_from_its_first_run_on() {
        let at = |seconds| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let run = |eligible, start, end: Option<u64>, nodes: &str, state: &str| JobRecord {
            id: JobId::new(7),
            user: "ada".to_owned(),
            account: String::new(),
            partition: "main".to_owned(),
            nodes: nodes.parse().unwrap(),
            cpus: 2,
            start: at(start),
            end: end.map(at),
            eligible: at(eligible),
            state: state.to_owned(),
            name: "solve".to_owned(),
        };
        let runs = [run(1, 2, Some(3), "n1", "REQUEUED"), run(5, 6, None, "n[2-3]", "RUNNING")];
        let expected = JobBar {
            id: 7,
            label: "solve (ada)".to_owned(),
            waits: 1_000,
            runs: Some(6_000),
            ends: None,
            nodes: vec!["n2".to_owned(), "n3".to_owned()],
            state: Some("RUNNING".to_owned()),
        };
        assert_eq!(job_bars(&runs), [expected]);
    }

    #[test]
    fn a_node_has_the_cpus_that_slurm_counts() {
        let config = Config::parse(
            "NodeName=a CPUs=8\nNodeName=b Sockets=2 CoresPerSocket=4 ThreadsPerCore=2\n\
             NodeName=c Boards=2 SocketsPerBoard=1 CoresPerSocket=3\nNodeName=d\n",
        );
        let config = config.unwrap();
        let roster = Roster::new(&config);
        assert_eq!(["a", "b", "c", "d", "e"].map(|name| cpus(&roster, name)), [8, 16, 6, 1, 0]);
    }
}
