//! More or fewer nodes: as limits say, or as many as told.

use crate::fixture::{Ended, Fixture, answer};
use crate::slurm::wait;
use cloud_sim::Rule;
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

const CONF: &str = "etc/slurm.conf";

/// A cluster of a group called general: so many nodes that are always there, of so many in all.
fn stage(min: u32, max: u32) -> Fixture {
    stage_on("24.11", (min, max), "")
}

/// A cluster on a given release, with more in slurm.conf.
fn stage_on(series: &str, (min, max): (u32, u32), more: &str) -> Fixture {
    let stage = Fixture::on(series, |_| {}, |conf| conf.push_str(more));
    limits(&stage, min, max);
    let hosts: Vec<String> =
        (1..5).map(|number| format!("127.0.0.1 c1-general-000{number}\n")).collect();
    stage.write("hosts", &hosts.concat());
    stage.running()
}

fn limits(stage: &Fixture, min: u32, max: u32) {
    let line = format!("general: {{shape: VM.Standard2.1, zone: '1', min: {min}, max: {max}}}\n");
    stage.write("limits.yaml", &line);
}

/// The cloud has no room for this node.
fn full_for(stage: &Fixture, node: &str) {
    let answer = answer(500, "InternalError", "Out of host capacity.");
    let containing = Some(format!("{node}\""));
    stage.cloud().add_fault(Rule { containing, ..Rule::always("LaunchInstance", answer) }).unwrap();
}

#[test]
fn a_cluster_comes_to_edited_limits_and_back() {
    let stage = stage(1, 3);
    stage.run("resize", &[]).with_code(0);
    assert!(stage.read(CONF).contains("SuspendExcNodes=c1-general-0001\n"), "{}", stage.read(CONF));
    assert_eq!(stage.run("resize", &[]).with_code(0).stdout, "nothing to change\n");
    let check = stage.run("finish", &["--check"]).with_code(0).stdout;
    assert!(check.contains("slurm.conf is up to date"), "{check}");

    limits(&stage, 2, 4);
    let before = (stage.files(), stage.changes());
    let ended = stage.run("resize", &["--dry-run"]).with_code(0);
    for words in [
        "launch c1-general-0002 ",
        "changes=+c1-general-0004",
        "SuspendExcNodes=c1-general-[0001-0002]",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {ended:?}");
    }
    assert_eq!((stage.files(), stage.changes()), before);

    let ended = stage.run("resize", &[]).with_code(0);
    assert!(ended.stdout.contains("launch c1-general-0002 "), "the plan is shown: {ended:?}");
    assert_eq!(stage.live(), ["c1-general-0001", "c1-general-0002"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0003-0004] State=CLOUD"));
    let address = stage.slurm.node("c1-general-0002", "NodeAddr");
    assert!(address.starts_with("10."), "slurmctld knows where it is: {address}");
    assert!(!stage.slurm.node("c1-general-0004", "State").is_empty());

    limits(&stage, 1, 1);
    let ended = stage.run("resize", &[]).with_code(0);
    assert!(ended.stdout.contains("drain c1-general-[0002-0004]"), "{ended:?}");
    assert_eq!(stage.live(), ["c1-general-0001"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-0001 "), "{}", stage.read(CONF));
    assert_eq!(stage.slurm.node("c1-general-0002", "State"), "");
    assert!(stage.slurm.is_up());
}

#[test]
fn rebuild_status_lists_no_machine_that_resize_has_terminated() {
    let stage = stage(1, 1);
    stage.run("resize", &["--to", "2"]).with_code(0);
    stage.run("resize", &["--to", "1"]).with_code(0);
    // The cloud lists the machine for a while after its end.
    let listed = stage.cloud().instances();
    assert!(listed.iter().any(|it| it.display_name == "c1-general-0002"), "{listed:#?}");
    let rows = stage.run("rebuild", &["status", "--json"]).with_code(0).stdout;
    let rows: Value = serde_json::from_str(&rows).unwrap();
    let nodes: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["node"]).collect();
    assert_eq!(nodes, ["c1-general-0001"]);
}

/// `finish` writes nodes that are always there and launches none, and a machine may be lost at any time.
#[test]
fn nodes_without_a_machine_are_started() {
    let stage = stage(1, 1);
    for call in [&["--dry-run"][..], &["--dry-run", "--to", "1"]] {
        let plan = stage.run("resize", call).with_code(0).stdout;
        assert!(plan.contains("launch c1-general-0001 "), "{plan}");
    }
    assert!(stage.live().is_empty());
    stage.run("resize", &[]).with_code(0);
    assert_eq!(stage.live(), ["c1-general-0001"]);
    let address = stage.slurm.node("c1-general-0001", "NodeAddr");
    assert!(address.starts_with("10."), "slurmctld knows where it is: {address}");
    assert_eq!(stage.run("resize", &[]).with_code(0).stdout, "nothing to change\n");
}

#[test]
fn limits_that_cannot_be_reached_leave_slurm_conf_as_it_is() {
    let stage = stage(1, 3);
    let before = stage.read(CONF);
    limits(&stage, 2, 3);
    full_for(&stage, "c1-general-0002");
    let ended = stage.run("resize", &[]).with_code(1);
    let _ = ended.saying(&["c1-general-0002: ", "Out of host capacity"]);
    assert_eq!(stage.read(CONF), before);
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, min: 3, max: 2}\n");
    stage.run("resize", &[]).with_code(2).saying(&["limits.yaml:1:", "max"]);
    stage.run("resize", &["--limits", "nowhere.yaml"]).with_code(2).saying(&["nowhere.yaml"]);
    assert_eq!(stage.read(CONF), before);
}

#[test]
fn so_many_as_told() {
    let stage = stage(1, 1);
    stage.run("resize", &["--to", "1"]).with_code(0);
    let plan = stage.run("resize", &["--to", "3", "--dry-run"]).with_code(0).stdout;
    assert!(plan.contains("launch c1-general-[0002-0003] ") && stage.live().len() == 1, "{plan}");
    stage.run("resize", &["--to", "2"]).with_code(0);
    assert_eq!(stage.live(), ["c1-general-0001", "c1-general-0002"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    full_for(&stage, "c1-general-0003");
    let ended = stage.run("resize", &["--to", "3"]).with_code(1);
    let _ = ended.saying(&["c1-general-0003: ", "Out of host capacity"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{}", stage.read(CONF));
    stage.run("resize", &["--to", "1", "--partition", "nowhere"]).with_code(2).saying(&["nowhere"]);
}

#[test]
fn a_size_is_tried_before_machines_come_and_rolled_back_if_refused() {
    let stage = stage_on("24.11", (1, 1), "MaxNodeCount=1\n");
    let before = stage.files();
    let ended = stage.run("resize", &["--to", "2"]).with_code(1);
    let ended = ended.saying(&["nothing is changed: slurmctld refuses the new file"]);
    assert_eq!((stage.files(), stage.changes()), (before, Vec::new()), "{ended:#?}");
    let conf = stage.read(CONF);
    let ended = stage.run("resize", &["--to", "2", "--no-prove"]).with_code(1);
    let left = "that slurm.conf does not have are still running: c1-general-0002";
    let ended = ended.saying(&["restoring the previous file", left]);
    assert_eq!(stage.read(CONF), conf, "{ended:#?}");
    assert!(stage.slurm.is_up(), "{ended:#?}");
}

#[test]
fn only_one_at_a_time_works_on_slurm_conf() {
    let stage = stage(1, 1);
    let lock = File::create(stage.path("state/slurm.conf.lock")).unwrap();
    lock.lock().unwrap();
    (&lock).write_all(b"finish, process 7\n").unwrap();
    limits(&stage, 1, 2);
    let child = stage.command("finish", &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let log = || stage.read("log/elastic.log");
    let waits = "slurm.conf is being changed by finish, process 7: waiting";
    wait("a finish that waits", || log().contains(waits).then_some(()), log);
    // What only looks does not wait.
    stage.run("resize", &["--to", "2", "--dry-run"]).with_code(0);
    assert!(!stage.read(CONF).contains("0002"), "{}", stage.read(CONF));
    drop(lock);
    let ended = Ended::of(&child.unwrap().wait_with_output().unwrap(), stage.dir.path());
    let ended = ended.with_code(0).saying(&[waits]);
    assert!(stage.read(CONF).contains("0002"), "{ended:#?}");
}

#[test]
fn hosts_and_inventory_are_kept_up_to_date() {
    let stage = stage(1, 1);
    let dir = stage.dir.path().display().to_string();
    stage.write("named", "127.0.0.1 localhost\n");
    let more = format!("hosts_file: {dir}/named\ninventory_file: {dir}/inventory.json\n");
    stage.write("startnode.yaml", &format!("{}{more}", stage.configuration()));
    stage.run("resize", &["--to", "2"]).with_code(0);
    let address = stage.slurm.node("c1-general-0002", "NodeAddr");
    let hosts = stage.read("named");
    assert!(hosts.starts_with("127.0.0.1 localhost\n"), "{hosts}");
    assert!(hosts.contains(&format!("\n{address} c1-general-0002\n")), "{hosts}");
    assert!(stage.read("inventory.json").contains(&address), "{}", stage.read("inventory.json"));
    limits(&stage, 1, 1);
    stage.run("finish", &[]).with_code(0);
    assert!(!stage.read("named").contains("c1-general-0002"), "{}", stage.read("named"));
}

#[test]
fn every_release_takes_nodes_without_a_machine_in_its_trial() {
    for series in ["22.05", "26.05"] {
        let stage = stage_on(series, (1, 2), "");
        limits(&stage, 2, 4);
        let ended = stage.run("finish", &[]).with_code(0);
        assert!(!ended.stderr.contains("throw-away"), "{series}: {ended:#?}");
        assert!(stage.read(CONF).contains("NodeName=c1-general-[0001-0002] "), "{ended:#?}");
    }
}

/// slurmctld says which nodes it has, and not with which lines.
#[test]
fn a_weight_that_slurmctld_was_not_told_of_is_a_change() {
    let stage = stage(0, 1);
    let weigh = |weight: &str| {
        let group = "shape: VM.Standard2.1, zone: '1', max: 1";
        stage.write("limits.yaml", &format!("general: {{{group}, weight: {weight}}}\n"));
    };
    let comes_to = |weight: &str| {
        let now = || stage.slurm.node("c1-general-0001", "Weight");
        wait("weight", || (now() == weight).then_some(()), now);
    };
    weigh("5");
    stage.run("finish", &["--no-prove"]).with_code(0);
    comes_to("5");
    weigh("7");
    stage.run("finish", &["--no-prove", "--no-restart"]).with_code(0);
    comes_to("5");
    assert!(checked(&stage).starts_with("warn "), "{}", checked(&stage));
    let plan = stage.run("finish", &[]).with_code(0).stdout;
    assert!(plan.contains("reconfigure slurmctld"), "{plan}");
    comes_to("7");
    assert_eq!(stage.run("finish", &[]).with_code(0).stdout, "nothing to change\n");
    assert!(checked(&stage).starts_with("ok "), "{}", checked(&stage));
}

/// What a check says of slurm.conf.
fn checked(stage: &Fixture) -> String {
    let said = stage.run("finish", &["--check"]).stdout;
    said.lines().find(|line| line.contains("is up to date")).unwrap_or(&said).to_owned()
}

#[test]
fn nodes_that_slurmctld_was_not_told_of_are_not_up_to_date() {
    let stage = stage(0, 1);
    assert!(checked(&stage).ends_with("slurm.conf is up to date"), "{}", checked(&stage));
    limits(&stage, 0, 2);
    stage.run("finish", &["--no-prove", "--no-restart"]).with_code(0);
    let said = checked(&stage);
    assert!(said.starts_with("warn ") && said.contains("slurmctld has not applied it"), "{said}");
    stage.run("finish", &[]).with_code(0);
    assert!(checked(&stage).ends_with("slurm.conf is up to date"), "{}", checked(&stage));
}

/// 22.05 forgets the address that it was told of a node when it starts, and its name is gone with its machine.
#[test]
fn the_new_file_stays_for_a_node_that_the_previous_one_lacks_too() {
    let stage = Fixture::on("22.05", |_| {}, |_| {});
    limits(&stage, 2, 2);
    stage.write("hosts", "127.0.0.1 c1-general-0001\n");
    let stage = stage.running();
    limits(&stage, 2, 4);
    let ended = stage.run("finish", &[]).with_code(0);
    let ended = ended.saying(&["warning: slurmctld runs, but without c1-general-0002"]);
    assert!(stage.read(CONF).contains("NodeName=c1-general-[0003-0004] "), "{ended:#?}");
    assert!(!stage.slurm.node("c1-general-0004", "State").is_empty(), "{ended:#?}");
}
