//! A state directory that is lost or hostile, and listings that are none or behind: jobs complete all the same.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, USUAL, in_namespaces};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// More launches of a node than a start had time for when it tried one used-up token after another.
const STARTS: usize = 14;

fn state(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.dir().join("elastic").join(name)
}

/// Every listing of instances answers with this text.
fn listings_say(cluster: &Cluster, text: &str) {
    cluster.cloud().add_fault(&Rule::always("ListInstances", Fault::answer(200, "", text)));
}

/// Runs a job on the node, and waits until its machine is gone.
fn job_completes(cluster: &Cluster) {
    let job = cluster.submit(&["--nodes=1", &format!("--nodelist={NODE}")], "srun hostname");
    cluster.until(&format!("job {job} is COMPLETED"), || {
        assert!(cluster.live().len() <= 1, "{}", cluster.story());
        cluster.job(job, "JobState") == "COMPLETED"
    });
    cluster.wait_empty();
}

fn fifo(path: &PathBuf) {
    let _ = fs::remove_file(path);
    let made = Command::new("mkfifo").args(["-m", "666"]).arg(path).status().unwrap();
    assert!(made.success(), "{}", path.display());
}

#[test]
fn a_hostile_state_directory_and_hostile_listings_lose_no_job() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(1).resume_timeout(30).start();
        tokens_of_lost_states_are_skipped(&cluster);
        fifos_and_giant_files_hang_nobody(&cluster);
        an_answer_that_is_no_list_ends_nothing(&cluster);
        a_listing_that_is_behind_makes_no_twin(&cluster);
    });
}

/// Each start finds the tokens of all starts before it used up, and nothing written down about them.
fn tokens_of_lost_states_are_skipped(cluster: &Cluster) {
    for number in 1..=STARTS {
        let begun = Instant::now();
        let _ = cluster.well("startnode", &[NODE]);
        assert!(begun.elapsed() < Duration::from_secs(25), "start {number}: {:?}", begun.elapsed());
        let _ = cluster.well("stopnode", &["--now", NODE]);
        cluster.until("the machine is gone", || cluster.live().is_empty());
        fs::remove_dir_all(state(cluster, "nodes")).unwrap();
    }
    job_completes(cluster);
}

fn fifos_and_giant_files_hang_nobody(cluster: &Cluster) {
    for name in ["cooldowns.json", "events.jsonl", &format!("yield/{NODE}")] {
        fifo(&state(cluster, name));
    }
    let giant = fs::File::create(state(cluster, "sightings.json")).unwrap();
    giant.set_len(1 << 40).unwrap();
    job_completes(cluster);
    let _ = cluster.run("reconcile", &["--apply"]);
    let log = cluster.dir().join("log/elastic.log");
    let kept = log.with_extension("kept");
    fs::rename(&log, &kept).unwrap();
    fifo(&log);
    job_completes(cluster);
    fs::rename(&kept, &log).unwrap();
    fs::remove_dir_all(cluster.dir().join("elastic")).unwrap();
}

/// `null` with status 200 is not an empty listing: what a reconcile does not see, it does not repair.
fn an_answer_that_is_no_list_ends_nothing(cluster: &Cluster) {
    let script = format!("{}; srun hostname", cluster.wait_for_file("go"));
    let job = cluster.submit(&["--nodes=1"], &script);
    cluster.wait_job(job, "RUNNING");
    let before = cluster.machines();
    listings_say(cluster, "null");
    for _ in 0..3 {
        let reconcile = cluster.run("reconcile", &["--apply"]);
        assert!(!reconcile.status.success(), "it saw nothing: {reconcile:?}");
    }
    assert_eq!(cluster.machines().len(), before.len(), "{}", cluster.story());
    cluster.cloud().clear_faults();
    cluster.let_go(&["go"]);
    cluster.wait_job(job, "COMPLETED");
    cluster.wait_empty();
}

/// No listing shows the machine while it starts.
fn a_listing_that_is_behind_makes_no_twin(cluster: &Cluster) {
    listings_say(cluster, "[]");
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.until(&format!("job {job} is COMPLETED"), || {
        assert!(cluster.live().len() <= 1, "{}", cluster.story());
        cluster.job(job, "JobState") == "COMPLETED"
    });
    cluster.cloud().clear_faults();
    cluster.wait_empty();
}
