//! An operator's first hour: what the programs once said, or did not say, and how they ended.

use crate::stage::Stage;
use std::fs;
use std::time::{Duration, Instant};

/// scontrol looked for it for 20 seconds, and nobody said which file.
#[test]
fn a_missing_slurm_conf_was_a_scontrol_that_does_not_answer() {
    let stage = Stage::new();
    fs::remove_file(stage.path("etc/slurm.conf")).unwrap();
    let begun = Instant::now();
    let ended = stage.run("listnodes", &[]).with_code(2);
    let _ = ended.saying(&["cannot read slurm.conf DIR/etc/slurm.conf", "--slurm-conf"]);
    assert!(begun.elapsed() < Duration::from_secs(15), "scontrol was asked");
}

/// scontrol runs in another directory.
#[test]
fn a_slurm_conf_that_is_named_from_here_was_not_found() {
    let stage = Stage::new();
    let ended = stage.run("finish", &["--slurm-conf", "etc/slurm.conf", "--print"]).with_code(0);
    assert!(ended.stdout.contains("NodeName=vm-standard2-1-ad1-[0001-0004]"), "{ended:?}");
}

#[test]
fn keys_of_another_cloud_were_warned_of_only_once_the_cloud_was_there() {
    let stage = Stage::new();
    let text = stage.configuration().replace("csp: oracle", "csp: openstack");
    stage.write("startnode.yaml", &text);
    let ended = stage.run("listnodes", &[]).with_code(2);
    let ended = ended.saying(&["has no key \"compartment_id\"", "clouds.yaml"]);
    let place = |word: &str| ended.stderr.find(word).unwrap();
    assert!(place("compartment_id") < place("no clouds.yaml"), "{ended:#?}");
}
