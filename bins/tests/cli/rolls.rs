//! A new image for nodes, a few at a time: which image each gets, and what is refused.

use crate::fixture::{Ended, Fixture};
use crate::jobs::{NEW, NODES, OLD, appliance, vars};
use crate::slurm::Fake;
use serde_json::Value;
use std::fs;

const OTHER: &str = "ocid1.image.oc1.phx.img002";

/// Three machines on the old image, with files that name another; what Slurm is to reboot is written down.
fn rolling() -> Fixture {
    let stage = appliance();
    // Once it is told to reboot, it is about to.
    stage.slurm.fake(&Fake {
        scontrol: "[ \"$1\" = reboot ] && { echo \"$*\" >> \"$DIR/reboots\"; exit; }\n\
                   STATE=IDLE; [ -e \"$DIR/reboots\" ] && STATE=IDLE+DRAIN+REBOOT_REQUESTED\n\
                   exec 3>&1; \"$REAL/scontrol\" \"$@\" | sed \"s/ State=[^ ]*/ State=$STATE/\" >&3",
        sbatch: "exit 1",
    });
    stage
}

fn submit(stage: &Fixture, arguments: &[&str]) -> Ended {
    stage.run("rebuild", &[&["submit", "--once", "--batch", "9"], arguments].concat())
}

/// The nodes whose reboot carries the image in its reason.
fn rebooted(stage: &Fixture, image: &str) -> Vec<&'static str> {
    let text = stage.read("reboots");
    let lines = text.lines().filter(|line| line.contains(&format!("rebuild image:{image}")));
    let list = lines.filter_map(|line| line.split_whitespace().last());
    let list: hostlist::Hostlist = list.collect::<Vec<_>>().join(",").parse().unwrap();
    NODES.into_iter().filter(|node| list.contains(node)).collect()
}

/// Node and target, as `rebuild status` shows them.
fn targets(stage: &Fixture, arguments: &[&str]) -> Vec<(String, String)> {
    let ended = stage.run("rebuild", &[&["status", "--json"], arguments].concat()).with_code(0);
    let rows: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "node"), text(row, "target"))).collect()
}

fn pairs(images: [&str; 3]) -> Vec<(String, String)> {
    NODES.into_iter().map(str::to_owned).zip(images.map(str::to_owned)).collect()
}

#[test]
fn a_roll_gives_each_node_the_image_of_its_file() {
    let stage = rolling();
    vars(&stage, NODES[1], OLD);
    vars(&stage, NODES[2], OTHER);
    assert_eq!(targets(&stage, &[]), pairs([NEW, OLD, OTHER]));
    submit(&stage, &[]).with_code(0);
    assert_eq!(rebooted(&stage, NEW), [NODES[0]]);
    assert_eq!(rebooted(&stage, OTHER), [NODES[2]]);
    assert_eq!(stage.read("reboots").lines().count(), 2, "the second has its image");
}

#[test]
fn an_image_that_the_files_would_overrule_is_refused_with_their_names() {
    let stage = rolling();
    vars(&stage, NODES[1], OLD);
    let ended = submit(&stage, &["--image", NEW]).with_code(2);
    let file = format!("DIR/reboot_vars/{}.yml", NODES[1]);
    let ended = ended.saying(&[NODES[1], &file, "leave --image out"]);
    assert!(!ended.stderr.contains(NODES[0]), "{ended:?}");
    assert_eq!(stage.read("reboots"), "");
    // Where no file speaks, the reason does, and our reboot program reads it.
    fs::remove_file(stage.path(&format!("reboot_vars/{}.yml", NODES[1]))).unwrap();
    assert_eq!(targets(&stage, &["--image", NEW]), pairs([NEW, NEW, NEW]));
    submit(&stage, &["--image", NEW]).with_code(0);
    assert_eq!(rebooted(&stage, NEW), NODES);
}

#[test]
fn a_node_without_an_image_fails_by_name_and_the_others_roll() {
    let stage = rolling();
    fs::remove_file(stage.path(&format!("reboot_vars/{}.yml", NODES[0]))).unwrap();
    let ended = submit(&stage, &[]).with_code(1);
    let _ = ended.saying(&[NODES[0], "reboot_vars"]);
    assert_eq!(rebooted(&stage, NEW), [NODES[1], NODES[2]]);
}

#[test]
fn a_status_knows_the_image_of_the_rollout_under_way() {
    let stage = rolling();
    for node in NODES {
        fs::remove_file(stage.path(&format!("reboot_vars/{node}.yml"))).unwrap();
    }
    let one = ["submit", "--once", "--image", OTHER];
    stage.run("rebuild", &one).with_code(0);
    assert_eq!(rebooted(&stage, OTHER).len(), 1, "the others have not been begun");
    assert_eq!(targets(&stage, &[]), pairs([OTHER, OTHER, OTHER]));
}

/// Nodes that slept came up on the old image after a rollout that had gone well.
#[test]
fn a_roll_says_that_nodes_start_with_another_image() {
    let stage = Fixture::new().running();
    let nodes = "vm-standard2-1-ad1-[0001-0004]: new machines still boot";
    let preview = |configured: &str| {
        let text = format!("{}image_id: {configured}\n", stage.configuration());
        stage.write("startnode.yaml", &text);
        stage.run("rebuild", &["submit", "--dry-run", "--image", NEW]).with_code(0).stderr
    };
    let said = preview(OLD);
    assert!([nodes, OLD, NEW, "image_id"].iter().all(|word| said.contains(word)), "{said}");
    assert!(!preview(NEW).contains("still boot"));
}

/// From a timer, a node that comes back on its old image was rebooted for ever.
#[test]
fn a_rollout_that_halted_goes_on_with_the_next_call() {
    let stage = rolling();
    submit(&stage, &[]).with_code(0);
    assert_eq!(rebooted(&stage, NEW), NODES);
    // They come back, and not with the image.
    stage.slurm.fake(&Fake {
        scontrol: "[ \"$1\" = reboot ] && { echo \"$*\" >> \"$DIR/reboots\"; exit; }\n\
                   exec 3>&1; \"$REAL/scontrol\" \"$@\" | sed 's/ State=[^ ]*/ State=IDLE/' >&3",
        sbatch: "exit 1",
    });
    fs::remove_file(stage.path("reboots")).unwrap();
    for _ in 0..3 {
        let ended = submit(&stage, &[]).with_code(1);
        assert!(ended.stdout.contains("3 failed") && ended.stdout.contains("--anew"), "{ended:?}");
        assert_eq!(stage.read("reboots"), "");
    }
    submit(&stage, &["--anew"]);
    assert_eq!(rebooted(&stage, NEW), NODES);
}

/// The machines of StackHPC's appliance are made by another tool: only the files say whose they are.
#[test]
fn a_roll_includes_machines_that_only_files_name() {
    let stage = rolling();
    let text = stage.read("startnode.yaml");
    stage.run("stopnode", &["--all", "--force"]).with_code(0);
    let bare = text.replace("cluster_id: c1\n", "");
    let more = "image_id: ocid1.image.oc1.phx.img001\nsubnet_id: ocid1.subnet.oc1.phx.aaaasub\n";
    stage.write("startnode.yaml", &format!("{bare}{more}"));
    stage.run("startnode", &["c1-general-[0001-0003]"]).with_code(0);
    stage.write("startnode.yaml", &text);
    for node in NODES {
        assert_eq!(stage.machine(node).freeform_tags.get("cluster"), None);
        vars(&stage, node, NEW);
    }
    assert_eq!(targets(&stage, &[]), pairs([NEW, NEW, NEW]));
    submit(&stage, &[]).with_code(0);
    assert_eq!(rebooted(&stage, NEW), NODES);
}

/// Those of other compartments are not listed.
#[test]
fn an_image_that_is_not_listed_is_taken_if_machines_start_with_it() {
    let stage = rolling();
    for node in NODES {
        fs::remove_file(stage.path(&format!("reboot_vars/{node}.yml"))).unwrap();
    }
    let elsewhere = "ocid1.image.oc1.phx.elsewhere";
    let unlisted = ["does not list image ocid1.image.oc1.phx.elsewhere"];
    // It may be mistyped, unless machines are to start with it.
    let _ = submit(&stage, &["--image", elsewhere])
        .with_code(2)
        .saying(&unlisted)
        .saying(&["set image_id to it first"]);
    let text = stage.read("startnode.yaml");
    let lines = text.lines().filter(|line| !line.starts_with("image_id:"));
    let lines: Vec<&str> = lines.collect();
    stage.write("startnode.yaml", &format!("{}\nimage_id: {elsewhere}\n", lines.join("\n")));
    let ended = submit(&stage, &["--dry-run", "--image", elsewhere]).with_code(0);
    assert!(ended.stdout.contains(elsewhere), "{ended:?}");
    let _ = ended.saying(&unlisted);
    let ended = submit(&stage, &["--dry-run", "--image", OTHER]).with_code(0);
    assert!(!ended.stderr.contains("does not list"), "{ended:?}");
    // As RebootProgram, which reads the reason that the roll has given.
    stage.slurm.fake(&Fake {
        scontrol: "exec 3>&1; \"$REAL/scontrol\" \"$@\" | sed '/^NodeName=/{s/ State=[^ ]*/ State=DOWN+DRAIN+REBOOT_ISSUED/; \
                   s/ Reason=.*//; s/ Comment=.*//; s/ InstanceId=.*//; s/$/ Reason=rebuild image:ocid1.image.oc1.phx.elsewhere : reboot issued [root@2026-11-16T00:00:00]/}' >&3",
        sbatch: "exit 1",
    });
    let plan = stage.run("rebuild", &["--dry-run", NODES[0]]).with_code(0).stdout;
    assert!(plan.contains("rebuild") && plan.contains(elsewhere), "{plan}");
}
