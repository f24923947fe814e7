//! Broken inputs: each is refused with exit code 2 and a message that says where and what to do, and nothing is changed.

use crate::fixture::{Ended, Fixture, program};
use crate::slurm::wait;
use crate::snapshot;
use std::fs;
use std::process::Command;

/// Runs a program, and checks that files and cloud are unchanged.
fn unchanged(stage: &Fixture, name: &str, arguments: &[&str]) -> Ended {
    let before = stage.files();
    let ended = stage.run(name, arguments);
    assert_eq!(stage.files(), before, "files have changed: {ended:#?}");
    assert_eq!(stage.changes(), Vec::<String>::new(), "{ended:#?}");
    ended
}

#[test]
fn a_configuration_that_is_no_yaml() {
    let stage = Fixture::new();
    stage.write("startnode.yaml", "csp: oracle\ncompartment_id: [ocid1\n");
    for (name, arguments) in [
        ("startnode", &["n1"][..]),
        ("stopnode", &["n1"]),
        ("finish", &[]),
        ("rebuild", &["n1"]),
        ("resize", &["--to", "1"]),
        ("reconcile", &["--apply"]),
        ("listnodes", &[]),
    ] {
        unchanged(&stage, name, arguments).with_code(2).saying(&["DIR/startnode.yaml:"]);
    }
    snapshot::matches("broken-yaml", &stage.run("startnode", &["n1"]).text());
}

#[test]
fn all_that_is_wrong_with_a_configuration_at_once() {
    let stage = Fixture::new();
    let text =
        "csp: oracle\nauth: magic\nelastic: {concurrency: 0, cooldown: soon}\nclutser_id: c1\n";
    stage.write("startnode.yaml", text);
    snapshot::matches(
        "broken-configuration",
        &unchanged(&stage, "startnode", &["n1"]).with_code(2).text(),
    );
}

#[test]
fn no_configuration_at_all() {
    let stage = Fixture::new();
    fs::remove_file(stage.path("startnode.yaml")).unwrap();
    let ended = unchanged(&stage, "stopnode", &["n1"]).with_code(2);
    snapshot::matches("broken-no-configuration", &ended.text());
}

#[test]
fn an_unknown_shape() {
    let stage = Fixture::new();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 4}\nVM.Standrad2.2: {1: 4}\n");
    let ended = unchanged(&stage, "finish", &[]).with_code(2).saying(&["limits.yaml:2:1"]);
    snapshot::matches("broken-shape", &ended.text());
}

#[test]
fn limits_that_are_no_numbers() {
    let stage = Fixture::new();
    stage.write("limits.yaml", "VM.Standard2.1: {1: many}\nVM.Standard2.4: few\n");
    let ended = unchanged(&stage, "finish", &[]).with_code(2).saying(&["limits.yaml:1:"]);
    snapshot::matches("broken-limits", &ended.text());
}

#[test]
fn limits_that_are_no_yaml() {
    let stage = Fixture::new();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 4\n");
    let ended = unchanged(&stage, "finish", &[]).with_code(2).saying(&["limits.yaml:"]);
    snapshot::matches("broken-limits-yaml", &ended.text());
}

#[test]
fn no_limits() {
    let stage = Fixture::new();
    fs::remove_file(stage.path("limits.yaml")).unwrap();
    unchanged(&stage, "finish", &[]).with_code(2).saying(&["limits.yaml", "--limits"]);
}

#[test]
fn a_missing_marker() {
    let stage = Fixture::with(|_| {}, |conf| *conf = conf.replace("# ENDNODES\n", ""));
    let ended =
        unchanged(&stage, "finish", &[]).with_code(2).saying(&["DIR/etc/slurm.conf", "# ENDNODES"]);
    snapshot::matches("broken-marker", &ended.text());
}

#[test]
fn the_marker_that_is_there_is_not_asked_for() {
    let strip = |conf: &mut String| *conf = conf.replace("# STARTNODES\n", "");
    let stage = Fixture::with(|_| {}, strip);
    let ended = unchanged(&stage, "finish", &[]).with_code(2);
    snapshot::matches("broken-start-marker", &ended.text());
    stage.write("etc/slurm.conf", &stage.read("etc/slurm.conf").replace("# ENDNODES\n", ""));
    stage.write("etc/nodes.conf", "# STARTNODES\n");
    let conf = format!("{}Include nodes.conf\n", stage.read("etc/slurm.conf"));
    stage.write("etc/slurm.conf", &conf);
    unchanged(&stage, "finish", &[]).with_code(2).saying(&["DIR/etc/nodes.conf has a line"]);
}

#[test]
fn no_markers() {
    let strip = |conf: &mut String| {
        *conf = conf.replace("# ENDNODES\n", "").replace("# STARTNODES\n", "");
    };
    let stage = Fixture::with(|_| {}, strip);
    let ended = unchanged(&stage, "finish", &[]).with_code(2);
    snapshot::matches("broken-markers", &ended.text());
}

#[test]
fn limits_that_say_nothing_remove_no_node() {
    let stage = Fixture::new();
    for text in ["", "# VM.Standard2.1: {1: 4}\n", "---\n"] {
        stage.write("limits.yaml", text);
        let ended = unchanged(&stage, "finish", &[]).with_code(2);
        let _ = ended.saying(&["limits.yaml is empty", "write {} for no nodes at all"]);
    }
}

#[test]
fn a_partition_that_slurm_conf_has_too_is_refused_before_the_trial() {
    let stage = Fixture::with(|_| {}, |conf| *conf += "PartitionName=mine Nodes=ALL\n");
    stage.write("limits.yaml", "g: {shape: VM.Standard2.1, max: 2, partition: mine}\n");
    let ended = unchanged(&stage, "finish", &[]).with_code(2);
    let _ = ended.saying(&["limits.yaml", "DIR/etc/slurm.conf", "both define the partition mine"]);
}

#[test]
fn no_credentials() {
    let stage = Fixture::new();
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    for (name, arguments) in [("startnode", "n1"), ("stopnode", "n1"), ("listnodes", "n1")] {
        unchanged(&stage, name, &[arguments]).with_code(2).saying(&[".oci/config"]);
    }
}

#[test]
fn credentials_that_the_cloud_does_not_know() {
    let stage = Fixture::new().running();
    let config = stage.read("home/.oci/config").replace("15:5e", "00:00");
    stage.write("home/.oci/config", &config);
    unchanged(&stage, "startnode", &["vm-standard2-1-ad1-0001"]).with_code(2);
}

#[test]
fn a_node_name_that_leads_out_of_its_directory() {
    let stage = Fixture::new();
    for name in ["startnode", "stopnode", "rebuild", "listnodes"] {
        for node in ["../../etc", "n1,../../etc", "n1/x", "-n1"] {
            let ended = unchanged(&stage, name, &["--", node]).with_code(2);
            assert!(!ended.stderr.is_empty(), "{name} {node}");
        }
    }
    let ended = stage.run("startnode", &["../../etc"]).with_code(2);
    snapshot::matches("broken-node-name", &ended.text());
}

#[test]
fn a_host_list_that_is_none() {
    let stage = Fixture::new();
    for list in ["n[1-", "n[3-1]", "n[1-2]]", "", ","] {
        unchanged(&stage, "startnode", &[list]).with_code(2);
    }
    let ended = stage.run("startnode", &["n[3-1]"]).with_code(2);
    snapshot::matches("broken-host-list", &ended.text());
}

#[test]
fn more_nodes_than_slurm_can_have() {
    let stage = Fixture::new();
    let ended = unchanged(&stage, "startnode", &["n[1-100000]"]).with_code(2);
    snapshot::matches("broken-too-many", &ended.text());
    for name in ["startnode", "stopnode", "rebuild", "listnodes"] {
        let ended = unchanged(&stage, name, &["n[1-60000],m[1-60000]"]).with_code(2);
        let _ = ended.saying(&["more than 65536 nodes, the most that Slurm can have"]);
    }
}

/// Each made a lock, which is a file.
#[test]
fn names_that_no_node_has_make_no_files() {
    let stage = Fixture::new().running();
    for name in ["startnode", "stopnode", "rebuild"] {
        let ended = unchanged(&stage, name, &["n[1-60000]"]).with_code(1);
        let ended = ended.saying(&["n[1-60000]: ", "no such node in slurm.conf"]);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let locks = fs::read_dir(stage.path("state/nodes")).map_or(0, Iterator::count);
    assert_eq!(locks, 0, "a lock for a name that no node has");
    assert!(stage.read("log/elastic.log").lines().any(|line| line.contains("n[1-60000]:  ")));
}

#[test]
fn batches_of_no_nodes() {
    let stage = Fixture::new();
    for option in ["--batch", "--max-unavailable", "--stop-after"] {
        unchanged(&stage, "rebuild", &["submit", option, "0"])
            .with_code(2)
            .saying(&[&format!("for '{option}")]);
    }
}

#[test]
fn jobs_for_nodes_on_which_they_do_nothing() {
    let stage = Fixture::new().running();
    let ended = unchanged(&stage, "rebuild", &["submit", "--jobs", "compute"]).with_code(2);
    snapshot::matches("broken-elastic-jobs", &ended.text().replace(&version(&stage), "VERSION"));
}

fn version(stage: &Fixture) -> String {
    let text = stage.slurm.ask("scontrol", &["-V"]);
    text.split_whitespace().last().unwrap().to_owned()
}

#[test]
fn limits_that_remove_a_node_with_a_job() {
    let stage = Fixture::new().running();
    // It has its nodes as soon as Slurm has called for them, and keeps them while they boot.
    let arguments = ["--nodes=4", "--output=/dev/null", "--wrap", "true"];
    stage.slurm.ask("sbatch", &arguments);
    let queue = || stage.slurm.ask("squeue", &["--noheader", "--format=%T"]);
    wait("job with nodes", || (queue().trim() == "CONFIGURING").then_some(()), queue);
    stage.write("limits.yaml", "VM.Standard2.1: {1: 3}\n");
    let ended = unchanged(&stage, "finish", &[]).with_code(2);
    let ended = ended.saying(&[
        "vm-standard2-1-ad1-0004: job 1 is running there",
        "limits.yaml",
        "--force",
    ]);
    assert!(!ended.stderr.contains("ad1-0003"), "{ended:?}");
    assert!(stage.slurm.is_up());
}

/// A shell in a mount name space of its own: what it mounts is nobody else's.
fn apart(stage: &Fixture, script: &str) -> Ended {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-eu", "-c", script]);
    command
        .env("HOME", stage.path("home"))
        .env("D", stage.dir.path())
        .env("FINISH", program("finish"));
    Ended::of(&command.current_dir(stage.dir.path()).output().unwrap(), stage.dir.path())
}

#[test]
fn a_slurm_conf_that_may_not_be_written() {
    let stage = Fixture::new().running();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let before = stage.files();
    let script = "mount --bind $D/etc $D/etc && mount -o remount,bind,ro $D/etc\n\
                  exec $FINISH --config startnode.yaml --no-prove";
    let ended = apart(&stage, script).with_code(2);
    ended.saying(&["cannot write DIR/etc/slurm.conf: Read-only file system", "run it again"]);
    assert_eq!(stage.files(), before);
    assert_eq!(stage.changes(), Vec::<String>::new());
}

#[test]
fn a_disk_that_is_full() {
    let stage = Fixture::new().running();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let old = stage.read("etc/slurm.conf");
    // The rest of the disk is taken by another file; what is left is too little for a second slurm.conf.
    let script = "cp -r $D/etc $D/copy && mount -t tmpfs -o size=32k tmpfs $D/etc && cp $D/copy/* $D/etc/\n\
                  head -c 100000 /dev/zero > $D/etc/filler 2>/dev/null || true\n\
                  ls $D/etc > $D/before; code=0\n\
                  $FINISH --config startnode.yaml --no-prove || code=$?\n\
                  cp $D/etc/slurm.conf $D/after.conf; ls $D/etc > $D/after; exit $code";
    apart(&stage, script)
        .with_code(2)
        .saying(&["cannot write DIR/etc/slurm.conf: No space left", "make room"]);
    assert_eq!(stage.read("after.conf"), old, "the old file is not intact");
    assert_eq!(stage.read("after"), stage.read("before"), "something is left over");
    assert_eq!(stage.changes(), Vec::<String>::new());
}

/// A resume file with this text, and what became of a call with it.
fn resumed(stage: &Fixture, arguments: &[&str], name: &str, text: Option<&str>) -> Ended {
    let file = stage.path(name);
    if let Some(text) = text {
        fs::write(&file, text).unwrap();
    }
    let mut command = stage.command("startnode", arguments);
    let output = command.env("SLURM_RESUME_FILE", &file).output().unwrap();
    Ended::of(&output, stage.dir.path())
}

#[test]
fn a_resume_file_that_is_gone_or_garbage_starts_nothing() {
    let stage = Fixture::new().running();
    let node = "vm-standard2-1-ad1-0001";
    for (name, text, why) in [
        ("gone", None, "cannot be read: No such file or directory"),
        ("cut", Some("{\"jobs\": ["), "is not JSON: EOF while parsing a list at line 1 column 10"),
        ("noise", Some("\u{1}\u{2}"), "is not JSON: expected value at line 1 column 1"),
        ("other", Some("{}"), "has no list of jobs"),
    ] {
        let why = format!("DIR/{name}: the resume file {why}");
        for arguments in [&[node][..], &["--dry-run", node]] {
            let ended = resumed(&stage, arguments, name, text).with_code(2);
            let _ = ended.saying(&[&why, "unset SLURM_RESUME_FILE"]);
        }
        assert_eq!(stage.changes(), Vec::<String>::new());
    }
    let left = resumed(&stage, &["--failed", node], "gone", None);
    let _ = left.with_code(0);
}

#[test]
fn an_empty_resume_file_groups_no_nodes() {
    let stage = Fixture::new().running();
    let node = "vm-standard2-1-ad1-0001";
    let why = "resume: the resume file is empty";
    let ended = resumed(&stage, &[node], "resume", Some("")).with_code(0);
    let ended = ended.saying(&[why, "start on their own"]);
    assert_eq!(stage.live(), [node], "{ended:?}");
    let log = stage.read("log/elastic.log");
    assert!(log.lines().any(|it| it.contains(" WARNING ") && it.contains(why)), "{log}");
}
