//! Rebuild jobs as StackHPC's playbook submits them, for nodes that are always there.

use crate::fixture::{Ended, Fixture};
use crate::slurm::Fake;

pub(crate) const OLD: &str = "ocid1.image.oc1.phx.img001";
pub(crate) const NEW: &str = "ocid1.image.oc1.phx.img003";
pub(crate) const NODES: [&str; 3] = ["c1-general-0001", "c1-general-0002", "c1-general-0003"];

/// Three machines that run the old image, and a Slurm that takes them for up; what sbatch is given is written down.
pub(crate) fn appliance() -> Fixture {
    let partitions = "PartitionName=rebuild Nodes=c1-general-0001\nPartitionName=other Nodes=ALL\n";
    let stage = Fixture::with(|_| {}, |conf| conf.push_str(partitions));
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, zone: '1', min: 3, max: 3}\n");
    stage.write("hosts", &NODES.map(|node| format!("127.0.0.1 {node}\n")).concat());
    let stage = stage.running();
    stage.write("startnode.yaml", &format!("{}image_id: {OLD}\n", stage.configuration()));
    stage.run("startnode", &["c1-general-[0001-0003]"]).with_code(0);
    let dir = stage.dir.path().display();
    let files = format!("reboot_vars: {dir}/reboot_vars\n");
    let real = stage.slurm.bin().display().to_string();
    let text = stage.configuration().replace(&real, &format!("{dir}/bin"));
    stage.write("startnode.yaml", &format!("{text}{files}"));
    stage.slurm.fake(&Fake {
        scontrol: "exec 3>&1; \"$REAL/scontrol\" \"$@\" | sed 's/ State=[^ ]*/ State=IDLE/' >&3",
        sbatch: "for word; do printf '%s|' \"$word\"; done >> \"$DIR/submitted\"; echo >> \"$DIR/submitted\"; echo 7",
    });
    for node in NODES {
        vars(&stage, node, NEW);
    }
    stage
}

pub(crate) fn vars(stage: &Fixture, node: &str, image: &str) {
    let id = stage.machine(node).id;
    let text = format!("image_id: {image}\ninstance_id: {id}\n");
    stage.write(&format!("reboot_vars/{node}.yml"), &text);
}

fn submit(stage: &Fixture, arguments: &[&str]) -> Ended {
    stage.run("rebuild", &[&["submit"], arguments].concat())
}

#[test]
fn a_job_for_each_node_with_the_options_of_the_playbook() {
    let stage = appliance();
    vars(&stage, NODES[2], OLD);
    let form = ["--jobs", "rebuild,other", "--name", "reimage", "--command", "sleep 5"];
    let plan = submit(&stage, &[&form[..], &["--dry-run"]].concat()).with_code(0).stdout;
    assert!(plan.contains("job=reimage-c1-general-0001 partition=rebuild"), "{plan}");
    assert_eq!(stage.read("submitted"), "");
    let ended = submit(&stage, &[&form[..], &["--option=--qos=high"]].concat()).with_code(0);
    assert_eq!(ended.stdout, "2 jobs submitted\n");
    let line = |node: &str, partition: &str| {
        format!(
            "--parsable|--nodes=1|--output=/dev/null|--export=NONE|--job-name=reimage-{node}|--partition={partition}|\
             --nodelist={node}|--chdir=/|--wrap=sleep 5|--exclusive|--reboot|--no-requeue|--qos=high|\n"
        )
    };
    let expected = [line(NODES[0], "rebuild"), line(NODES[1], "other")];
    assert_eq!(stage.read("submitted"), expected.concat(), "the third node has its image");
}

#[test]
fn without_a_list_the_nodes_of_the_jobs_partition_and_without_a_reboot_if_so_told() {
    let stage = appliance();
    submit(&stage, &["--jobs", "--no-reboot"]).with_code(0);
    let submitted = stage.read("submitted");
    assert!(submitted.contains("--job-name=rebuild-c1-general-0001|"), "{submitted}");
    assert_eq!(submitted.lines().count(), 1, "{submitted}");
    assert!(!submitted.contains("--reboot"), "{submitted}");
    submit(&stage, &["--jobs", "nowhere"]).with_code(2).saying(&["nowhere"]);
    submit(&stage, &["--jobs", "--option", "script.sh"]).with_code(2).saying(&["begins with --"]);
    submit(&stage, &["--name", "x"]).with_code(2).saying(&["--jobs"]);
}

#[test]
fn jobs_keep_the_image_that_was_asked_for() {
    let stage = appliance();
    vars(&stage, NODES[1], OLD);
    let ended = submit(&stage, &["--jobs", "other", "--image", NEW]).with_code(2);
    let ended = ended.saying(&["c1-general-0002 (", "reboot_vars", "leave --jobs out"]);
    assert!(!ended.stderr.contains(NODES[0]), "{ended:?}");
    assert_eq!(stage.read("submitted"), "");
    submit(&stage, &["--jobs", "other", "--image", NEW, NODES[0]]).with_code(0);
    assert_eq!(stage.read("submitted").lines().count(), 1);
}

#[test]
fn a_node_without_a_file_fails_by_name_and_the_others_get_their_jobs() {
    let stage = appliance();
    std::fs::remove_file(stage.path(&format!("reboot_vars/{}.yml", NODES[0]))).unwrap();
    let ended = submit(&stage, &["--jobs", "other"]).with_code(1);
    let _ = ended.saying(&["c1-general-0001: ", "reboot_vars/c1-general-0001.yml"]);
    assert_eq!(stage.read("submitted").lines().count(), 2);
}
