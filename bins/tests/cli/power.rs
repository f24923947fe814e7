//! The lines that slurm.conf needs besides the nodes, and the calls that follow from them.

use crate::fixture::{Ended, Fixture, program};
use crate::snapshot;
use std::path::Path;
use std::process::Command;

const NODE: &str = "vm-standard2-1-ad1-0001";

fn lines(stage: &Fixture) -> String {
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, zone: '1', min: 2, max: 4}\n");
    stage.run("finish", &["--print-power"]).with_code(0).stdout
}

/// A path that does not depend on where the program was compiled.
fn anywhere(text: &str) -> String {
    let folder = Path::new(program("finish")).parent().unwrap().display().to_string();
    text.replace(&folder, "/usr/local/bin")
}

#[test]
fn what_slurm_conf_needs_before_power_actions() {
    let stage = Fixture::new();
    snapshot::matches("print-power-24.11", &anywhere(&lines(&stage)));
    let mut command = stage.command("finish", &["--print-power"]);
    let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
    assert!(said.contains("passes its programs no options"), "{said}");
}

/// Of two lines of one name slurmctld takes the later.
#[test]
fn printed_lines_keep_what_slurm_conf_says() {
    let more = |conf: &mut String| {
        let lines = "SuspendTime=77\nSlurmctldParameters=enable_configless,idle_on_node_suspend\nPrivateData=jobs,cloud\n";
        conf.push_str(lines);
    };
    let stage = Fixture::on("22.05", |_| {}, more);
    let printed = lines(&stage);
    for line in [
        "SuspendTime=77",
        "SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs,reboot_from_controller,enable_configless",
        "PrivateData=cloud,jobs",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{line}: {printed}");
    }
}

#[test]
fn what_slurm_conf_needs_with_power_actions() {
    let stage = Fixture::on("26.05", |_| {}, |_| {});
    snapshot::matches("print-power-26.05", &anywhere(&lines(&stage)));
}

/// 26.05 puts the arguments of a PowerAction before the host list.
#[test]
fn power_actions_are_calls_of_ours() {
    let stage = Fixture::on("26.05", |_| {}, |_| {}).running();
    let text = stage.run("finish", &["--print-power"]).with_code(0).stdout;
    let text = text.replace("DIR", &stage.dir.path().display().to_string());
    let calls = text.lines().filter_map(|line| line.split_once("Program=\"")?.1.split('"').next());
    let calls: Vec<&str> = calls.filter(|call| call.starts_with('/')).collect();
    assert_eq!(calls.len(), 4, "{text}");
    for call in calls {
        let mut words = call.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["--dry-run", NODE]).env_clear().env("HOME", stage.path("home"));
        let output = command.current_dir("/").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{call}: {output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains(NODE), "{call}: {output:?}");
    }
}

/// Whoever switches prints them as himself, and the key is slurmctld's.
#[test]
fn lines_for_slurm_conf_are_printed_without_the_cloud_s_key() {
    let stage = Fixture::new();
    let options = ["--print", "--print-power", "--print-gres"];
    let printed = || options.map(|option| stage.run("finish", &[option]).with_code(0).stdout);
    let before = printed();
    std::fs::remove_file(stage.path("home/.oci/config")).unwrap();
    assert_eq!(printed(), before);
}

/// slurmctld runs its programs elsewhere.
#[test]
fn a_relative_path_of_the_configuration_is_printed_in_full() {
    let stage = Fixture::on("26.05", |_| {}, |_| {});
    let mut command = Command::new(program("finish"));
    command.args(["--config", "startnode.yaml", "--print-power"]).current_dir(stage.dir.path());
    let output = command.env_clear().env("HOME", stage.path("home")).output().unwrap();
    let ended = Ended::of(&output, stage.dir.path()).with_code(0);
    let calls = ended.stdout.matches("--config DIR/startnode.yaml").count();
    assert_eq!(calls, 4, "{ended:?}");
}

/// A line outside the markers goes out of date when `min` grows, and Slurm reads the later of two alone.
#[test]
fn persistent_nodes_are_not_stopped_for_a_line_that_was_printed_before() {
    let stage = Fixture::new();
    assert!(!lines(&stage).contains("SuspendExcNodes"), "finish keeps it between the markers");
    let section = stage.run("finish", &["--print"]).with_code(0).stdout;
    assert!(section.contains("\nSuspendExcNodes=c1-general-[0001-0002]\n"), "{section}");
    let stage = Fixture::on("24.11", |_| {}, |conf| conf.push_str("SuspendExcNodes=login1\n"));
    let printed = lines(&stage);
    let line = "SuspendExcNodes=login1,c1-general-[0001-0002]";
    assert!(printed.contains(&format!("\n{line}\n")), "{printed}");
    let before = stage.files();
    for program in ["finish", "resize"] {
        let ended = stage.run(program, &[]).with_code(2);
        let _ = ended.saying(&[
            "leaves out the persistent nodes c1-general-[0001-0002]",
            &format!("write {line}"),
        ]);
    }
    let check = stage.run("finish", &["--check"]).with_code(1).stdout;
    assert!(check.contains(&format!("write {line}")), "{check}");
    assert_eq!((stage.files(), stage.changes()), (before, Vec::new()));
}

#[test]
fn a_printed_line_keeps_the_count_of_nodes_that_are_spared() {
    let counted = |conf: &mut String| conf.push_str("SuspendExcNodes=c[1-10]:4\n");
    let printed = lines(&Fixture::on("24.11", |_| {}, counted));
    let line = "\nSuspendExcNodes=c[1-10]:4,c1-general-[0001-0002]\n";
    assert!(printed.contains(line), "{printed}");
}

/// Whoever switches power saving on later does not come by `finish` again.
#[test]
fn persistent_nodes_are_spared_before_power_saving_is_on() {
    let off = |conf: &mut String| {
        let power = |line: &&str| line.starts_with("Suspend") || line.starts_with("Resume");
        *conf = conf.split_inclusive('\n').filter(|line| !power(line)).collect();
    };
    let stage = Fixture::on("24.11", |_| {}, off);
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, zone: '1', min: 1, max: 1}\n");
    stage.write("hosts", "127.0.0.1 c1-general-0001\n");
    let stage = stage.running();
    stage.run("finish", &[]).with_code(0);
    let conf = stage.read("etc/slurm.conf");
    assert!(conf.contains("\nSuspendExcNodes=c1-general-0001\n"), "{conf}");
    assert!(stage.slurm.is_up(), "{conf}");
}
