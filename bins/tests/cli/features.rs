//! Features that slurm.conf does not have, and slurmctld does.

use crate::fixture::Fixture;
use crate::slurm::wait;

const NODE: &str = "vm-standard2-1-ad1-0001";

#[test]
fn features_that_were_given_with_scontrol() {
    let stage = Fixture::new().running();
    let name = format!("nodename={NODE}");
    let features = "shape=VM.Standard2.4,ad=1";
    let given = [format!("availablefeatures={features}"), format!("activefeatures={features}")];
    stage.slurm.ask("scontrol", &["update", &name, &given[0], &given[1]]);
    // What slurm.conf says goes first.
    stage.run("startnode", &[NODE]).with_code(0);
    assert_eq!(stage.machine(NODE).shape, "VM.Standard2.1");
    stage.run("stopnode", &[NODE]).with_code(0);
    let text = stage.read("etc/slurm.conf");
    let bare = |line: &str| {
        let words = line.split(' ').filter(|word| !word.starts_with("Features="));
        words.collect::<Vec<_>>().join(" ")
    };
    let text: Vec<String> = text.lines().map(bare).collect();
    stage.write("etc/slurm.conf", &format!("{}\n", text.join("\n")));
    stage.run("startnode", &[NODE]).with_code(0);
    let shown = stage.slurm.ask("scontrol", &["show", "node", NODE]);
    assert_eq!(stage.machine(NODE).shape, "VM.Standard2.4", "{shown}");
}

#[test]
fn a_node_that_was_made_with_scontrol() {
    let stage = with_a_made_node();
    stage.run("startnode", &["dynamic7"]).with_code(0);
    assert_eq!(stage.live(), ["dynamic7"]);
    stage.run("stopnode", &["--now", "dynamic7"]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

/// By name alone, machines of nodes that slurm.conf does not have were nobody's.
#[test]
fn the_machine_of_a_made_node_ends_where_names_alone_tell_machines() {
    let stage = with_a_made_node();
    let lines = stage.configuration();
    let kept = lines.lines().filter(|line| !line.starts_with("cluster_id"));
    let lines: Vec<&str> = kept.chain(["image_id: ocid1.image.oc1.phx.img001"]).collect();
    stage.write("startnode.yaml", &format!("{}\n", lines.join("\n")));
    stage.run("startnode", &["dynamic7"]).with_code(0);
    assert_eq!(stage.live(), ["dynamic7"]);
    stage.run("stopnode", &["--now", "dynamic7"]).with_code(0);
    assert_eq!(stage.live(), Vec::<String>::new());
}

/// A Slurm with a node that slurm.conf does not have.
fn with_a_made_node() -> Fixture {
    let stage = Fixture::with(|_| {}, |conf| conf.push_str("MaxNodeCount=64\n")).running();
    let made = ["create", "nodename=dynamic7", "state=cloud", "cpus=1"];
    let features = "features=shape=VM.Standard2.1,ad=1";
    stage.slurm.ask("scontrol", &[&made[..], &[features]].concat());
    let shown = || stage.slurm.ask("scontrol", &["show", "node", "dynamic7"]);
    wait("the node", || shown().contains("DYNAMIC_NORM").then_some(()), shown);
    stage
}
