//! `finish --check`: every point is said, with what to do about it, and none hides another.

use crate::fixture::{Ended, Fixture, answer, program};
use crate::slurm::{Fake, wait};
use cloud_sim::{Limit, Rule};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

/// The points that a check finds, each with its state before it.
fn points(ended: &Ended) -> Vec<String> {
    let all: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:#?}"));
    let text = |point: &Value| {
        let of = |key: &str| point[key].as_str().unwrap().to_owned();
        format!("{} {}", of("state"), of("what"))
    };
    all.as_array().unwrap().iter().map(text).collect()
}

fn check(stage: &Fixture) -> Ended {
    let before = stage.files();
    let ended = stage.run("finish", &["--check", "--json"]);
    assert_eq!((stage.files(), stage.changes()), (before, Vec::new()), "{ended:#?}");
    ended
}

/// What a check finds where nothing is wrong; slurmctld cannot run before there are nodes.
fn well(ended: Ended) -> Vec<String> {
    let said = points(&ended.with_code(0));
    assert!(point(&said, "slurmctld cannot run yet").starts_with("ok "), "{said:#?}");
    said
}

/// The one point that begins so.
fn point<'a>(points: &'a [String], words: &str) -> &'a str {
    let found: Vec<_> = points.iter().filter(|point| point.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {points:#?}");
    found[0]
}

#[test]
fn limits_beyond_what_the_cloud_allows() {
    let stage = Fixture::with(
        |settings| {
            let (name, value) = ("standard2-core-count".to_owned(), 3);
            let availability_domain = Some("Uocm:PHX-AD-1".to_owned());
            settings.limits = vec![Limit { name, availability_domain, value }];
        },
        |_| {},
    );
    let said = well(check(&stage));
    let words = "warn limits.yaml asks for 4 of standard2-core-count in Uocm:PHX-AD-1, and the cloud allows 3";
    assert!(point(&said, "core-count").starts_with(words), "{said:#?}");
    stage.write("limits.yaml", "VM.Standard2.1: {1: 3}\n");
    let said = well(check(&stage));
    assert_eq!(point(&said, "allows"), "ok 3 nodes, and the cloud allows as many");
}

#[test]
fn parameters_and_programs_of_slurm() {
    let stage = Fixture::with(
        |_| {},
        |conf| {
            *conf = conf
                .replace("ResumeTimeout=600", "ResumeTimeout=30")
                .replace("ResumeProgram=/bin/true", "ResumeProgram=/nowhere/startnode")
                .replace("SuspendProgram=/bin/true", "SuspendProgram=DIR/stop")
                .replace("ResumeFailProgram=/bin/true\n", "");
        },
    );
    let dir = stage.dir.path().display().to_string();
    stage.write("etc/slurm.conf", &stage.read("etc/slurm.conf").replace("DIR", &dir));
    stage.write("stop", "#!/bin/sh\n");
    fs::set_permissions(stage.path("stop"), fs::Permissions::from_mode(0o777)).unwrap();
    let said = points(&check(&stage).with_code(1));
    for (words, remedy) in [
        ("warn ResumeTimeout is 30 s", "ResumeTimeout=600"),
        ("fail ResumeProgram=/nowhere/startnode", "--print-power"),
        ("is writable by others", "chmod go-w"),
        ("fail slurm.conf has no ResumeFailProgram", "startnode-failed"),
    ] {
        assert!(point(&said, words).contains(remedy), "{words}: {said:#?}");
    }
}

#[test]
fn files_that_slurmctld_cannot_write_and_others_can() {
    let stage =
        Fixture::with(|_| {}, |conf| *conf = conf.replace("SlurmUser=root", "SlurmUser=daemon"));
    let mode = fs::Permissions::from_mode(0o666);
    fs::set_permissions(stage.path("startnode.yaml"), mode).unwrap();
    let key = stage.path("home/.oci/config").display().to_string();
    let text = stage.configuration();
    stage.write("startnode.yaml", &format!("{text}config_file: {key}\n"));
    let said = points(&check(&stage).with_code(1));
    assert!(point(&said, "startnode.yaml").contains("chmod go-w"), "{said:#?}");
    assert!(point(&said, "DIR/state").starts_with("fail daemon, the user"), "{said:#?}");
    assert!(point(&said, "DIR/log/elastic.log").starts_with("warn daemon"), "{said:#?}");
}

#[test]
fn one_failed_check_hides_no_other() {
    let stage = Fixture::with(|_| {}, |conf| *conf = conf.replace("# ENDNODES\n", ""));
    fs::create_dir(stage.path("finalised")).unwrap();
    stage.write("limits.yaml", "VM.Standard2.1: many\nVM.Standard2.2: {1: few}\n");
    let dir = stage.dir.path().display().to_string();
    let text = stage.configuration().replace("cluster_id: c1", "cluster_id: c9");
    let more =
        format!("finalised_dir: {dir}/finalised\nimage_id: nowhere\nbootstrap_file: /no/boot\n");
    stage.write("startnode.yaml", &format!("{text}{more}"));
    let said = points(&check(&stage).with_code(1));
    for words in [
        "fail the management node is not ready",
        "fail cannot read /no/boot",
        "fail limits.yaml:1:",
        "fail limits.yaml:2:",
        "no line \"# ENDNODES\"",
        "fail there is no image nowhere",
        "has no subnet with this cluster's tag",
        "ok ResumeProgram=/bin/true",
    ] {
        let _ = point(&said, words);
    }
}

#[test]
fn a_check_looks_for_the_networks_that_only_nodes_name() {
    let (here, nowhere) = ("ocid1.subnet.oc1.phx.aaaasub", "ocid1.subnet.oc1.phx.nowhere");
    let stage = Fixture::with(
        |_| {},
        |conf| {
            let nodes = [("own1", here), ("own2", nowhere), ("own3", nowhere)];
            conf.extend(nodes.map(|(node, subnet)| {
                format!("NodeName={node} State=CLOUD Features=network={subnet}\n")
            }));
        },
    );
    let said = points(&check(&stage).with_code(1));
    let found = said.iter().filter(|point| **point == format!("ok subnet {here}"));
    assert_eq!(found.count(), 2, "that of the configuration and that of own1: {said:#?}");
    assert!(point(&said, nowhere).contains("change the feature network of nodes"), "{said:#?}");
}

#[test]
fn a_check_without_credentials_reports_all_else() {
    let stage = Fixture::new();
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    let said = points(&check(&stage).with_code(1));
    assert!(point(&said, ".oci/config").starts_with("fail "), "{said:#?}");
    assert!(!said.iter().any(|point| point.contains("the cloud does not answer")), "{said:#?}");
    let _ = point(&said, "slurm.conf will change");
}

#[test]
fn a_wrong_configuration_is_not_reported_as_a_silent_cloud() {
    let stage = Fixture::new().running();
    let text = stage.read("home/.oci/config").replace("fingerprint=", "fingerprint=00:");
    stage.write("home/.oci/config", &text);
    let oracle = points(&check(&stage).with_code(1));
    let text = stage.configuration().replace("csp: oracle", "csp: openstack");
    stage.write("startnode.yaml", &text);
    let openstack = points(&check(&stage).with_code(1));
    for (said, words) in [(oracle, "fingerprint"), (openstack, "clouds.yaml")] {
        assert!(point(&said, words).starts_with("fail "), "{said:#?}");
        let beside = |point: &String| point.contains("supported") || point.contains("unavailable");
        assert!(!said.iter().any(beside), "{said:#?}");
    }
}

#[test]
fn a_missing_compartment_is_not_reported_as_a_silent_cloud() {
    let stage = Fixture::new().running();
    let fault = answer(404, "NotAuthorizedOrNotFound", "Authorization failed");
    stage.cloud().add_fault(Rule::always("ListInstances", fault)).unwrap();
    let said = points(&check(&stage).with_code(1));
    let refused = "fail the cloud refuses this host: list instances: ";
    assert!(point(&said, "Authorization failed").starts_with(refused), "{said:#?}");
}

#[test]
fn a_missing_policy_is_one_failure() {
    let stage = Fixture::new().running();
    let fault = answer(404, "NotAuthorizedOrNotFound", "Authorization failed");
    stage.cloud().add_fault(Rule::always("*", fault)).unwrap();
    let said = points(&check(&stage).with_code(1));
    let of_cloud = said.iter().filter(|point| point.contains("Authorization failed"));
    assert_eq!(of_cloud.count(), 1, "{said:#?}");
    assert!(point(&said, "Authorization failed").contains("docs/nodes.md"), "{said:#?}");
}

#[test]
fn a_cloud_that_does_not_answer_is_asked_once() {
    let stage = Fixture::new();
    let fault = answer(503, "ServiceUnavailable", "come back later");
    stage.cloud().add_fault(Rule::always("*", fault)).unwrap();
    let said = points(&check(&stage).with_code(1));
    assert!(point(&said, "come back later").starts_with("fail the cloud does not answer: "));
    let asked = stage.cloud().requests().len();
    assert_eq!(asked, 3, "one question, a few times: {said:#?}");
    let _ = point(&said, "slurm.conf will change");
}

/// A stage on which a user who is not root has a `finish`, and all but Slurm's files; slurmctld is not running.
fn of_daemon() -> Fixture {
    let stage =
        Fixture::with(|_| {}, |conf| *conf = conf.replace("SlurmUser=root", "SlurmUser=daemon"));
    // What is in root's home is not to be seen by others.
    stage.slurm.fake(&Fake { scontrol: "echo slurm 24.11.5", sbatch: "exit 1" });
    let real = stage.slurm.bin().display().to_string();
    let bin = stage.path("bin").display().to_string();
    let key = stage.path("home/.oci/config").display().to_string();
    let text = stage.configuration().replace(&real, &bin);
    stage.write("startnode.yaml", &format!("{text}config_file: {key}\n"));
    fs::copy(program("finish"), stage.path("finish")).unwrap();
    for name in ["home", "state", "log"] {
        give(&stage.path(name), 1);
    }
    stage
}

/// `finish` as that user calls it.
fn by_daemon(stage: &Fixture, arguments: &[&str]) -> Ended {
    let call = stage.command("finish", arguments);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=1", "--regid=1", "--clear-groups", "--"]).arg(stage.path("finish"));
    command.args(call.get_args()).env_clear().current_dir(stage.dir.path());
    Ended::of(&command.output().unwrap(), stage.dir.path())
}

/// The user that slurmctld runs as is to check, and root is to write.
#[test]
fn a_file_of_root_is_well_though_slurmctld_s_user_may_not_write_it() {
    let ended = by_daemon(&of_daemon(), &["--check", "--json"]);
    let said = well(ended);
    assert!(point(&said, "slurm.conf will change").starts_with("warn "), "{said:#?}");
    assert!(point(&said, "slurm.conf will change").ends_with("sudo finish"), "{said:#?}");
}

/// Machines of nodes that go would have ended by then.
#[test]
fn a_file_that_cannot_keep_its_owner_is_reported_before_anything_is_done() {
    let stage = of_daemon();
    chown(stage.path("etc"), Some(1), Some(1)).unwrap();
    let before = stage.files();
    by_daemon(&stage, &["--no-prove", "--no-restart"])
        .with_code(2)
        .saying(&["cannot keep owner and mode of DIR/etc/slurm.conf", "nothing is changed"]);
    assert_eq!(stage.files(), before);
}

#[test]
fn nodes_that_can_never_start_for_want_of_a_domain_fail_the_check() {
    let stage = Fixture::new();
    stage.write("limits.yaml", "VM.Standard2.1: 4\n");
    let said = points(&check(&stage).with_code(1));
    let found = point(&said, "can never start");
    assert!(found.starts_with("fail c1-vm-standard2-1-[0001-0004] "), "{said:#?}");
    assert!(found.contains("zone: '1'"), "{said:#?}");
    for name in ["finish", "resize"] {
        stage.run(name, &[]).with_code(2).saying(&["can never start", "zone: '1'"]);
    }
    stage.write("limits.yaml", "general: {shape: VM.Standard2.1, ad: 1, max: 4}\n");
    let said = well(check(&stage));
    assert!(!said.iter().any(|point| point.contains("can never start")), "{said:#?}");
}

#[test]
fn an_image_that_startnode_would_not_take_fails_the_check() {
    let stage = Fixture::new();
    let subnet = "subnet_id: ocid1.subnet.oc1.phx.aaaasub\n";
    stage.write("startnode.yaml", &stage.configuration().replace("cluster_id: c1\n", subnet));
    let said = points(&check(&stage).with_code(1));
    assert!(point(&said, "no usable image").contains("set image_id"), "{said:#?}");
    assert!(!said.iter().any(|point| point.starts_with("ok image")), "{said:#?}");
}

#[test]
fn an_image_of_another_compartment_is_only_a_warning() {
    let stage = Fixture::new();
    let text = format!("{}image_id: ocid1.image.oc1.phx.elsewhere\n", stage.configuration());
    stage.write("startnode.yaml", &text);
    let said = well(check(&stage));
    let found = point(&said, "ocid1.image.oc1.phx.elsewhere");
    assert!(found.starts_with("warn ") && found.contains("not in the image list"), "{said:#?}");
}

#[test]
fn machines_that_are_gone_are_not_counted() {
    let stage = Fixture::new().running();
    let both = "vm-standard2-1-ad1-[0001-0002]";
    stage.run("startnode", &[both]).with_code(0);
    stage.run("stopnode", &["--now", "vm-standard2-1-ad1-0001"]).with_code(0);
    let said =
        || point(&points(&stage.run("finish", &["--check", "--json"])), "answers").to_owned();
    let one = "ok the cloud answers: 1 machines of this cluster";
    wait("end of the machine", || (said() == one).then_some(()), said);
}

#[test]
fn programs_in_each_other_s_places_and_another_configuration_are_reported() {
    let (start, stop) = (program("startnode"), program("stopnode"));
    let swapped = |conf: &mut String| {
        *conf = conf
            .replace("ResumeProgram=/bin/true", &format!("ResumeProgram={stop}"))
            .replace("SuspendProgram=/bin/true", &format!("SuspendProgram={start}"));
    };
    let stage = Fixture::with(|_| {}, swapped);
    let said = points(&check(&stage).with_code(1));
    for (key, meant) in [("fail ResumeProgram=", "startnode"), ("fail SuspendProgram=", "stopnode")]
    {
        let found = point(&said, key);
        assert!(found.contains(&format!(": {meant} is meant to be there")), "{said:#?}");
    }
    let found = point(&said, "slurmctld's calls read /etc/citc/startnode.yaml");
    assert!(found.starts_with("warn ") && found.contains("startnode.yaml that is checked here"));
}

/// Gives a folder and all in it to a user.
fn give(path: &std::path::Path, user: u32) {
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

#[test]
fn a_slurmctld_that_does_not_answer_is_named_and_not_waited_for() {
    let stage = Fixture::with(|_| {}, |conf| conf.push_str("NodeName=login1 State=UNKNOWN\n"));
    let said = points(&check(&stage).with_code(1));
    let down = point(&said, "slurmctld does not answer");
    assert!(down.starts_with("fail ") && down.contains("systemctl status slurmctld"), "{said:#?}");
    let said = points(&check(&stage.running()).with_code(0));
    assert!(point(&said, "slurmctld is up").starts_with("ok "), "{said:#?}");
}

#[test]
fn a_cluster_that_is_only_rebuilt_needs_nothing_elastic() {
    let rebuilt = |conf: &mut String| {
        let kept = |line: &&str| {
            let line = line.trim_start_matches('#').trim_start();
            !["Resume", "Suspend", "PrivateData", "STARTNODES", "ENDNODES"]
                .iter()
                .any(|word| line.starts_with(word))
        };
        *conf = conf.lines().filter(kept).collect::<Vec<_>>().join("\n") + "\n";
    };
    // It hides nodes that are powered down, and has none.
    let stage = Fixture::on("22.05", |_| {}, rebuilt);
    let limits = fs::read_to_string(stage.path("limits.yaml")).unwrap();
    fs::remove_file(stage.path("limits.yaml")).unwrap();
    let said = well(check(&stage));
    assert!(point(&said, "only what rebuild needs").starts_with("ok "), "{said:#?}");
    assert!(point(&said, "RebootProgram=/bin/true").starts_with("ok "), "{said:#?}");
    // Who writes limits wants nodes.
    stage.write("limits.yaml", &limits);
    let said = points(&check(&stage).with_code(1));
    assert!(point(&said, "no ResumeProgram").starts_with("fail "), "{said:#?}");
}

#[test]
fn a_slurm_that_is_too_old_fails_the_check() {
    let stage = Fixture::new().running();
    let old = "case \"$1\" in --version|-V) echo slurm 20.02.7; exit;; esac; exec \"$REAL/scontrol\" \"$@\"";
    stage.slurm.fake(&Fake { scontrol: old, sbatch: "exit 1" });
    let real = stage.slurm.bin().display().to_string();
    let bin = stage.path("bin").display().to_string();
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &bin));
    let said = points(&check(&stage).with_code(1));
    let old = point(&said, "Slurm 20.02.7 is too old");
    assert!(old.starts_with("fail ") && old.ends_with("22.05 or newer is needed"), "{said:#?}");
}

/// Each release shows its parameters in its own way.
#[test]
fn what_slurmctld_runs_with_is_what_its_file_says() {
    let action = |conf: &mut String| {
        let line = "PowerAction=start Location=slurmctld Program=\"/bin/true --fast\"\nResumeProgram=start\n";
        *conf = conf.replace("ResumeProgram=/bin/true\n", line);
    };
    let quiet = |conf: &mut String| *conf = conf.replace("SuspendTime=86400\n", "");
    let stages = [
        Fixture::on("22.05", |_| {}, quiet),
        Fixture::with(|_| {}, quiet),
        Fixture::on("26.05", |_| {}, action),
    ];
    for stage in stages {
        let said = points(&check(&stage.running()));
        assert!(point(&said, "slurmctld is up").starts_with("ok "), "{said:#?}");
        assert!(!said.iter().any(|point| point.contains("does not run with")), "{said:#?}");
    }
}
