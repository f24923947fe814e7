//! What once went wrong, each as a call that shows it.

use crate::slurm::wait;
use crate::stage::Stage;
use std::fs;

const NODE: &str = "vm-standard2-1-ad1-0001";

/// 22.05 hides elastic nodes that are powered down, unless it is told otherwise.
#[test]
fn a_good_file_was_put_back_as_22_05_did_not_show_its_nodes() {
    let hide = |conf: &mut String| *conf = conf.replace("PrivateData=cloud\n", "");
    let stage = Stage::on("22.05", |_| {}, hide).running();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let ended = stage.run("finish", &[]).with_code(0);
    assert!(stage.read("etc/slurm.conf").contains("vm-standard2-1-ad1-[0001-0005]"), "{ended:?}");
    assert!(stage.slurm.is_up());
}

#[test]
fn a_dry_run_of_a_rollout_begun_anew_forgot_the_one_before() {
    let stage = Stage::new().running();
    let memory = "{\"image\":\"ocid1.image.oc1.phx.img003\",\"last\":7,\"tried\":[]}\n";
    stage.write("state/rollout.json", memory);
    let image = ["submit", "--image", "citc-ol9-3"];
    stage.run("rebuild", &[&image[..], &["--anew", "--dry-run"]].concat()).with_code(0);
    assert_eq!(stage.read("state/rollout.json"), memory);
}

#[test]
fn machines_ran_on_for_want_of_things_that_their_end_does_not_need() {
    let stage = Stage::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let text = format!("{}bootstrap_file: /nonexistent/bootstrap\n", stage.configuration());
    stage.write("startnode.yaml", &text);
    stage.run("startnode", &[NODE]).with_code(2).saying(&["/nonexistent/bootstrap"]);
    stage.run("startnode", &["--failed", "--dry-run", NODE]).with_code(0);
    let nowhere = ["--state-dir", "/proc/nowhere"];
    let listed = stage.run("stopnode", &[&nowhere[..], &["--dry-run", NODE]].concat());
    let _ = listed.with_code(0).saying(&["no locks and no memory", "/proc/nowhere"]);
    stage.write("etc/slurm.conf", "NodeName=n[1-\n");
    let ended = stage.run("stopnode", &["--all", "--force"]).saying(&["warning: ", "ClusterName"]);
    assert_eq!(stage.live(), Vec::<String>::new(), "{ended:?}");
}

#[test]
fn a_node_waited_for_its_timeout_as_the_cloud_could_not_be_opened() {
    let stage = Stage::new().running();
    let name = format!("nodename={NODE}");
    let _ = stage.slurm.ask("scontrol", &["update", &name, "state=power_up"]);
    let said = || stage.slurm.node(NODE, "State");
    wait("node on its way up", || said().contains("POWERING_UP").then_some(()), said);
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    stage.run("startnode", &[NODE]).with_code(2).saying(&[".oci/config", "given back to Slurm"]);
    wait("end of it", || (!said().contains("POWERING_UP")).then_some(()), said);
}
