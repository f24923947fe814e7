//! What is drawn and asked on a terminal, and only there.

use crate::caller::by_daemon;
use crate::fixture::{Ended, Fixture, program};
use std::io::Write as _;
use std::process::{Command, Stdio};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// The call on a terminal of its own, which `script` makes; what is drawn is printed.
fn on_terminal(stage: &Fixture, name: &str, arguments: &[&str]) -> Ended {
    typing(stage, "", name, arguments)
}

/// Runs a program on a terminal where somebody types.
fn typing(stage: &Fixture, keys: &str, name: &str, arguments: &[&str]) -> Ended {
    let words = [&[program(name), "--config", "startnode.yaml"], arguments].concat();
    let line: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    shell(stage, keys, &line.join(" "))
}

/// Runs a line of shell on a terminal where somebody types.
fn shell(stage: &Fixture, keys: &str, line: &str) -> Ended {
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", line, "/dev/null"]);
    command.env_clear().env("HOME", stage.path("home")).env("PATH", "/usr/bin:/bin");
    command.env("SHELL", "/bin/sh").current_dir(stage.dir.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    Ended::of(&child.wait_with_output().unwrap(), stage.dir.path())
}

/// To the beginning of the line, and nothing more in it.
const OVER: &str = "\r\x1b[K";

#[test]
fn a_start_by_hand_shows_how_far_it_is() {
    let stage = Fixture::new().running();
    let both = "vm-standard2-1-ad1-[0001-0002]";
    let drawn = on_terminal(&stage, "startnode", &[both]).with_code(0).stdout;
    for count in ["[....................] 0/2 nodes", "[##########..........] 1/2 nodes"] {
        assert!(drawn.contains(&format!("{OVER}{count}")), "{drawn:?}");
    }
    // A line about a node takes the bar's place, and the bar comes behind it again.
    assert!(drawn.contains(&format!("{OVER}vm-standard2-1-ad1-0001: launched")), "{drawn:?}");
    assert!(drawn.trim_end().ends_with("\x1b[K"), "nothing is left of it: {drawn:?}");
    let lines = stage.run("startnode", &[both]).with_code(0);
    assert!(!format!("{}{}", lines.stdout, lines.stderr).contains('\x1b'), "{lines:?}");
    for option in ["--json", "--quiet"] {
        let drawn = on_terminal(&stage, "startnode", &[option, both]).with_code(0).stdout;
        assert!(!drawn.contains('\x1b'), "{option}: {drawn:?}");
    }
}

#[test]
fn a_rollout_shows_how_far_it_is() {
    let stage = Fixture::new().running();
    let submit = ["submit", "--image", "citc-ol9-3"];
    let drawn = on_terminal(&stage, "rebuild", &submit).with_code(0).stdout;
    assert!(drawn.contains(&format!("{OVER}[####################] 0 done")), "{drawn:?}");
    let lines = stage.run("rebuild", &submit).with_code(0).stdout;
    assert!(
        lines.contains("[####################] 0 done") && !lines.contains('\x1b'),
        "{lines:?}"
    );
    let json = stage.run("rebuild", &[&submit[..], &["--json"]].concat()).with_code(0).stdout;
    assert!(json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

/// Jobs run on while slurmctld is away, as for an upgrade.
#[test]
fn a_rebuild_by_hand_needs_an_answer_of_slurmctld() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    stage.silence();
    stage.cloud().clear_requests();
    let drawn = on_terminal(&stage, "rebuild", &[NODE]).with_code(1).stdout;
    assert!(drawn.contains("slurmctld does not answer"), "{drawn:?}");
    assert_eq!(stage.changes(), Vec::<String>::new());
    // slurmctld may be away when its program comes to ask it.
    let plan = by_daemon(&stage, "slurmctld", &["--dry-run", NODE]).stdout;
    assert!(plan.contains(&format!("reboot {NODE}")), "{plan}");
}

#[test]
fn the_end_of_all_machines_is_asked_for_and_only_a_yes_is_one() {
    let stage = Fixture::new().running();
    stage.run("startnode", &["vm-standard2-1-ad1-[0001-0002]"]).with_code(0);
    for keys in ["n\n", "\n", "Y E S\n", "\u{4}"] {
        let drawn = typing(&stage, keys, "stopnode", &["--all"]).with_code(1).stdout;
        assert!(
            drawn.contains("terminate 2 machines, on which 0 jobs run? [y/N]"),
            "{keys:?}: {drawn:?}"
        );
        assert!(drawn.contains("Cancelled."), "{keys:?}: {drawn:?}");
        assert_eq!(stage.live().len(), 2, "{keys:?}: {drawn:?}");
    }
    let drawn = typing(&stage, "y\n", "stopnode", &["--all"]).with_code(0).stdout;
    assert_eq!(stage.live(), Vec::<String>::new(), "{drawn}");
    let drawn = on_terminal(&stage, "stopnode", &["--all"]).with_code(0).stdout;
    assert!(drawn.contains("no machines") && !drawn.contains('?'), "{drawn:?}");
}

#[test]
fn an_operator_is_told_what_is_waited_for() {
    let stage = Fixture::new().running();
    // It takes every connection, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = stage.configuration();
    let (_, address) = text.split_once("endpoint: ").unwrap();
    let there = format!("http://{}", silent.local_addr().unwrap());
    stage.write("startnode.yaml", &text.replace(address.lines().next().unwrap(), &there));
    for (name, arguments) in [("listnodes", ""), ("stopnode", "--all --force")] {
        let path = program(name);
        let line = format!("timeout --foreground --signal INT 5 {path} {arguments}");
        let drawn = shell(&stage, "", &format!("{line} --config startnode.yaml")).stdout;
        let waits = format!("{OVER}waiting for the cloud and slurmctld");
        assert!(drawn.contains(&waits), "{name}: {drawn:?}");
    }
}
