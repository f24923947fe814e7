//! More or fewer nodes: as limits say, or as many as told.

use crate::stage::{Ended, Stage, answer};
use cloud_sim::Rule;

const CONF: &str = "etc/slurm.conf";

/// A cluster of a group called general: so many nodes that are always there, of so many in all.
fn stage(min: u32, max: u32) -> Stage {
    let stage = Stage::new();
    limits(&stage, min, max);
    let hosts: Vec<String> =
        (1..5).map(|number| format!("127.0.0.1 c1-general-000{number}\n")).collect();
    stage.write("hosts", &hosts.concat());
    stage.running()
}

/// The call without a trial: the throw-away slurmctld does not know the names.
fn resize(stage: &Stage, arguments: &[&str]) -> Ended {
    stage.run("resize", &[&["--no-prove"], arguments].concat())
}

fn limits(stage: &Stage, min: u32, max: u32) {
    let line = format!("general: {{shape: VM.Standard2.1, zone: '1', min: {min}, max: {max}}}\n");
    stage.write("limits.yaml", &line);
}

/// The cloud has no room for this node.
fn full_for(stage: &Stage, node: &str) {
    let answer = answer(500, "InternalError", "Out of host capacity.");
    let containing = Some(format!("{node}\""));
    stage.cloud().add_fault(Rule { containing, ..Rule::always("LaunchInstance", answer) });
}

#[test]
fn a_cluster_comes_to_edited_limits_and_back() {
    let stage = stage(1, 3);
    resize(&stage, &[]).with_code(0);
    assert!(stage.read(CONF).contains("SuspendExcNodes=c1-general-0001\n"), "{}", stage.read(CONF));
    assert_eq!(resize(&stage, &[]).with_code(0).stdout, "nothing to change\n");
    let check = stage.run("finish", &["--check"]).with_code(0).stdout;
    assert!(check.contains("slurm.conf is up to date"), "{check}");

    limits(&stage, 2, 4);
    let before = stage.files();
    let ended = resize(&stage, &["--dry-run"]).with_code(0);
    for words in [
        "launch c1-general-0002 ",
        "changes=+c1-general-0004",
        "SuspendExcNodes=c1-general-[0001-0002]",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
    assert_eq!((stage.files(), stage.changes()), (before, Vec::new()));

    let ended = resize(&stage, &[]).with_code(0);
    assert!(ended.stdout.contains("launch c1-general-0002 "), "the plan is shown: {ended:?}");
    assert_eq!(stage.live(), ["c1-general-0002"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0003-0004] State=CLOUD"));
    let address = stage.slurm.node("c1-general-0002", "NodeAddr");
    assert!(address.starts_with("10."), "slurmctld knows where it is: {address}");
    assert!(!stage.slurm.node("c1-general-0004", "State").is_empty());

    limits(&stage, 1, 1);
    let ended = resize(&stage, &[]).with_code(0);
    assert!(ended.stdout.contains("drain c1-general-[0004,0003,0002]"), "{ended:?}");
    assert_eq!(stage.live(), Vec::<String>::new());
    assert!(stage.read(CONF).contains("NodeName=c1-general-0001 "), "{}", stage.read(CONF));
    assert_eq!(stage.slurm.node("c1-general-0002", "State"), "");
    assert!(stage.slurm.is_up());
}

#[test]
fn limits_that_cannot_be_reached_leave_slurm_conf_as_it_is() {
    let stage = stage(1, 3);
    let before = stage.read(CONF);
    limits(&stage, 2, 3);
    full_for(&stage, "c1-general-0002");
    let ended = resize(&stage, &[]).with_code(1);
    let _ = ended.saying(&["c1-general-0002: ", "Out of host capacity"]);
    assert_eq!(stage.read(CONF), before);
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, min: 3, max: 2}\n");
    resize(&stage, &[]).with_code(2).saying(&["limits.yaml:1:", "max"]);
    resize(&stage, &["--limits", "nowhere.yaml"]).with_code(2).saying(&["nowhere.yaml"]);
    assert_eq!(stage.read(CONF), before);
}

#[test]
fn so_many_as_told() {
    let stage = stage(1, 1);
    stage.run("resize", &["--to", "1"]).with_code(0);
    let plan = stage.run("resize", &["--to", "3", "--dry-run"]).with_code(0).stdout;
    assert!(plan.contains("launch c1-general-0003 ") && stage.changes().is_empty(), "{plan}");
    stage.run("resize", &["--to", "2"]).with_code(0);
    assert_eq!(stage.live(), ["c1-general-0002"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    full_for(&stage, "c1-general-0003");
    let ended = stage.run("resize", &["--to", "3"]).with_code(1);
    let _ = ended.saying(&["c1-general-0003: ", "Out of host capacity"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    stage.run("resize", &["--to", "1", "--partition", "nowhere"]).with_code(2).saying(&["nowhere"]);
}
