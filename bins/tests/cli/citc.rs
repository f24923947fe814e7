//! In the place of Cluster in the Cloud's programs: its files, its node lines, its flow, its tags, its words in the log.

use crate::fixture::{Ended, Fixture, answer};
use crate::slurm::wait;
use cloud_sim::{Rule, State};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NODE: &str = "vm-standard2-1-ad2-0001";
const OTHER_SUBNET: &str = "ocid1.subnet.oc1.phx.aaaaother";

/// What CitC 6 writes on a management node of shape VM.Standard2.1 in the first availability domain.
fn management_node() -> Fixture {
    let stage = Fixture::with(
        // Another cluster's, in the same network.
        |settings| {
            let mut other = settings.subnets[0].clone();
            OTHER_SUBNET.clone_into(&mut other.id);
            "10.2.0.0/16".clone_into(&mut other.cidr);
            other.freeform_tags = BTreeMap::from([("cluster".to_owned(), "c2".to_owned())]);
            settings.subnets.push(other);
        },
        |conf| {
            // The static part includes the shared one, which has the markers.
            let (fixed, shared) = conf.split_at(conf.find("ResumeProgram").unwrap());
            *conf = format!("{fixed}include shared.conf\n# SHARED\n{shared}");
        },
    );
    let text = stage.read("etc/slurm.conf");
    let (fixed, shared) = text.split_once("# SHARED\n").unwrap();
    stage.write("etc/slurm.conf", fixed);
    stage.write("etc/shared.conf", shared);
    stage.write("shapes.yaml", SHAPES);
    stage.write("mgmt_shape.yaml", "mgmt_ad: 1\nmgmt_shape: VM.Standard2.1\n");
    stage.write(
        "limits.yaml",
        "VM.Standard2.1: {1: 1, 2: 1, 3: 1}\nVM.Standard2.2: {1: 1, 2: 1, 3: 1}\n",
    );
    let dir = stage.dir.path().display().to_string();
    let more = format!("shapes_file: {dir}/shapes.yaml\nmgmt_shape_file: {dir}/mgmt_shape.yaml\n");
    let text = stage.configuration();
    stage.write("startnode.yaml", &format!("{text}{more}"));
    stage
}

const SHAPES: &str = "\
VM.Standard2.1: {memory: 12700, cores_per_socket: 1, threads_per_core: 2}
VM.Standard2.2: {memory: 27400, cores_per_socket: 2, threads_per_core: 2}
";

/// Its own lines, as its own program writes them for these files.
const GOLDEN: &str = r#"NodeName=vm-standard2-1-ad2-0001                  State=CLOUD   SocketsPerBoard=1 CoresPerSocket=1   ThreadsPerCore=2 RealMemory=12700      Gres="" Features="shape=VM.Standard2.1,ad=2,arch=x86_64"
NodeName=vm-standard2-1-ad3-0001                  State=CLOUD   SocketsPerBoard=1 CoresPerSocket=1   ThreadsPerCore=2 RealMemory=12700      Gres="" Features="shape=VM.Standard2.1,ad=3,arch=x86_64"
NodeName=vm-standard2-2-ad1-0001                  State=CLOUD   SocketsPerBoard=1 CoresPerSocket=2   ThreadsPerCore=2 RealMemory=27400      Gres="" Features="shape=VM.Standard2.2,ad=1,arch=x86_64"
NodeName=vm-standard2-2-ad2-0001                  State=CLOUD   SocketsPerBoard=1 CoresPerSocket=2   ThreadsPerCore=2 RealMemory=27400      Gres="" Features="shape=VM.Standard2.2,ad=2,arch=x86_64"
NodeName=vm-standard2-2-ad3-0001                  State=CLOUD   SocketsPerBoard=1 CoresPerSocket=2   ThreadsPerCore=2 RealMemory=27400      Gres="" Features="shape=VM.Standard2.2,ad=3,arch=x86_64"
"#;

/// A cluster whose slurmctld runs with CitC's lines.
fn cluster() -> Fixture {
    let mut stage = management_node();
    let section = stage.run("finish", &["--style", "citc", "--print"]).with_code(0).stdout;
    let text = stage.read("etc/shared.conf");
    stage.write("etc/shared.conf", &text.replace("# This section will be replaced\n", &section));
    stage.slurm.start();
    stage
}

#[test]
fn finish_writes_the_same_lines() {
    let stage = management_node();
    let ended = stage.run("finish", &["--style", "citc", "--print"]).with_code(0);
    assert_eq!(ended.stdout, GOLDEN);
}

#[test]
fn finish_changes_what_is_between_the_markers_of_the_shared_file_and_nothing_else() {
    let mut stage = management_node();
    // slurmctld needs a node to run at all.
    stage.write(
        "etc/shared.conf",
        &stage
            .read("etc/shared.conf")
            .replace("# STARTNODES", "NodeName=x CPUs=1 State=CLOUD\n# STARTNODES"),
    );
    let before = stage.read("etc/shared.conf");
    let fixed = stage.read("etc/slurm.conf");
    stage.slurm.start();
    stage.run("finish", &["--style", "citc"]).with_code(0);
    let expected = before.replace("# This section will be replaced\n", GOLDEN);
    assert_eq!(stage.read("etc/shared.conf"), expected);
    assert_eq!(stage.read("etc/slurm.conf"), fixed);
    assert_eq!(stage.slurm.node(NODE, "RealMemory"), "12700");
}

/// Whoever switches writes lines outside the markers, and CitC's lines between them stay as they are: `finish` has nothing to
/// change, and so tells nobody.
#[test]
fn lines_that_slurmctld_has_not_read_are_a_warning() {
    let stage = cluster();
    let check = || stage.run("finish", &["--check", "--style", "citc"]).stdout;
    let said = check();
    assert!(!said.contains("slurmctld does not run with"), "{said}");
    let text = stage.read("etc/shared.conf");
    let more = "ResumeFailProgram=/bin/false\n# STARTNODES";
    let text = text.replace("ResumeFailProgram=/bin/true\n", "").replace("# STARTNODES", more);
    stage.write("etc/shared.conf", &text);
    let said = check();
    let odd = "warn slurmctld does not run with what DIR/etc/slurm.conf says of ResumeFailProgram: scontrol reconfigure";
    assert!(said.lines().any(|line| line == odd), "{said}");
    stage.slurm.ask("scontrol", &["reconfigure"]);
    let said = || check().contains("slurmctld does not run with");
    wait("slurmctld with the new lines", || (!said()).then_some(()), check);
}

#[test]
fn finish_waits_until_the_management_node_is_ready() {
    let stage = management_node();
    let dir = stage.dir.path().display().to_string();
    std::fs::create_dir(stage.path("finalised")).unwrap();
    let text = stage.read("startnode.yaml");
    stage.write("startnode.yaml", &format!("{text}finalised_dir: {dir}/finalised\n"));
    let before = stage.files();
    stage.run("finish", &[]).with_code(1).saying(&["DIR/finalised/", "/root/ansible-pull.log"]);
    assert_eq!(stage.files(), before);
}

#[test]
fn a_start_launches_as_it_did_and_tells_slurm_the_address() {
    let stage = cluster();
    let ended = stage.run("startnode", &[NODE]).with_code(0);
    let launches: Vec<_> = stage
        .cloud()
        .requests()
        .into_iter()
        .filter(|it| it.operation == "LaunchInstance")
        .collect();
    assert_eq!(launches.len(), 1, "{ended:?}");
    let body: Value = serde_json::from_str(&launches[0].body).unwrap();
    let expected = json!({
        "compartmentId": "ocid1.compartment.oc1..aaaacomp",
        "availabilityDomain": "Uocm:PHX-AD-2",
        "shape": "VM.Standard2.1",
        "displayName": NODE,
        "freeformTags": {"cluster": "c1", "type": "compute", "node": NODE},
        "metadata": {
            "ssh_authorized_keys": "ssh-ed25519 AAAA operator",
            "user_data": "IyEvYmluL3NoCnN5c3RlbWN0bCBzdGFydCBzbHVybWQK",
        },
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(body[key], *value, "{key}");
    }
    assert_eq!(body["createVnicDetails"]["hostnameLabel"], NODE);
    // Found by the cluster's tag in the network.
    assert_eq!(body["createVnicDetails"]["subnetId"], "ocid1.subnet.oc1.phx.aaaasub");
    let machine = stage.machine(NODE);
    let address = stage.cloud().address(&machine.id).unwrap().to_string();
    assert_eq!(stage.slurm.node(NODE, "NodeAddr"), address);
    let log = stage.read("log/elastic.log");
    let said = format!("{ended:?}{log}{}", stage.read("state/events.jsonl"));
    for secret in ["systemctl start slurmd", "IyEvYmluL3No", "PRIVATE KEY", "AAAA operator"] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
    assert_in_order(
        &log,
        &[&format!("{NODE}:  Starting"), &format!("{NODE}:  Started, Private IP {address}")],
    );
    line_format(&log);
}

/// `2019-06-10 11:29:37,108 startnode  ERROR    node:  text`
fn line_format(log: &str) {
    for line in log.lines() {
        let bytes = line.as_bytes();
        let shape: String =
            line.chars().take(24).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(shape, "0000-00-00 00:00:00,000 ", "{line}");
        assert_eq!((bytes[34], bytes[43]), (b' ', b' '), "{line}");
        assert!(line.is_char_boundary(24) && line[24..34].starts_with("st"), "{line}");
    }
}

fn assert_in_order(log: &str, phrases: &[&str]) {
    let mut rest = log;
    for phrase in phrases {
        let Some((_, after)) = rest.split_once(phrase) else {
            panic!("no {phrase:?} in what follows in the log:\n{log}")
        };
        rest = after;
    }
}

#[test]
fn a_start_of_what_runs_starts_nothing() {
    let stage = cluster();
    stage.run("startnode", &[NODE]).with_code(0);
    stage.cloud().clear_requests();
    stage.run("startnode", &[NODE]).with_code(0);
    assert_eq!(stage.changes(), Vec::<String>::new());
    assert!(stage.read("log/elastic.log").contains("host is already running with state"));
}

#[test]
fn a_start_waits_for_a_machine_that_is_going() {
    let stage = cluster();
    stage.run("startnode", &[NODE]).with_code(0);
    let first = stage.machine(NODE).id;
    stage.cloud().set_state(&first, State::Terminating).unwrap();
    let mut child = stage.command("startnode", &[NODE]).spawn().unwrap();
    let log = || stage.read("log/elastic.log");
    wait(
        "word of waiting",
        || log().contains("host is currently terminating. Waiting...").then_some(()),
        log,
    );
    stage.cloud().set_state(&first, State::Terminated).unwrap();
    let status = wait("end", || child.try_wait().unwrap(), log);
    assert_eq!(status.code(), Some(0), "{}", log());
    assert_ne!(stage.machine(NODE).id, first);
}

#[test]
fn a_launch_that_the_cloud_refuses_is_logged_as_ever() {
    let stage = cluster();
    let answer = answer(400, "LimitExceeded", "The following service limits were exceeded");
    stage.cloud().add_fault(Rule::always("LaunchInstance", answer)).unwrap();
    stage.run("startnode", &[NODE]).with_code(1).saying(&["service limits were exceeded"]);
    let log = stage.read("log/elastic.log");
    assert!(log.contains(&format!("{NODE}:  problem launching instance: ")), "{log}");
    assert!(log.contains("service limits were exceeded"), "{log}");
}

/// The same compartment, the same node names.
#[test]
fn a_stop_leaves_another_clusters_machine_of_the_same_name_alone() {
    let stage = cluster();
    let text = stage.read("startnode.yaml");
    let other = text.replace("cluster_id: c1", "cluster_id: c2").replace("/state,", "/state2,");
    let other = format!("{other}image_id: ocid1.image.oc1.phx.img001\n");
    stage.run("startnode", &[NODE]).with_code(0);
    stage.write("startnode.yaml", &other);
    stage.run("startnode", &[NODE]).with_code(0);
    assert_eq!(stage.live(), [NODE, NODE]);
    stage.write("startnode.yaml", &text);
    stage.run("stopnode", &[NODE]).with_code(0);
    stage.run("stopnode", &["--all", "--force"]).with_code(0);
    assert_eq!(stage.machine(NODE).freeform_tags["cluster"], "c2");
    assert_eq!(stage.live(), [NODE]);
    let log = stage.read("log/elastic.log");
    assert_in_order(&log, &[&format!("{NODE}:  Stopping"), &format!("{NODE}:  Stopped")]);
}

#[test]
fn a_stop_that_fails_is_logged_as_ever_and_the_others_go_on() {
    let stage = cluster();
    let other = "vm-standard2-1-ad3-0001";
    let both = format!("{NODE},{other}");
    stage.run("startnode", &[&both]).with_code(0);
    let answer = answer(
        404,
        "NotAuthorizedOrNotFound",
        "Authorization failed or requested resource not found",
    );
    let id = stage.machine(NODE).id;
    let rule = Rule { containing: Some(id), ..Rule::always("TerminateInstance", answer) };
    stage.cloud().add_fault(rule).unwrap();
    let ended = stage.run("stopnode", &[&both]);
    assert_eq!(stage.live(), [NODE], "{ended:?}");
    let ended: Ended = ended.with_code(1).saying(&[&format!("{NODE}: problem while stopping: ")]);
    assert!(
        stage.read("log/elastic.log").contains(&format!("{NODE}:  problem while stopping: ")),
        "{ended:?}"
    );
}

/// CitC's terraform ends the nodes that sinfo lists by hand, and took what was left for done.
#[test]
fn machines_that_are_left_are_no_success() {
    let stage = cluster();
    stage.run("startnode", &[NODE]).with_code(0);
    stage.slurm.ask("scontrol", &["update", &format!("nodename={NODE}"), "state=power_up"]);
    let power = || stage.slurm.node(NODE, "State");
    wait("node that powers up", || power().contains("POWERING_UP").then_some(()), power);
    let conf = stage.path("etc/slurm.conf");
    for (variables, code) in [
        (&["PATH"][..], 1),
        (&["PATH", "SLURM_CONF"], 1),
        // As slurmctld calls: it wants the node again.
        (&["SLURM_CONF"], 0),
    ] {
        let mut command = stage.command("stopnode", &[NODE]);
        for variable in variables {
            let value = if *variable == "PATH" { "/usr/bin".as_ref() } else { conf.as_path() };
            command.env(variable, value);
        }
        let ended = Ended::of(&command.output().unwrap(), stage.dir.path());
        let _ = ended.with_code(code).saying(&["is in use; not stopped"]);
    }
    assert_eq!(stage.live(), [NODE]);
    stage.run("stopnode", &["--all", "--force"]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

#[test]
fn by_hand_a_node_in_service_is_left_alone_and_the_way_is_said() {
    let stage = cluster();
    stage.run("startnode", &[NODE]).with_code(0);
    // In service, as far as Slurm knows.
    stage.slurm.ask("scontrol", &["update", &format!("nodename={NODE}"), "state=power_up"]);
    let power = || stage.slurm.node(NODE, "State");
    wait("node that powers up", || power().contains("POWERING_UP").then_some(()), power);
    stage.run("stopnode", &[NODE]).with_code(1).saying(&[
        "is in use; not stopped",
        &format!("stopnode --now {NODE}"),
        "stopnode --all --force",
    ]);
    stage.run("stopnode", &["--dry-run", NODE]).with_code(1);
    assert_eq!(stage.live(), [NODE]);
    stage.run("stopnode", &["--now", NODE]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}
