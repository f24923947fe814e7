//! Nodes that Slurm waits for, as it has asked for a rebuild, and that will not come.

use crate::caller::by_daemon;
use crate::fixture::{Ended, Fixture, program};
use crate::jobs::{NODES, OLD, appliance};
use crate::slurm::Fake;
use cloud_sim::{Fault, Rule};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Three machines, and a Slurm that has all nodes in this state; what it is told is written down.
fn waiting(flags: &str) -> Fixture {
    let stage = appliance();
    let scontrol = format!(
        "[ \"$1\" = update ] && {{ echo \"$*\" >> \"$DIR/updates\"; exit; }}\n\
         exec 3>&1; \"$REAL/scontrol\" \"$@\" | sed 's/ State=[^ ]*/ State={flags}/' >&3"
    );
    stage.slurm.fake(&Fake { scontrol: &scontrol, sbatch: "exit 1" });
    stage.cloud().clear_requests();
    stage
}

/// The call by slurmctld, with what it sets.
fn called(stage: &Fixture, program: &str, variable: (&str, &str)) -> Ended {
    let mut command = stage.command(program, &[NODES[0]]);
    let output = command.env(variable.0, variable.1).output().unwrap();
    Ended::of(&output, stage.dir.path())
}

/// The one thing that Slurm was told.
fn told(stage: &Fixture) -> String {
    let text = stage.read("updates");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(
        text.starts_with(&format!("update nodename={} state=drain reason=", NODES[0])),
        "{text}"
    );
    text
}

#[test]
fn a_rebuild_that_cannot_begin_is_reported_to_slurm() {
    let stage = waiting("DOWN+DRAIN+REBOOT_ISSUED");
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    stage.run("rebuild", &["--dry-run", NODES[0]]).with_code(2);
    assert_eq!(stage.read("updates"), "");
    by_daemon(&stage, "slurmctld", &[NODES[0]]).with_code(2).saying(&[".oci/config"]);
    let text = told(&stage);
    assert!(text.contains(": not rebuilt: ") && text.contains(".oci/config"), "{text}");
}

#[test]
fn a_rebuild_with_a_wrong_configuration_is_reported_to_slurm() {
    let stage = waiting("DOWN+DRAIN+REBOOT_ISSUED");
    stage.write("startnode.yaml", &format!("{}rebuild: perhaps\n", stage.read("startnode.yaml")));
    by_daemon(&stage, "slurmctld", &[NODES[0]]).with_code(2).saying(&["perhaps"]);
    assert!(told(&stage).contains(": not rebuilt: configuration: "), "{}", told(&stage));
}

#[test]
fn a_rebuild_job_whose_program_cannot_begin_is_reported_to_slurm() {
    let stage = waiting("ALLOCATED+NOT_RESPONDING+POWERING_UP+REBOOT_ISSUED");
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    called(&stage, "startnode", ("SLURM_JOB_ID", "7")).with_code(2).saying(&[".oci/config"]);
    assert!(told(&stage).contains("reason=elastic: not rebuilt: "), "{}", told(&stage));
}

/// As slurmctld calls where a plugin for features of nodes is active: nothing was done, and the job waited for ResumeTimeout.
#[test]
fn a_rebuild_job_may_have_features() {
    let stage = waiting("ALLOCATED+NOT_RESPONDING+POWERING_UP");
    let link = stage.path("slurm-openstack-resume");
    std::os::unix::fs::symlink(program("startnode"), &link).unwrap();
    for program in [Path::new(program("startnode")), &link] {
        let mut command = Command::new(program);
        command.arg("--config").arg(stage.path("startnode.yaml")).args([NODES[0], "knl,flat"]);
        command.env_clear().env("HOME", stage.path("home")).env("SLURM_JOB_ID", "7");
        Ended::of(&command.output().unwrap(), stage.dir.path()).with_code(0);
        assert_eq!(stage.changes().len(), 1, "{:?}", stage.changes());
        stage.cloud().clear_requests();
    }
    // By hand, the second would be a node that is not started.
    stage
        .run("startnode", &[NODES[0], NODES[1]])
        .with_code(2)
        .saying(&["in one list, separated by commas"]);
}

#[test]
fn a_rebuild_does_not_begin_after_slurm_has_given_up() {
    let stage = waiting("DOWN+DRAIN+REBOOT_ISSUED");
    // So that the image has to be asked for.
    let text = stage.read("startnode.yaml").replace(&format!("image_id: {OLD}\n"), "");
    stage.write("startnode.yaml", &text.replace("cooldown: 5s", "cooldown: 5s, deadline: 1s"));
    let slow = Fault::Delay { millis: 2000 };
    stage.cloud().add_fault(Rule::always("ListImages", slow)).unwrap();
    by_daemon(&stage, "slurmctld", &[NODES[0]]).with_code(1);
    assert_eq!(stage.changes(), Vec::<String>::new());
    let _ = told(&stage);
}

/// Whoever calls it so has made a mistake, and the rebuild that Slurm waits for may be on its way.
#[test]
fn a_mistake_in_a_call_from_cron_fails_no_rebuild_of_slurm() {
    let stage = waiting("DOWN+DRAIN+REBOOT_ISSUED");
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    let ended = by_daemon(&stage, "cron", &[NODES[0]]).with_code(2);
    let _ = ended.saying(&[".oci/config"]);
    assert_eq!(stage.read("updates"), "");
    by_daemon(&stage, "slurmctld", &[NODES[0]]).with_code(2);
    assert!(told(&stage).contains(": not rebuilt: "), "{}", told(&stage));
}

/// slurmctld would end them before they could say a word.
#[test]
fn a_cloud_that_never_answers_does_not_keep_programs_beyond_their_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("endpoint: http://{}", silent.local_addr().unwrap());
    for (program, flags, words) in [
        ("rebuild", "DOWN+DRAIN+REBOOT_ISSUED", ["state=drain", "not rebuilt: "]),
        ("startnode", "ALLOCATED+CLOUD+POWERING_UP", ["state=power_down_force", "elastic: "]),
    ] {
        let stage = waiting(flags);
        let text =
            stage.read("startnode.yaml").replace("cooldown: 5s", "cooldown: 5s, deadline: 5s");
        let old = text.lines().find(|line| line.starts_with("endpoint: ")).unwrap();
        stage.write("startnode.yaml", &text.replace(old, &endpoint));
        let conf = stage.path("etc/slurm.conf").display().to_string();
        let begun = Instant::now();
        let ended = match program {
            "rebuild" => by_daemon(&stage, "slurmctld", &[NODES[0]]),
            _ => called(&stage, program, ("SLURM_CONF", &conf)),
        };
        let ended = ended.with_code(1);
        let _ = ended.saying(&["the cloud did not answer in time"]);
        assert!(begun.elapsed() < Duration::from_secs(30), "{program}: {:?}", begun.elapsed());
        let told = stage.read("updates");
        assert!(words.iter().all(|word| told.contains(word)), "{program}: {told}");
    }
}
