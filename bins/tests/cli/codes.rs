//! Every program: what it says of itself, and its three exit codes.

use crate::fixture::{Ended, Fixture, PROGRAMS, answer, program};
use crate::slurm::wait;
use crate::snapshot;
use cloud_sim::Rule;
use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

const NODE: &str = "vm-standard2-1-ad1-0001";

fn bare(name: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(program(name));
    let output = command.args(arguments).env_clear().stdin(Stdio::null()).output().unwrap();
    Ended::of(&output, "/nowhere".as_ref())
}

#[test]
fn help() {
    for name in PROGRAMS {
        let ended = bare(name, &["--help"]).with_code(0);
        assert!(ended.stdout.contains("Examples:"), "{name}");
        assert!(ended.stdout.contains("Exit code: 0"), "{name}");
        snapshot::matches(&format!("help-{name}"), &ended.stdout);
    }
    let ended = bare("slurm-elastic", &["--help"]).with_code(0);
    snapshot::matches("help-slurm-elastic", &ended.stdout);
    for command in ["submit", "status", "image"] {
        let ended = bare("rebuild", &[command, "--help"]).with_code(0);
        snapshot::matches(&format!("help-rebuild-{command}"), &ended.stdout);
    }
}

#[test]
fn version() {
    for name in PROGRAMS {
        let ended = bare(name, &["--version"]).with_code(0);
        assert_eq!(ended.stdout, format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
    }
}

#[test]
fn wrong_usage() {
    let calls: [(&str, &[&str]); 13] = [
        ("startnode", &[]),
        ("startnode", &["--frobnicate", "n1"]),
        ("startnode", &["n1", "n2"]),
        ("stopnode", &[]),
        ("stopnode", &["--all", "n1"]),
        ("stopnode", &["--force", "n1"]),
        ("finish", &["--style", "roman"]),
        ("finish", &["--check", "--print"]),
        ("rebuild", &["image", "n1"]),
        ("resize", &["--partition", "compute"]),
        ("resize", &["--to", "2", "--limits", "other.yaml"]),
        ("reconcile", &["--apply", "--dry-run"]),
        ("listnodes", &["--csv", "--json"]),
    ];
    let mut all = String::new();
    for (name, arguments) in calls {
        let ended = bare(name, arguments).with_code(2);
        assert_eq!(ended.stdout, "");
        let words = arguments.join(" ");
        writeln!(all, "$ {name} {words}\n{}", ended.stderr).unwrap();
    }
    snapshot::matches("usage", &all);
}

#[test]
fn a_subcommand_is_the_program() {
    for program in &bins::programs::PROGRAMS {
        for name in [program.subcommand, program.name] {
            let ended = bare("slurm-elastic", &[name, "--help"]).with_code(0);
            let usage = format!("Usage: slurm-elastic {}", program.subcommand);
            assert!(ended.stdout.contains(&usage), "{name}: {ended:?}");
        }
    }
    let stage = Fixture::new().running();
    let plan = stage.run("startnode", &["--dry-run", NODE]).with_code(0).stdout;
    assert_eq!(stage.run("slurm-elastic", &["start", "--dry-run", NODE]).with_code(0).stdout, plan);
}

#[test]
fn a_name_that_is_not_ours_is_wrong_usage() {
    let mut command = Command::new(program("slurm-elastic"));
    command.arg0("/opt/frobnicate").arg(NODE).env_clear().stdin(Stdio::null());
    let ended = Ended::of(&command.output().unwrap(), "/nowhere".as_ref()).with_code(2);
    let _ = ended.saying(&["/opt/frobnicate", "startnode-failed", "kill_all_nodes"]);
}

#[test]
fn a_call_by_another_name() {
    let stage = Fixture::new().running();
    let link = stage.path("startnode-failed");
    std::os::unix::fs::symlink(program("startnode"), &link).unwrap();
    let mut command = Command::new(&link);
    command.arg("--config").arg(stage.path("startnode.yaml")).args(["--dry-run", NODE]);
    let output = command.env_clear().env("HOME", stage.path("home")).output().unwrap();
    let ended = Ended::of(&output, stage.dir.path()).with_code(0);
    assert!(ended.stdout.starts_with("failed"), "{ended:?}");
}

/// All well.
#[test]
fn zero() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let calls: [(&str, &[&str]); 9] = [
        ("finish", &[]),
        ("finish", &["--check"]),
        ("listnodes", &[]),
        ("listnodes", &["--json", "--all"]),
        ("rebuild", &["status"]),
        ("rebuild", &["image", NODE, "--name", "golden"]),
        ("reconcile", &[]),
        ("stopnode", &[NODE]),
        ("stopnode", &["--all", "--force"]),
    ];
    for (name, arguments) in calls {
        let ended = stage.run(name, arguments);
        assert_eq!(ended.code, Some(0), "{name} {arguments:?}: {ended:#?}");
    }
    assert_eq!(stage.live(), Vec::<String>::new());
}

/// Some nodes failed, and each is named.
#[test]
fn one() {
    let stage = Fixture::new().running();
    let answer = answer(500, "InternalError", "Out of host capacity.");
    let rule =
        Rule { containing: Some(format!("{NODE}\"")), ..Rule::always("LaunchInstance", answer) };
    stage.cloud().add_fault(rule).unwrap();
    let both = "vm-standard2-1-ad1-[0001-0002]";
    let ended = stage.run("startnode", &[both]).with_code(1);
    let ended = ended.saying(&[&format!("{NODE}: "), "Out of host capacity"]);
    assert!(!ended.stderr.contains("0002"), "the other node has not failed: {ended:?}");
    assert_eq!(stage.live(), ["vm-standard2-1-ad1-0002"]);
    stage
        .run("startnode", &["nowhere7"])
        .with_code(1)
        .saying(&["nowhere7: ", "no such node in slurm.conf"]);
    stage
        .run("stopnode", &["nowhere7"])
        .with_code(1)
        .saying(&["nowhere7: ", "no such node in slurm.conf"]);
    stage
        .run("rebuild", &["nowhere7"])
        .with_code(1)
        .saying(&["nowhere7: ", "no such node in slurm.conf"]);
    stage.run("stopnode", &["--all"]).with_code(1).saying(&["--force"]);
    assert_eq!(stage.live(), ["vm-standard2-1-ad1-0002"]);
}

/// What cannot be seen is said, and what can is shown.
#[test]
fn one_for_a_cloud_that_does_not_list() {
    let stage = Fixture::new().running();
    let answer = answer(404, "NotAuthorizedOrNotFound", "Authorization failed");
    stage.cloud().add_fault(Rule::always("ListInstances", answer)).unwrap();
    let ended = stage.run("listnodes", &["--all"]).with_code(1).saying(&["Authorization failed"]);
    assert!(ended.stdout.contains(NODE), "{ended:?}");
    for arguments in [&["--apply"][..], &[]] {
        stage.run("reconcile", arguments).with_code(1).saying(&["Authorization failed"]);
    }
    stage.run("rebuild", &["status"]).with_code(1).saying(&["Authorization failed"]);
}

#[test]
fn an_orphan_is_ended_by_the_second_reconcile() {
    let stage = Fixture::new().running();
    let text = stage.configuration().replace("cooldown: 5s", "cooldown: 5s, grace: 0s");
    stage.write("startnode.yaml", &text);
    stage.run("startnode", &[NODE]).with_code(0);
    stage.cloud().clear_requests();
    let preview = stage.run("reconcile", &[]).with_code(0).stdout;
    assert!(preview.contains(NODE) && stage.changes().is_empty(), "{preview}");
    stage.run("reconcile", &["--apply"]).with_code(0);
    assert_eq!(stage.live(), [NODE], "nothing ends that was seen once");
    stage.run("reconcile", &["--apply"]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
    stage.run("reconcile", &["--apply", "--watch", "0"]).with_code(2).saying(&["--watch"]);
}

/// How a rollout is begun: what is powered down gets its image when it starts.
#[test]
fn a_rollout_of_nodes_that_sleep_is_over_at_once() {
    let stage = Fixture::new().running();
    let image = "ocid1.image.oc1.phx.img003";
    let arguments = ["submit", "--image", "citc-ol9-3", "--batch", "2"];
    let plan = stage.run("rebuild", &[&arguments[..], &["--dry-run"]].concat()).with_code(0);
    assert!(plan.stdout.contains("powered down"), "{plan:?}");
    let ended = stage.run("rebuild", &arguments).with_code(0);
    assert!(ended.stdout.contains("0 done, 0 under way, 0 left, 0 failed, 4 skipped"), "{ended:?}");
    stage.run("rebuild", &["submit", "--image", "nowhere"]).with_code(2).saying(&["nowhere"]);
    let json = stage.run("rebuild", &["submit", "--json", "--image", image]).with_code(0);
    let lines: Vec<serde_json::Value> =
        json.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["apart"] == 4), "{lines:?}");
    let left =
        std::fs::read_dir(stage.path("state")).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("rollout")).collect();
    assert!(left.is_empty(), "it is over, and nothing is to be remembered: {left:?}");
}

#[test]
fn what_listnodes_prints_and_exports() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let table = stage.run("listnodes", &[]).with_code(0).stdout;
    let row = table.lines().nth(1).unwrap();
    assert!(row.starts_with(NODE) && row.contains("running"), "{table}");
    assert_eq!(table.lines().count(), 2, "{table}");
    let all = stage.run("listnodes", &["--all", "--csv"]).with_code(0).stdout;
    assert_eq!(all.lines().count(), 5, "{all}");
    let running = ["--json", "--state", "down,running", "--partition", "compute"];
    let running = stage.run("listnodes", &running).with_code(0).stdout;
    let rows: serde_json::Value = serde_json::from_str(&running).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!([&rows[0]["shape"], &rows[0]["zone"]], ["VM.Standard2.1", "Uocm:PHX-AD-1"]);
    let address = rows[0]["address"].as_str().unwrap();
    let ini = stage.run("listnodes", &["--inventory", "ini"]).with_code(0).stdout;
    assert!(ini.contains(&format!("{NODE} ansible_host={address}")), "{ini}");
    stage.write("hosts", "127.0.0.1 localhost\n");
    let hosts = stage.path("hosts").display().to_string();
    let hosts = stage.run("listnodes", &["--hosts", &hosts]).with_code(0).stdout;
    assert!(hosts.starts_with("127.0.0.1 localhost\n") && hosts.contains(address), "{hosts}");
    assert_eq!(stage.read("hosts"), "127.0.0.1 localhost\n", "it is printed, not written");
    stage.run("listnodes", &["--partition", "compute,nowhere"]).with_code(2).saying(&["nowhere"]);
    stage.run("listnodes", &["--state", "idle,runing"]).with_code(2).saying(&["runing", "drained"]);
    stage.run("resize", &["--to", "2"]).with_code(2).saying(&["no persistent nodes"]);
}

/// A plan is printed, and nothing is touched.
#[test]
fn dry_runs() {
    let stage = Fixture::new().running();
    let before = stage.files();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let calls: [(&str, &[&str]); 5] = [
        ("startnode", &["vm-standard2-1-ad1-[0001-0002]"]),
        ("startnode", &["--failed", NODE]),
        ("stopnode", &[NODE]),
        ("stopnode", &["--all"]),
        ("finish", &[]),
    ];
    let mut all = String::new();
    for (name, arguments) in calls {
        let ended = stage.run(name, &[&["--dry-run"], arguments].concat()).with_code(0);
        let lines: Vec<&str> =
            ended.stdout.lines().map(|line| line.split(" until=").next().unwrap()).collect();
        let words = arguments.join(" ");
        writeln!(all, "$ {name} {words}\n{}\n", lines.join("\n")).unwrap();
        let json = stage.run(name, &[&["--dry-run", "--json"], arguments].concat()).with_code(0);
        let plan: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
        assert!(plan["operation"].is_string(), "{json:?}");
    }
    snapshot::matches("dry-runs", &all);
    stage.write("limits.yaml", "VM.Standard2.1: {1: 4}\n");
    assert_eq!(stage.files(), before);
    assert_eq!(stage.changes(), Vec::<String>::new());
}

#[test]
fn an_image_of_a_running_node() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    stage.run("rebuild", &["submit", "--dry-run", "--image", "golden"]).with_code(2);
    let dry = stage.run("rebuild", &["image", "--dry-run", NODE, "--name", "golden"]).with_code(0);
    assert!(dry.stdout.contains("image golden of vm-standard2-1-ad1-0001"), "{dry:?}");
    stage.run("rebuild", &["submit", "--dry-run", "--image", "golden"]).with_code(2);
    let id = stage.run("rebuild", &["image", NODE, "--name", "golden"]).with_code(0).stdout;
    assert!(id.starts_with("ocid1.image."), "{id}");
    let made = stage.cloud().requests().into_iter().find(|it| it.operation == "CreateImage");
    let body: serde_json::Value = serde_json::from_str(&made.unwrap().body).unwrap();
    assert_eq!(body["displayName"], "golden");
    assert_eq!(body["instanceId"], stage.machine(NODE).id.as_str());
    // By that name it can be rolled out, and its id is the one that was printed.
    let status = ["status", "--json", "--image", "golden", NODE];
    let rows = stage.run("rebuild", &status).with_code(0).stdout;
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows[0]["target"], id.trim());
    stage.run("rebuild", &["image", "vm-standard2-1-ad1-0002", "--name", "x"]).with_code(2);
}

/// OCI shuts a machine down for its image.
#[test]
fn an_image_of_a_node_with_a_job_is_refused() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let list = format!("--nodelist={NODE}");
    stage.slurm.ask("sbatch", &[&list, "--output=/dev/null", "--wrap", "true"]);
    let queue = || stage.slurm.ask("squeue", &["--noheader", "--format=%T"]);
    wait("job with its node", || (queue().trim() == "CONFIGURING").then_some(()), queue);
    stage.cloud().clear_requests();
    let image = ["image", NODE, "--name", "golden"];
    for arguments in [&image[..], &[&image[..], &["--dry-run"]].concat()] {
        let ended = stage.run("rebuild", arguments).with_code(2);
        let _ = ended.saying(&[NODE, "job 1 is running there", "state=drain", "--force"]);
    }
    stage.silence();
    stage.run("rebuild", &image).with_code(2).saying(&["slurmctld does not answer", "--force"]);
    assert_eq!(stage.changes(), Vec::<String>::new());
    stage.run("rebuild", &[&image[..], &["--force"]].concat()).with_code(0);
}

/// Without a memory nothing is ever seen twice, and no orphan ended.
#[test]
fn one_for_a_reconcile_that_cannot_remember() {
    let stage = Fixture::new().running();
    stage.run("reconcile", &["--apply"]).with_code(0);
    stage.write("no-directory", "");
    let text = stage.configuration().replace("/state,", "/no-directory,");
    stage.write("startnode.yaml", &text);
    stage.run("reconcile", &["--apply"]).with_code(1).saying(&["continuing without locks"]);
}

/// Something could not be put right.
#[test]
fn one_for_a_reconcile_that_is_refused() {
    let stage = Fixture::new().running();
    let text = stage.configuration().replace("cooldown: 5s", "cooldown: 5s, grace: 0s");
    stage.write("startnode.yaml", &text);
    stage.run("startnode", &[NODE]).with_code(0);
    stage.run("reconcile", &["--apply"]).with_code(0);
    let answer = answer(409, "Conflict", "The machine is held");
    stage.cloud().add_fault(Rule::always("TerminateInstance", answer)).unwrap();
    let ended = stage.run("reconcile", &["--apply"]).with_code(1);
    let _ = ended.saying(&[NODE, "The machine is held"]);
    assert_eq!(stage.live(), [NODE]);
    stage.cloud().clear_faults();
    stage.run("reconcile", &["--apply"]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

#[test]
fn a_log_for_machines_and_one_on_standard_error() {
    let stage = Fixture::new().running();
    stage.run("startnode", &["--log-format", "json", NODE]).with_code(0);
    let log = stage.read("log/elastic.log");
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let launched = |line: &&serde_json::Value| {
        line["message"].as_str().unwrap().starts_with("launched instance")
    };
    let line = lines.iter().find(launched).unwrap();
    assert_eq!((&line["program"], &line["node"]), (&"startnode".into(), &NODE.into()));
    assert_eq!(line["level"], "info");
    assert!(lines.iter().all(|line| line["run"] == lines[0]["run"]), "{log}");
    let ended = stage.run("stopnode", &["--log", "-", NODE]).with_code(0);
    let _ = ended.saying(&[&format!("stopnode   INFO     {NODE}:  Stopping [")]);
    assert_eq!(stage.read("log/elastic.log"), log, "it is there and nowhere else");
}
