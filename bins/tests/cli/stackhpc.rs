//! In the place of StackHPC's rebuild program: files name each node's image; the same means a reboot, another a rebuild.

use crate::fixture::Fixture;
use crate::slurm::wait;
use cloud_sim::State;

const NODES: [&str; 4] = [
    "vm-standard2-1-ad1-0001",
    "vm-standard2-1-ad1-0002",
    "vm-standard2-1-ad1-0003",
    "vm-standard2-1-ad1-0004",
];
const NEW: &str = "ocid1.image.oc1.phx.img003";

/// Four machines that run, and a directory for their files.
fn appliance() -> Fixture {
    let stage = Fixture::new().running();
    let dir = stage.dir.path().display().to_string();
    let more =
        format!("reboot_vars: {dir}/reboot_vars\nhostvars: {dir}/hostvars\nrebuild: in_place\n");
    let text = stage.configuration();
    stage.write("startnode.yaml", &format!("{text}{more}"));
    std::fs::create_dir(stage.path("reboot_vars")).unwrap();
    stage.run("startnode", &["vm-standard2-1-ad1-[0001-0004]"]).with_code(0);
    stage.cloud().clear_requests();
    stage
}

fn vars(stage: &Fixture, node: &str, image: &str) {
    let id = stage.machine(node).id;
    stage.write(
        &format!("reboot_vars/{node}.yml"),
        &format!("image_id: {image}\ninstance_id: {id}\n"),
    );
}

/// What was done to the machine of a node.
fn done(stage: &Fixture, node: &str) -> Vec<String> {
    let id = stage.machine(node).id;
    let all = stage.cloud().requests();
    let about = all.into_iter().filter(|it| it.method != "GET" && it.target.contains(&id));
    about
        .map(|request| format!("{} {}", request.method, request.target.replace(&id, "ID")))
        .collect()
}

fn image(stage: &Fixture, node: &str) -> String {
    let ended = stage.run("rebuild", &["status", "--json", node]).with_code(0);
    let rows: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    rows[0]["image"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_same_image_is_a_soft_reboot_and_another_a_rebuild() {
    let stage = appliance();
    let old = image_of_the_cluster(&stage);
    vars(&stage, NODES[0], &old);
    vars(&stage, NODES[1], NEW);
    // As slurmctld up to 25.11 gives it: with commas.
    let list = format!("{},{}", NODES[0], NODES[1]);
    stage.run("rebuild", &[&list]).with_code(0);
    assert_eq!(done(&stage, NODES[0]), ["POST /20160918/instances/ID?action=SOFTRESET"]);
    let rebuilt = done(&stage, NODES[1]);
    assert_eq!(rebuilt.len(), 1, "{rebuilt:?}");
    assert!(rebuilt[0].starts_with("PUT /20160918/instances/ID"), "{rebuilt:?}");
    assert_eq!(image(&stage, NODES[1]), NEW);
    // Neither instance nor address has changed.
    assert_eq!(stage.live().len(), 4);
}

fn image_of_the_cluster(stage: &Fixture) -> String {
    let ended = stage.run("listnodes", &["--json", NODES[0]]).with_code(0);
    let rows: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    rows[0]["image"].as_str().unwrap().to_owned()
}

#[test]
fn a_ranged_list_with_features_and_the_old_name_of_the_program() {
    let stage = appliance();
    vars(&stage, NODES[0], NEW);
    vars(&stage, NODES[1], NEW);
    let link = stage.path("slurm-openstack-rebuild");
    std::os::unix::fs::symlink(crate::fixture::program("rebuild"), &link).unwrap();
    let mut command = std::process::Command::new(&link);
    command.arg("--config").arg(stage.path("startnode.yaml"));
    command.args(["vm-standard2-1-ad1-[0001-0002]", "nodegroup_general"]);
    let output = command.env_clear().env("HOME", stage.path("home")).output().unwrap();
    crate::fixture::Ended::of(&output, stage.dir.path()).with_code(0);
    assert_eq!([image(&stage, NODES[0]), image(&stage, NODES[1])], [NEW, NEW]);
}

#[test]
fn a_missing_or_broken_file_fails_its_own_node_and_no_other() {
    let stage = appliance();
    vars(&stage, NODES[0], NEW);
    stage.write(&format!("reboot_vars/{}.yml", NODES[2]), "image_id: [\n");
    stage.write(&format!("reboot_vars/{}.yml", NODES[3]), "- image_id\n");
    let ended = stage.run("rebuild", &["vm-standard2-1-ad1-[0001-0004]"]).with_code(1);
    for node in &NODES[1..] {
        let ended = &ended.stderr;
        assert!(ended.contains(&format!("{node}: failed: ")), "{ended}");
        assert!(ended.contains(&format!("DIR/reboot_vars/{node}.yml")), "{ended}");
        assert_eq!(done(&stage, node), Vec::<String>::new());
    }
    assert!(!ended.stderr.contains(NODES[0]), "{ended:?}");
    assert_eq!(image(&stage, NODES[0]), NEW);
}

#[test]
fn hostvars_are_read_where_there_is_no_file_of_two_keys() {
    let stage = appliance();
    let id = stage.machine(NODES[0]).id;
    let text = format!(
        "{{\"image_id\": \"{NEW}\", \"instance_id\": \"{id}\", \"munge_key\": \"s3cr3t\", \"x\": \"{{{{ y }}}}\", \"z\": [1]}}\n"
    );
    stage.write(&format!("hostvars/{}/hostvars.yml", NODES[0]), &text);
    let ended = stage.run("rebuild", &["-v", NODES[0]]).with_code(0);
    assert_eq!(image(&stage, NODES[0]), NEW);
    let said = format!("{}{}{}", ended.stdout, ended.stderr, stage.read("log/elastic.log"));
    assert!(!said.contains("s3cr3t"), "{said}");
}

/// As the appliance's own nodes are, which another tool has made.
#[test]
fn a_machine_without_our_tags_that_the_file_names_is_rebuilt() {
    let stage = appliance();
    let text = stage.read("startnode.yaml");
    stage.run("stopnode", &["--now", NODES[0]]).with_code(0);
    // Until it is gone for good, its host name is taken.
    let gone = || {
        let all = stage.cloud().instances();
        let mut own = all.iter().filter(|instance| instance.display_name == NODES[0]);
        own.all(|instance| instance.lifecycle_state == State::Terminated).then_some(())
    };
    wait("end of the machine", gone, String::new);
    let more = "image_id: ocid1.image.oc1.phx.img001\nsubnet_id: ocid1.subnet.oc1.phx.aaaasub\n";
    let untagged = format!("{}{more}", text.replace("cluster_id: c1\n", ""));
    stage.write("startnode.yaml", &untagged);
    stage.run("startnode", &[NODES[0]]).with_code(0);
    assert_eq!(stage.machine(NODES[0]).freeform_tags.get("cluster"), None);
    stage.write("startnode.yaml", &text);
    stage.cloud().clear_requests();
    vars(&stage, NODES[0], NEW);
    stage.run("rebuild", &[NODES[0]]).with_code(0);
    let rebuilt = done(&stage, NODES[0]);
    assert!(rebuilt.len() == 1 && rebuilt[0].starts_with("PUT "), "{rebuilt:?}");
    stage.run("stopnode", &["--now", NODES[0]]).with_code(0);
    assert_eq!(stage.live().len(), 4, "what is not ours is not ours to end");
}

#[test]
fn a_file_that_names_another_machine_is_not_believed() {
    let stage = appliance();
    let text = format!("image_id: {NEW}\ninstance_id: ocid1.instance.oc1.phx.other\n");
    stage.write(&format!("reboot_vars/{}.yml", NODES[0]), &text);
    let ended = stage.run("rebuild", &[NODES[0]]).with_code(1);
    ended.saying(&["the files name instance ocid1.instance.oc1.phx.other"]);
    assert_eq!(done(&stage, NODES[0]), Vec::<String>::new());
}
