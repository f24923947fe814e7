//! Fit to run whoever calls: no environment, closed descriptors, blocked signals, broken pipes, any name.

use crate::fixture::{Ended, Fixture, program};
use crate::slurm::wait;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const NODE: &str = "vm-standard2-1-ad1-0001";
const OTHER: &str = "vm-standard2-1-ad1-0002";

/// What slurmctld calls in the life of a node, by our names and by those of the tools that they replace.
const LIVES: [[&str; 4]; 2] = [
    ["startnode", "rebuild", "stopnode", "startnode-failed"],
    [
        "slurm-openstack-resume",
        "slurm-openstack-rebuild",
        "slurm-openstack-suspend",
        "slurm-openstack-resumefail",
    ],
];

fn without_home() -> Fixture {
    homeless(Fixture::new()).running()
}

/// The configuration names what else would be found by HOME; every program has a link of each name.
fn homeless(stage: Fixture) -> Fixture {
    let home = stage.path("home").display().to_string();
    let more = format!(
        "config_file: {home}/.oci/config\nssh_keys_file: {home}/opc_authorized_keys\nbootstrap_file: {home}/bootstrap.sh\n"
    );
    let text = stage.configuration().replace("cooldown: 5s", "cooldown: 0s");
    stage.write("startnode.yaml", &format!("{text}{more}"));
    fs::create_dir(stage.path("links")).unwrap();
    for name in LIVES.into_iter().flatten() {
        symlink(program(name), stage.path("links").join(name)).unwrap();
    }
    stage
}

/// The shell's arguments: the program, its configuration, and the rest.
fn shell(stage: &Fixture, (name, node): (&str, &str), script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(stage.path("links").join(name));
    command.arg(stage.path("startnode.yaml")).arg(node);
    command.env_clear().current_dir(stage.dir.path());
    command
}

/// The lives of two nodes in calls that each return an exit code: up, rebooted and down; and one that never came up.
fn live(stage: &Fixture, call: impl Fn(&str, &str) -> Option<i32>) {
    let well = |name: &str, node: &str| {
        assert_eq!(call(name, node), Some(0), "{name}: {}", stage.read("log/elastic.log"));
    };
    for [start, reboot, stop, failed] in LIVES {
        well(start, NODE);
        assert_eq!(stage.live(), [NODE], "{start}");
        stage.cloud().clear_requests();
        well(reboot, NODE);
        let changes = stage.changes();
        assert!(changes.iter().any(|it| it.ends_with("action=SOFTRESET")), "{reboot}: {changes:?}");
        well(stop, NODE);
        assert_eq!(stage.live(), Vec::<String>::new(), "{stop}");
        well(start, OTHER);
        let name = format!("nodename={OTHER}");
        let _ = stage.slurm.ask("scontrol", &["update", &name, "state=down", "reason=too late"]);
        well(failed, OTHER);
        assert_eq!(stage.live(), Vec::<String>::new(), "{failed}");
    }
}

/// 24.11 gives the whole path as the program's name, 22.05 and 26.05 the last part of it.
#[test]
fn with_nothing_in_the_environment_and_a_name_in_any_spelling() {
    let stage = without_home();
    for spelt in ["/opt/slurm/bin/", "./", ""] {
        live(&stage, |name, node| {
            let mut command = Command::new(program(name));
            command.arg0(format!("{spelt}{name}")).arg("--config");
            command.arg(stage.path("startnode.yaml")).arg(node).env_clear();
            let ended = Ended::of(&command.output().unwrap(), stage.dir.path());
            assert!(ended.code == Some(0), "{spelt}{name}: {ended:#?}");
            ended.code
        });
    }
}

#[test]
fn with_closed_descriptors() {
    let stage = without_home();
    let script = "exec \"$1\" --config \"$2\" \"$3\" <&- >&- 2>&-";
    live(&stage, |name, node| shell(&stage, (name, node), script).status().unwrap().code());
    // What was opened first has not got what was meant for people.
    for name in ["state/events.jsonl", "etc/slurm.conf"] {
        assert!(!stage.read(name).contains(&format!("{NODE}: ")), "{name}");
    }
    assert!(stage.read("log/elastic.log").contains("Started"));
}

/// A wrong option of a PowerAction, or a host list of a Slurm to come.
#[test]
fn a_wrong_call_with_closed_descriptors_is_logged() {
    let stage = without_home();
    let cases = [
        ("startnode", "../../etc", "startnode  ERROR    node name `../../etc`"),
        (
            "startnode",
            "",
            "startnode  ERROR    the following required arguments were not provided:",
        ),
        ("stopnode", "'n[3-1]'", "stopnode   ERROR    invalid value 'n[3-1]'"),
        ("rebuild", "--frobnicate n1", "rebuild    ERROR    unexpected argument '--frobnicate'"),
        ("startnode-failed", "'n[1-'", "startnode  ERROR    invalid value 'n[1-'"),
    ];
    for (name, arguments, logged) in cases {
        let script = format!("exec \"$1\" --config \"$2\" {arguments} <&- >&- 2>&-");
        assert_eq!(
            shell(&stage, (name, NODE), &script).status().unwrap().code(),
            Some(2),
            "{name}"
        );
        let log = stage.read("log/elastic.log");
        assert!(log.contains(logged), "{name} {arguments}: {log}");
    }
    let help =
        shell(&stage, ("startnode", NODE), "exec \"$1\" --config \"$2\" --help <&- >&- 2>&-");
    let before = stage.read("log/elastic.log");
    assert_eq!({ help }.status().unwrap().code(), Some(0));
    assert_eq!(stage.read("log/elastic.log"), before);
}

#[test]
fn with_a_broken_pipe() {
    let stage = without_home();
    live(&stage, |name, node| {
        let _ = fs::remove_file(stage.path("code"));
        // The reader is gone before the first line.
        let script = "{ \"$1\" --config \"$2\" -v \"$3\" 2>&1; echo $? > code; } | true";
        shell(&stage, (name, node), script).status().unwrap();
        let code = || stage.read("code").trim().parse().ok();
        Some(wait("exit code", code, || stage.read("log/elastic.log")))
    });
}

/// 22.05 starts its programs with its own signals blocked, TERM among them.
#[test]
fn with_blocked_signals() {
    let stage = without_home();
    // Each is still waiting for its first answer when it is looked at.
    stage.cloud().set_latency(Duration::from_mins(10));
    for name in LIVES.into_iter().flatten() {
        let mut command = Command::new("env");
        command.args(["--block-signal=TERM", "--block-signal=INT", "--block-signal=HUP"]);
        command.arg(stage.path("links").join(name)).arg("--config");
        command.arg(stage.path("startnode.yaml")).arg(NODE);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let process = Path::new("/proc").join(child.id().to_string());
        let read = |file: &str| fs::read_to_string(process.join(file)).unwrap_or_default();
        let ours =
            || fs::read_link(process.join("exe")).is_ok_and(|exe| exe == Path::new(program(name)));
        let open = || read("status").contains("\nSigBlk:\t0000000000000000\n");
        wait("end of the block", || (ours() && open()).then_some(()), || read("status"));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

/// With the environment, the descriptors, the signals and the spelling that each release has for its programs.
#[test]
fn called_by_every_slurmctld_by_the_names_of_other_tools() {
    for series in ["22.05", "24.11", "26.05"] {
        let stage = homeless(Fixture::on(series, |_| {}, |_| {}));
        let dir = stage.dir.path().display().to_string();
        let mut conf = stage.read("etc/slurm.conf");
        for (key, name) in [
            ("ResumeProgram", "slurm-openstack-resume"),
            ("SuspendProgram", "slurm-openstack-suspend"),
        ] {
            let hook = format!("hooks/{name}");
            let call = format!("exec {dir}/links/{name} --config {dir}/startnode.yaml \"$@\"");
            stage.write(&hook, &format!("#!/bin/sh\n{call}\n"));
            fs::set_permissions(stage.path(&hook), fs::Permissions::from_mode(0o755)).unwrap();
            conf = conf.replace(&format!("\n{key}=/bin/true"), &format!("\n{key}={dir}/{hook}"));
        }
        stage.write("etc/slurm.conf", &conf);
        let stage = stage.running();
        let log = || format!("{series}: {conf}{}", stage.read("log/elastic.log"));
        let update = |state: &str| {
            let name = format!("nodename={NODE}");
            stage.slurm.ask("scontrol", &["update", &name, state, "reason=test"])
        };
        update("state=power_up");
        wait("machine", || (stage.live() == [NODE]).then_some(()), log);
        wait("address", || log().contains("Started, Private IP").then_some(()), log);
        update("state=power_down_force");
        wait("end of it", || stage.live().is_empty().then_some(()), log);
        wait("last line", || log().contains("end: stop").then_some(()), log);
    }
}
