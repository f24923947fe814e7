//! What once went wrong, each as a call that shows it.

use crate::fixture::{Ended, Fixture, answer};
use crate::slurm::{Fake, wait};
use cloud_sim::Rule;
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// 22.05 hides elastic nodes that are powered down, unless it is told otherwise.
#[test]
fn a_good_file_stays_though_22_05_does_not_show_its_nodes() {
    let hide = |conf: &mut String| *conf = conf.replace("PrivateData=cloud\n", "");
    let stage = Fixture::on("22.05", |_| {}, hide).running();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let ended = stage.run("finish", &[]).with_code(0);
    assert!(stage.read("etc/slurm.conf").contains("vm-standard2-1-ad1-[0001-0005]"), "{ended:?}");
    assert!(stage.slurm.is_up());
}

#[test]
fn nodes_that_22_05_does_not_show_are_reported() {
    for (private, code) in [("", 1), ("PrivateData=cloud\n", 0)] {
        let hide = |conf: &mut String| *conf = conf.replace("PrivateData=cloud\n", private);
        let stage = Fixture::on("22.05", |_| {}, hide).running();
        for arguments in [&[][..], &["--apply"]] {
            let ended = stage.run("reconcile", arguments).with_code(code);
            let said = ended.stdout.contains("set PrivateData=cloud in slurm.conf");
            assert_eq!(said, code == 1, "{ended:#?}");
        }
        let ended = stage.run("finish", &["--check"]);
        assert_eq!(ended.stdout.contains("set PrivateData=cloud"), code == 1, "{ended:#?}");
    }
}

/// slurmctld waits for startnode before it reads its file, and startnode's scontrol for slurmctld.
#[test]
fn a_good_file_stays_though_slurmctld_does_not_answer_in_time() {
    let stage = Fixture::new().running();
    let deaf = "\"$REAL/scontrol\" \"$@\" || exit; [ \"$1\" != reconfigure ] && exit\n\
                echo 'slurm_reconfigure error: Socket timed out on send/recv operation' >&2; exit 1";
    stage.slurm.fake(&Fake { scontrol: deaf, sbatch: "exit 1" });
    let real = stage.slurm.bin().display().to_string();
    let bin = stage.path("bin").display().to_string();
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &bin));
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let ended = stage.run("finish", &["--no-prove"]).with_code(0).saying(&["did not answer"]);
    assert!(stage.read("etc/slurm.conf").contains("vm-standard2-1-ad1-[0001-0005]"), "{ended:?}");
    assert!(!stage.slurm.node("vm-standard2-1-ad1-0005", "State").is_empty());
}

#[test]
fn a_dry_run_of_a_new_rollout_does_not_forget_the_previous_one() {
    let stage = Fixture::new().running();
    let memory = "{\"image\":\"ocid1.image.oc1.phx.img003\",\"last\":7,\"tried\":[]}\n";
    stage.write("state/rollout-ocid1.image.oc1.phx.img003.json", memory);
    let image = ["submit", "--image", "citc-ol9-3"];
    stage.run("rebuild", &[&image[..], &["--anew", "--dry-run"]].concat()).with_code(0);
    assert_eq!(stage.read("state/rollout-ocid1.image.oc1.phx.img003.json"), memory);
}

#[test]
fn a_dry_run_makes_no_state_directory_and_no_log() {
    let stage = Fixture::new().running();
    // Not those of the stage: slurmctld has its own state there.
    let new = stage.configuration().replace("/state,", "/new-state,").replace("/log/", "/new-log/");
    stage.write("startnode.yaml", &new);
    fs::create_dir(stage.path("new-log")).unwrap();
    let made = || [stage.path("new-state").exists(), stage.path("new-log/elastic.log").exists()];
    stage.run("startnode", &["--dry-run", NODE]).with_code(0);
    stage.run("rebuild", &["submit", "--dry-run", "--image", "citc-ol9-3"]).with_code(0);
    assert_eq!(made(), [false, false]);
    stage.run("startnode", &[NODE]).with_code(0);
    assert_eq!(made(), [true, true]);
}

/// Under sudo, HOME is root's or the caller's.
#[test]
fn home_is_that_of_slurmctld_s_user() {
    let daemon = |conf: &mut String| *conf = conf.replace("SlurmUser=root", "SlurmUser=daemon");
    let stage = Fixture::with(|_| {}, daemon);
    assert!(stage.read("etc/slurm.conf").contains("SlurmUser=daemon"), "these tests run as root");
    let ended = stage.run("startnode", &["--dry-run", NODE]).with_code(2);
    ended.saying(&["/usr/sbin/.oci/config"]);
    let more = stage.configuration().replace("elastic: {", "config_file: /nowhere\nelastic: {");
    let more = more.replace(&format!("{}/log", stage.dir.path().display()), "~/nowhere");
    stage.write("startnode.yaml", &more);
    let ended = stage.run("startnode", &[NODE]).with_code(2);
    ended.saying(&["/usr/sbin/nowhere/elastic.log"]);
}

#[test]
fn a_watch_goes_on_after_a_moment_without_the_cloud() {
    let stage = Fixture::new().running();
    let key = stage.path("home/.oci/config");
    let text = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    let call = stage.command("reconcile", &["--watch", "1"]);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(call.get_program()).args(call.get_args());
    command.env_clear().env("HOME", stage.path("home")).stdin(Stdio::null());
    command.stdout(fs::File::create(stage.path("said")).unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let log = || stage.read("log/elastic.log");
    wait("a round that sees nothing", || log().contains(".oci/config").then_some(()), log);
    fs::write(&key, text).unwrap();
    let said = || stage.read("said");
    wait("a round that sees all", || said().contains("no discrepancies found").then_some(()), said);
    Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_verbose_log_has_every_request() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    assert!(!stage.read("log/elastic.log").contains("DEBUG"));
    stage.run("stopnode", &["-v", "--now", NODE]).with_code(0);
    let log = stage.read("log/elastic.log");
    assert!(log.contains(" DEBUG    cloud: terminate ocid1.instance."), "{log}");
    assert!(log.contains("/etc/slurm.conf, Slurm 24.11"), "{log}");
}

#[test]
fn an_inventory_and_a_hosts_file_have_only_the_nodes_asked_for() {
    let stage = Fixture::new().running();
    let both = "vm-standard2-1-ad1-[0001-0002]";
    stage.run("startnode", &[both]).with_code(0);
    let of = |arguments: &[&str]| stage.run("listnodes", arguments).with_code(0).stdout;
    let (one, two) = ("vm-standard2-1-ad1-0001", "vm-standard2-1-ad1-0002");
    let all = of(&["--inventory", "ini"]);
    assert!(all.contains(one) && all.contains(two), "{all}");
    let some = of(&["--inventory", "ini", one]);
    assert!(some.contains(one) && !some.contains(two), "{some}");
    stage.write("hosts", "127.0.0.1 localhost\n");
    let hosts = stage.path("hosts").display().to_string();
    let some = of(&["--hosts", &hosts, "--partition", "compute", two]);
    assert!(some.contains(two) && !some.contains(one), "{some}");
    let none = of(&["--inventory", "json", "--state", "drained"]);
    assert!(!none.contains(one), "{none}");
}

#[test]
fn a_check_finds_images_by_name_and_misses_unknown_subnets() {
    let stage = Fixture::new().running();
    let checked = |more: &str| {
        stage.write("startnode.yaml", &format!("{}{more}\n", stage.configuration()));
        let ended = stage.run("finish", &["--check", "--json"]);
        let points: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let points = points.as_array().unwrap().clone();
        let wrong = points.iter().filter(|point| point["state"] == "fail");
        let wrong: Vec<String> = wrong.map(|point| point["what"].to_string()).collect();
        assert_eq!(ended.code == Some(0), wrong.is_empty(), "{ended:?}");
        assert!(ended.stdout.contains("RebootProgram=/bin/true"), "{ended:?}");
        wrong
    };
    assert_eq!(checked(""), Vec::<String>::new());
    assert_eq!(checked("image_id: citc-ol9-3"), Vec::<String>::new());
    assert_eq!(checked("subnet_id: ocid1.subnet.oc1.phx.aaaasub"), Vec::<String>::new());
    let wrong = checked("image_id: nowhere\nsubnet_id: ocid1.subnet.oc1.phx.nowhere");
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("image nowhere") && wrong[1].contains("subnet"), "{wrong:?}");
}

#[test]
fn machines_end_without_what_only_launches_need() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let text = format!("{}bootstrap_file: /nonexistent/bootstrap\n", stage.configuration());
    stage.write("startnode.yaml", &text);
    stage.run("startnode", &[NODE]).with_code(2).saying(&["/nonexistent/bootstrap"]);
    stage.run("startnode", &["--failed", "--dry-run", NODE]).with_code(0);
    let nowhere = ["--state-dir", "/proc/nowhere"];
    let listed = stage.run("reconcile", &nowhere);
    let _ = listed
        .with_code(0)
        .saying(&["cannot write state directory /proc/nowhere; continuing without locks"]);
    stage.write("etc/slurm.conf", "NodeName=n[1-\n");
    let ended = stage.run("stopnode", &["--all", "--force"]).saying(&["warning: ", "ClusterName"]);
    assert_eq!(stage.live(), Vec::<String>::new(), "{ended:?}");
}

#[test]
fn a_node_returns_to_slurm_if_the_cloud_cannot_be_opened() {
    let stage = awaited();
    let said = || stage.slurm.node(NODE, "State");
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    let ended = resumed(&stage, r#"{"jobs":[]}"#).with_code(2);
    let _ = ended.saying(&[".oci/config", "returned to Slurm"]);
    wait("end of it", || (!said().contains("POWERING_UP")).then_some(()), said);
    // Without the mark, a later timeout of the node was taken for an administrator's word, and it stayed down.
    let node = stage.slurm.ask("scontrol", &["show", "node", NODE]);
    assert!(node.contains("Reason=elastic: "), "{node}");
}

/// slurmctld's own startnode had the node in hand, and waited for a machine that was well.
#[test]
fn a_start_by_hand_returns_no_node_if_the_cloud_cannot_be_opened() {
    let stage = awaited();
    fs::remove_file(stage.path("home/.oci/config")).unwrap();
    let by_hand = stage.run("startnode", &[NODE]).with_code(2).saying(&[".oci/config"]);
    assert!(stage.slurm.node(NODE, "State").contains("POWERING_UP"), "{by_hand:?}");
    assert!(!by_hand.stderr.contains("returned to Slurm"), "{by_hand:?}");
}

/// The first listing failed, the next did not, and nobody had been asked.
#[test]
fn no_machine_ends_unasked_after_a_failed_listing() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    let hidden = || answer(404, "NotAuthorizedOrNotFound", "Authorization failed");
    stage.cloud().add_fault(Rule::once("ListInstances", hidden())).unwrap();
    let ended = stage.run("stopnode", &["--all"]).with_code(1);
    let ended = ended.saying(&["Authorization failed", "nothing done", "cannot list the machines"]);
    assert_eq!(stage.live(), [NODE], "{ended:?}");
    assert!(!ended.stdout.contains("no machines"), "{ended:?}");
    assert!(stage.read("log/elastic.log").contains("ERROR    nothing done"));
}

/// A cluster whose slurmctld waits for a node.
fn awaited() -> Fixture {
    let stage = Fixture::new().running();
    let name = format!("nodename={NODE}");
    let _ = stage.slurm.ask("scontrol", &["update", &name, "state=power_up"]);
    let said = || stage.slurm.ask("scontrol", &["show", "node", NODE]);
    wait("node on its way up", || said().contains("POWERING_UP").then_some(()), said);
    stage
}

/// Starts the node as slurmctld does, with this resume file.
fn resumed(stage: &Fixture, file: &str) -> Ended {
    stage.write("resume", file);
    let mut command = stage.command("startnode", &[NODE]);
    let output = command.env("SLURM_RESUME_FILE", stage.path("resume")).output().unwrap();
    Ended::of(&output, stage.dir.path())
}

#[test]
fn nodes_return_to_slurm_if_the_configuration_is_broken() {
    let stage = awaited();
    let said = || stage.slurm.ask("scontrol", &["show", "node", NODE]);
    // Where Slurm is has to be found out in spite of all.
    let remarked = |line: &str| {
        if line.starts_with("slurm_") { format!("{line}  # ours\n") } else { format!("{line}\n") }
    };
    let configuration: String = stage.configuration().lines().map(remarked).collect();
    stage.write("startnode.yaml", &format!("{configuration}fallback: [\n"));
    let by_hand = stage.run("startnode", &[NODE]).with_code(2).saying(&["startnode.yaml:"]);
    assert!(said().contains("POWERING_UP"), "by hand nobody waits: {by_hand:?}");
    let ended = resumed(&stage, r#"{"jobs":[]}"#).with_code(2);
    let _ = ended.saying(&["startnode.yaml:", "returned to Slurm"]);
    wait("end of it", || (!said().contains("POWERING_UP")).then_some(()), said);
    assert!(said().contains("Reason=elastic: configuration: "), "{}", said());
    assert_eq!(stage.cloud().requests().len(), 0, "nobody asked the cloud");
}

/// Slurm's nodes were on their way up, and nobody was to bring them.
#[test]
fn nodes_return_to_slurm_if_the_resume_file_is_garbage() {
    let stage = awaited();
    let said = || stage.slurm.ask("scontrol", &["show", "node", NODE]);
    let ended = resumed(&stage, "{").with_code(2);
    let _ = ended.saying(&["DIR/resume: the resume file is not JSON", "returned to Slurm"]);
    wait("end of it", || (!said().contains("POWERING_UP")).then_some(()), said);
    assert!(said().contains("Reason=elastic: "), "{}", said());
    assert!(said().contains("the resume file is not JSON"), "{}", said());
    let log = stage.read("log/elastic.log");
    assert!(log.contains(&format!("returned to Slurm: {NODE}")), "{log}");
    assert_eq!(stage.cloud().requests().len(), 0, "nobody asked the cloud");
}

/// A resume file goes with its slurmctld, which is back in a moment.
#[test]
fn nodes_return_to_a_slurmctld_that_does_not_answer_at_once() {
    let stage = awaited();
    let said = || stage.slurm.ask("scontrol", &["show", "node", NODE]);
    let away = "for word in show update; do case \" $* \" in *\" $word \"*) [ -e \"$DIR/$word.tried\" ] || {\n\
                : > \"$DIR/$word.tried\"; echo 'Message receive failure' >&2; exit 1; };; esac; done\n\
                exec \"$REAL/scontrol\" \"$@\"";
    stage.slurm.fake(&Fake { scontrol: away, sbatch: "exit 1" });
    let real = stage.slurm.bin().display().to_string();
    let bin = stage.path("bin").display().to_string();
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &bin));
    let _ = resumed(&stage, "{").with_code(2).saying(&["returned to Slurm: ", NODE]);
    assert!(stage.path("show.tried").exists() && stage.path("update.tried").exists());
    wait("end of it", || (!said().contains("POWERING_UP")).then_some(()), said);
}

/// A resume file goes with its slurmctld, which then cannot be told either.
#[test]
fn nodes_that_cannot_return_to_slurm_are_reported() {
    // Longer it would be tried for a minute.
    let hurry = |conf: &mut String| *conf = conf.replace("ResumeTimeout=600", "ResumeTimeout=2");
    let stage = Fixture::with(|_| {}, hurry);
    let mut command = stage.command("startnode", &[NODE]);
    let output = command.env("SLURM_RESUME_FILE", stage.path("gone")).output().unwrap();
    let _ = Ended::of(&output, stage.dir.path()).with_code(2);
    let log = stage.read("log/elastic.log");
    let line = log.lines().find(|line| line.contains("not returned to Slurm"));
    assert!(line.is_some_and(|line| line.contains(" ERROR ")), "{log}");
}

/// It would have told the accounting that the cluster has no jobs, which ends them there.
#[test]
fn a_throw_away_slurmctld_calls_no_accounting_of_an_included_file() {
    let stage = Fixture::new().running();
    let accounting = TcpListener::bind("127.0.0.1:0").unwrap();
    accounting.set_nonblocking(true).unwrap();
    let port = accounting.local_addr().unwrap().port();
    let shared = format!(
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
         AccountingStoragePort={port}\n# STARTNODES\n# ENDNODES\n"
    );
    include_instead_of_nodes(&stage, "shared.conf");
    stage.write("etc/shared.conf", &shared);
    let ended = stage.run("finish", &["--no-restart"]).with_code(0);
    assert!(stage.read("etc/shared.conf").contains("NodeName=vm-standard2-1-ad1-[0001-0004]"));
    assert!(!ended.stderr.contains("not tried"), "{ended:#?}");
    let called = accounting.accept().map(|(_, from)| from);
    assert!(called.is_err(), "{called:?}: {ended:#?}");
}

/// slurmctld makes its socket anew wherever it finds one, and then nobody reaches the one before.
#[test]
fn a_throw_away_slurmctld_leaves_the_socket_of_the_real_one_alone() {
    let own =
        |conf: &mut String| *conf = conf.replace("AuthType=auth/munge", "AuthType=auth/slurm");
    let stage = Fixture::with(|_| {}, own);
    // The real programs look for the socket for a minute.
    stage.slurm.fake(&Fake { scontrol: "echo slurm 24.11.5", sbatch: "exit 1" });
    let real = stage.slurm.bin().display().to_string();
    let bin = stage.path("bin").display().to_string();
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &bin));
    stage.write("bin/squeue", "#!/bin/sh\nexit 1\n");
    stage.write("bin/slurmctld", "");
    let why = "not tried: AuthType=auth/slurm has one socket for all controllers";
    stage.run("finish", &["--no-restart"]).with_code(0).saying(&[why]);
    assert!(stage.read("etc/slurm.conf").contains("NodeName=vm-standard2-1-ad1-[0001-0004]"));
}

/// Takes the nodes and their markers out of slurm.conf, and includes a file in their place.
fn include_instead_of_nodes(stage: &Fixture, file: &str) {
    let conf = stage.read("etc/slurm.conf");
    let (before, rest) = conf.split_once("# STARTNODES\n").unwrap();
    let (_, after) = rest.split_once("# ENDNODES\n").unwrap();
    stage.write("etc/slurm.conf", &format!("{before}Include {file}\n{after}"));
}

#[test]
fn markers_are_found_in_included_files_and_behind_a_cluster_name() {
    let stage = Fixture::new().running();
    include_instead_of_nodes(&stage, "shared.conf");
    stage.write("etc/shared.conf", "Include nodes-%c.conf\n");
    let conf = stage.read("etc/slurm.conf");
    let cluster = conf.lines().find_map(|line| line.strip_prefix("ClusterName=")).unwrap();
    let nodes = format!("etc/nodes-{}.conf", cluster.to_ascii_lowercase());
    stage.write(&nodes, "# STARTNODES\n# ENDNODES\n");
    let ended = stage.run("finish", &["--no-restart"]).with_code(0);
    assert!(!ended.stderr.contains("not tried"), "{ended:#?}");
    assert!(stage.read(&nodes).contains("NodeName=vm-standard2-1-ad1-[0001-0004]"));
}

#[test]
fn a_list_without_the_cloud_has_what_slurm_knows() {
    let stage = Fixture::new().running();
    let slurm = stage.configuration();
    let slurm = slurm.lines().filter(|line| {
        ["slurm_bin", "slurm_conf", "elastic"].iter().any(|key| line.starts_with(key))
    });
    let lines: Vec<&str> = slurm.chain(["csp: openstack", "cloud: c"]).collect();
    stage.write("startnode.yaml", &format!("{}\n", lines.join("\n")));
    // Nobody listens there.
    let clouds = "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:9/v3', username: u, password: p, project_name: p, \
                  user_domain_name: d, project_domain_name: d}}}\n";
    stage.write("home/.config/openstack/clouds.yaml", clouds);
    let node = format!("nodename={NODE}");
    let _ = stage.slurm.ask("scontrol", &["update", &node, "state=drain", "reason=old"]);
    let ended = stage.run("listnodes", &[]).with_code(1).saying(&["warning: ", "127.0.0.1:9"]);
    assert!(ended.stdout.contains(NODE) && ended.stdout.contains("old"), "{ended:#?}");
    assert!(!ended.stdout.contains("ad1-0002"), "powered down: {ended:#?}");
    stage.run("stopnode", &[NODE]).with_code(1);
}

#[test]
fn a_comment_in_another_encoding_is_not_called_a_value() {
    let stage = Fixture::new().running();
    let (path, comment) = (stage.path("etc/slurm.conf"), b"# M\xfcller's cluster\n");
    fs::write(&path, [&comment[..], stage.read("etc/slurm.conf").as_bytes()].concat()).unwrap();
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let ended = stage.run("finish", &[]).with_code(0);
    assert!(!ended.stderr.contains("not tried"), "{ended:#?}");
    let written = fs::read(&path).unwrap();
    assert!(written.starts_with(comment), "{ended:#?}");
    let nodes = String::from_utf8_lossy(&written);
    assert!(nodes.contains("vm-standard2-1-ad1-[0001-0005]"), "{nodes}");
}
