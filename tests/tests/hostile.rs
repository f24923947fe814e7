//! A state directory that is lost or broken, and a cloud whose answers are wrong or late: nothing is lost, nothing hangs, and
//! nothing is claimed that is not so.

use cloud_sim::{Fault, Rule};
use e2e::{Cluster, USUAL, in_namespaces};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// How often a node was started before its state is lost: with so many attempts, four seconds each, a start failed.
const STARTS: usize = 15;

/// Longer than any program takes here that hangs nowhere.
const SOON: Duration = Duration::from_mins(1);

/// Runs a program that must not hang.
fn soon(cluster: &Cluster, program: &str, arguments: &[&str]) -> Output {
    let begun = Instant::now();
    let output = Command::new("timeout")
        .args(["--signal=KILL", &SOON.as_secs().to_string()])
        .arg(cluster.dir().join("bin").join(program))
        .args(arguments)
        .current_dir(cluster.dir())
        .output()
        .unwrap();
    assert!(begun.elapsed() < SOON, "{program} {arguments:?} hangs\n{}", cluster.story());
    output
}

/// All that a program has said.
fn said(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{error}")
}

/// The number of accepted or refused launches since requests were forgotten.
fn launches(cluster: &Cluster) -> u64 {
    cluster.cloud().counts().get("LaunchInstance").copied().unwrap_or_default()
}

fn run_one(cluster: &Cluster) {
    let job = cluster.submit(&["--nodes=1"], "srun hostname");
    cluster.wait_job(job, "COMPLETED");
    assert_eq!(cluster.job(job, "Restarts"), "0", "{}", cluster.story());
}

fn shell(line: &str) {
    let status = Command::new("sh").args(["-euc", line]).status().unwrap();
    assert!(status.success(), "{line}");
}

#[test]
fn a_node_starts_without_its_state_however_often_it_was_started() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(1).resume_timeout(40).start();
        // Each leaves a retry token behind that nobody can use again.
        cluster.fate(NODE, "never");
        for _ in 0..STARTS {
            let _ = cluster.well("startnode", &[NODE]);
            let _ = cluster.well("stopnode", &["--now", NODE]);
        }
        cluster.clear_fates();
        let state = cluster.dir().join("elastic");
        let at = state.display();
        for read_only in [false, true] {
            cluster.wait_empty();
            fs::remove_dir_all(&state).unwrap();
            if read_only {
                fs::create_dir(&state).unwrap();
                shell(&format!("mount --bind {at} {at} && mount -o remount,bind,ro {at}"));
            }
            cluster.cloud().clear_requests();
            run_one(&cluster);
            let launches = launches(&cluster);
            assert!((1..=4).contains(&launches), "{launches}\n{}", cluster.story());
        }
        assert!(fs::read_dir(&state).unwrap().next().is_none(), "nobody could write there");
        cluster.wait_empty();
    });
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let all = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.flatten().collect()
}

#[test]
fn fifos_and_files_without_end_in_the_state_directory_stop_nobody() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL).nodes(1).resume_timeout(60).start();
        run_one(&cluster);
        cluster.wait_empty();
        let _ = cluster.well("reconcile", &["--apply"]);
        let state = cluster.dir().join("elastic");
        let there = files(&state);
        assert!(there.contains(&state.join("nodes").join(NODE)), "{there:?}");
        assert!(there.contains(&state.join("events.jsonl")), "{there:?}");
        let log = cluster.dir().join("log/elastic.log");
        for make in ["mkfifo", "truncate -s 1T"] {
            for path in there.iter().chain([&log]) {
                let path = path.display();
                shell(&format!("rm -f {path}; {make} {path}"));
            }
            for (program, arguments) in [
                ("listnodes", &[][..]),
                ("explain", &[NODE]),
                ("timeline", &[]),
                ("reconcile", &["--apply"]),
                ("finish", &["--check"]),
                ("rebuild", &["status"]),
                ("stopnode", &["--all", "--dry-run"]),
            ] {
                let _ = soon(&cluster, program, arguments);
            }
            run_one(&cluster);
            cluster.wait_empty();
        }
        fs::remove_file(log).unwrap();
    });
}

/// Has listings answer this, whatever there is.
fn listing(cluster: &Cluster, body: &str) {
    cluster.cloud().add_fault(&Rule::always("ListInstances", Fault::answer(200, "", body)));
}

#[test]
fn listings_that_lag_or_are_none_cost_no_machine_and_make_none() {
    in_namespaces(|| {
        let cluster = Cluster::builder(USUAL)
            .nodes(2)
            .resume_timeout(60)
            .suspend_time(600)
            .elastic("cooldown: 3s, grace: 0s")
            .start();
        // The listing is as it was before the launch.
        listing(&cluster, "[]");
        run_one(&cluster);
        let machines = cluster.machines();
        assert_eq!(machines.len(), 1, "{}", cluster.story());
        // And as it was before the end.
        cluster.cloud().clear_faults();
        listing(&cluster, &serde_json::to_string(&machines).unwrap());
        cluster.scontrol(&format!("update nodename={NODE} state=power_down"));
        cluster.until("the machine is gone", || cluster.live().is_empty());
        cluster
            .until("the node is powered down", || cluster.nodes()[NODE].contains("POWERED_DOWN"));
        let job = cluster.submit(&["--nodes=1", "--nodelist", NODE], "srun hostname");
        cluster.wait_job(job, "COMPLETED");
        let now = cluster.present();
        assert_eq!(now.len(), 1, "{}", cluster.story());
        assert_ne!(now[0].id, machines[0].id, "it is not taken for the machine that has ended");
        let both =
            || cluster.log("elastic.log").matches("end: start: 1 nodes, 0 failed").count() == 2;
        cluster.until("both starts have ended", both);
        // An answer, but no list: nothing is known. A repair takes two sightings.
        cluster.cloud().clear_faults();
        listing(&cluster, "null");
        for _ in 0..2 {
            let ended = soon(&cluster, "reconcile", &["--apply"]);
            let said = said(&ended);
            assert!(!ended.status.success() && said.contains("no repairs attempted"), "{said}");
        }
        assert_eq!(cluster.present(), now, "{}", cluster.story());
        assert!(!cluster.nodes()[NODE].contains("DOWN"), "{}", cluster.story());
    });
}
