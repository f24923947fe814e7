//! What is not known is not reported as done, as well or as empty.

use crate::fixture::{Ended, Fixture, program};
use serde_json::Value;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

const NODE: &str = "vm-standard2-1-ad1-0001";
const OTHER: &str = "vm-standard2-1-ad1-0002";

/// How long a program may take that has nothing to wait for, on a machine that is busy.
const SOON: Duration = Duration::from_secs(10);

/// A cluster whose slurmctld is given up after seconds.
fn cluster() -> Fixture {
    let impatient =
        |conf: &mut String| *conf = conf.replace("MessageTimeout=60", "MessageTimeout=5");
    Fixture::with(|_| {}, impatient).running()
}

/// As slurmctld calls.
fn by_slurmctld(stage: &Fixture, name: &str, arguments: &[&str]) -> Ended {
    let mut command = stage.command(name, arguments);
    command.env("SLURM_CONF", stage.path("etc/slurm.conf"));
    Ended::of(&command.output().unwrap(), stage.dir.path())
}

#[test]
fn a_stop_by_hand_needs_an_answer_of_slurmctld() {
    let mut stage = cluster();
    stage.run("startnode", &[&format!("{NODE},{OTHER}")]).with_code(0);
    stage.slurm.stop();
    for arguments in [&[NODE][..], &["--dry-run", NODE]] {
        let ended = stage.run("stopnode", arguments).with_code(1);
        let text = ended.text();
        assert!(text.contains("slurmctld does not answer") && text.contains("--now"), "{text}");
        assert_eq!(stage.live().len(), 2, "{text}");
    }
    let ended = stage.run("finish", &["--check"]).with_code(1);
    assert!(ended.stdout.contains("fail slurmctld does not answer"), "{ended:#?}");
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    assert_eq!(stage.live(), [OTHER]);
    // slurmctld knows why it has called, and may have ended since.
    by_slurmctld(&stage, "stopnode", &[OTHER]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

/// A check where the directory `var/elastic` of the stage has this mounted, with what was done there before.
fn check_on(stage: &Fixture, options: &str, before: &str) -> Ended {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-eu", "-c"]);
    command.arg(format!("mount -t tmpfs -o {options} none var/elastic\n{before}\nexec \"$@\""));
    command.args(["sh", program("finish"), "--config", "startnode.yaml", "--check"]);
    command.env("HOME", stage.path("home")).current_dir(stage.dir.path());
    Ended::of(&command.output().unwrap(), stage.dir.path())
}

#[test]
fn a_check_fails_on_a_state_directory_that_cannot_be_written_and_makes_nothing() {
    let stage = cluster();
    let _ = fs::remove_file(stage.path("log/elastic.log"));
    stage.run("finish", &["--check"]).with_code(0);
    assert!(!stage.path("log/elastic.log").exists(), "a check makes no log");
    let text = stage.configuration().replace("/state,", "/var/elastic,");
    stage.write("startnode.yaml", &text);
    let ended = stage.run("finish", &["--check"]).with_code(1);
    let missing = "fail state directory DIR/var/elastic does not exist";
    assert!(ended.stdout.contains(missing), "{ended:#?}");
    assert!(!stage.path("var").exists(), "a check makes no directory");
    fs::create_dir_all(stage.path("var/elastic")).unwrap();
    stage.run("finish", &["--check"]).with_code(0);
    assert_eq!(fs::read_dir(stage.path("var/elastic")).unwrap().count(), 0, "nor anything in it");
    let full = "dd if=/dev/zero of=var/elastic/fill bs=4096 count=64 2>/dev/null || :";
    for (options, before, why) in
        [("size=64k", full, "No space left on device"), ("ro", ":", "Read-only file system")]
    {
        let ended = check_on(&stage, options, before).with_code(1);
        let line = format!("fail cannot write state directory DIR/var/elastic: {why}");
        assert!(ended.stdout.contains(&line), "{ended:#?}");
    }
}

#[test]
fn a_preview_of_reconcile_claims_no_work() {
    let stage = cluster();
    let text = stage.configuration().replace("cooldown: 5s", "cooldown: 5s, grace: 0s");
    stage.write("startnode.yaml", &text);
    stage.run("startnode", &[NODE]).with_code(0);
    let first = stage.run("reconcile", &[]).with_code(0).stdout;
    assert!(first.contains("nothing to do on this run"), "{first}");
    assert!(first.contains("terminated if still there on the next run"), "{first}");
    stage.run("reconcile", &["--apply"]).with_code(0);
    let second = stage.run("reconcile", &[]).with_code(0).stdout;
    assert!(second.contains("(to be repaired)") && !second.contains("(repaired)"), "{second}");
    assert_eq!(stage.live(), [NODE]);
    let applied = stage.run("reconcile", &["--apply"]).with_code(0).stdout;
    assert!(applied.contains("(repaired)"), "{applied}");
}

#[test]
fn a_cloud_that_nobody_reaches_is_not_an_empty_one_and_not_waited_for() {
    let stage = cluster();
    stage.run("startnode", &[NODE]).with_code(0);
    // Nobody listens there.
    let text = stage.configuration();
    let (_, address) = text.split_once("endpoint: ").unwrap();
    let address = address.lines().next().unwrap();
    stage.write("startnode.yaml", &text.replace(address, "http://127.0.0.1:9"));
    // It took four minutes.
    let at_once = |name, arguments: &[&str]| {
        let begun = Instant::now();
        let ended = stage.run(name, arguments).with_code(1);
        assert!(begun.elapsed() < SOON, "{:?}: {ended:#?}", begun.elapsed());
        ended
    };
    let preview = at_once("stopnode", &["--all", "--dry-run"]);
    assert!(preview.stdout.contains("stop all: not known what is to be done"), "{preview:#?}");
    assert!(!preview.stdout.contains("nothing to do"), "{preview:#?}");
    let forced = at_once("stopnode", &["--all", "--force"]);
    assert_eq!(forced.stderr.matches("no connection to").count(), 1, "{forced:#?}");
    let log = stage.read("log/elastic.log");
    assert!(log.contains("0 nodes, 0 failed; the instances could not be listed"), "{log}");
    at_once("listnodes", &[]).saying(&["no connection to 127.0.0.1"]);
}

#[test]
fn a_log_that_cannot_be_opened_is_reported_beside_a_bad_configuration() {
    let stage = Fixture::new();
    stage.write("startnode.yaml", "compartment_id: [\n");
    let ended = stage.run("startnode", &["--log", "/nonexistent/elastic.log", NODE]).with_code(2);
    let _ = ended.saying(&["no log: cannot open /nonexistent/elastic.log", "startnode.yaml:"]);
}

#[test]
fn a_node_without_a_machine_is_neither_stopped_nor_of_another_image() {
    let stage = cluster();
    let ended = stage.run("stopnode", &[NODE]).with_code(0);
    assert_eq!(ended.stdout, format!("{NODE}: no machine\n"), "{ended:#?}");
    stage.run("startnode", &[NODE]).with_code(0);
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    // The cloud lists the machine for a while after its end.
    let status = stage.run("rebuild", &["status"]).with_code(0).stdout;
    assert!(!status.contains(NODE), "{status}");
    let status = stage.run("rebuild", &["status", "--json", NODE]).with_code(0);
    let rows: Value = serde_json::from_str(&status.stdout).unwrap();
    let target = rows[0]["target"].as_str().unwrap();
    let start = stage.run("startnode", &["--dry-run", NODE]).with_code(0).stdout;
    assert!(start.contains(&format!("image={target}")), "{target}: {start}");
}

#[test]
fn pending_jobs_that_will_not_fit_are_named() {
    let stage = cluster();
    stage.slurm.ask("sbatch", &["--hold", "--nodes=4", "--wrap=true"]);
    stage.write("limits.yaml", "VM.Standard2.1: {1: 2}\n");
    for name in ["finish", "resize"] {
        let ended = stage.run(name, &["--dry-run"]).with_code(0);
        let _ = ended.saying(&["job 1 needs 4 nodes, and partition compute will have 2"]);
    }
}
