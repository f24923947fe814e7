//! Fit to run whoever calls: no environment, closed descriptors, blocked signals, broken pipes.

use crate::slurm::wait;
use crate::stage::{Ended, Stage, program};
use std::process::Command;

const NODE: &str = "vm-standard2-1-ad1-0001";

/// The shell's arguments: the program, its configuration, and the rest.
fn shell(stage: &Stage, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh", program("startnode")]).arg(stage.path("startnode.yaml"));
    command.env_clear().current_dir(stage.dir.path());
    command
}

/// The configuration names what else would be found by HOME.
fn without_home() -> Stage {
    let stage = Stage::new().running();
    let home = stage.path("home").display().to_string();
    let more = format!(
        "config_file: {home}/.oci/config\nssh_keys_file: {home}/opc_authorized_keys\nbootstrap_file: {home}/bootstrap.sh\n"
    );
    let text = stage.configuration();
    stage.write("startnode.yaml", &format!("{text}{more}"));
    stage
}

#[test]
fn with_nothing_in_the_environment() {
    let stage = without_home();
    let mut command = Command::new(program("startnode"));
    command.arg("--config").arg(stage.path("startnode.yaml")).arg(NODE).env_clear();
    let output = command.output().unwrap();
    Ended::of(&output, stage.dir.path()).with_code(0);
    assert_eq!(stage.live(), [NODE]);
}

#[test]
fn with_closed_descriptors() {
    let stage = without_home();
    let script = format!("exec \"$1\" --config \"$2\" {NODE} <&- >&- 2>&-");
    let status = shell(&stage, &script).status().unwrap();
    assert_eq!(status.code(), Some(0), "{}", stage.read("log/elastic.log"));
    assert_eq!(stage.live(), [NODE]);
    // What was opened first has not got what was meant for people.
    for name in ["log/elastic.log", "state/events.jsonl", "etc/slurm.conf"] {
        assert!(
            !stage.read(name).contains(&format!("{NODE}: ")) || name.starts_with("log"),
            "{name}"
        );
    }
    assert!(stage.read("log/elastic.log").contains("Started"));
    let script = "exec \"$1\" --config \"$2\" ../../etc <&- >&- 2>&-";
    assert_eq!(shell(&stage, script).status().unwrap().code(), Some(2));
    assert!(stage.read("log/elastic.log").contains("ERROR    node name `../../etc`"));
    let wrong = shell(&stage, "exec \"$1\" --config \"$2\" <&- >&- 2>&-").status().unwrap();
    assert_eq!(wrong.code(), Some(2));
}

#[test]
fn with_a_broken_pipe() {
    let stage = without_home();
    // The reader is gone before the first line.
    let script = format!("{{ \"$1\" --config \"$2\" -v {NODE} 2>&1; echo $? > code; }} | true");
    shell(&stage, &script).status().unwrap();
    let code = wait(
        "exit code",
        || Some(stage.read("code")).filter(|code| !code.is_empty()),
        || stage.read("log/elastic.log"),
    );
    assert_eq!(code.trim(), "0");
    assert_eq!(stage.live(), [NODE]);
}
