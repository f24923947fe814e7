//! Told to end: by whoever started us, by slurmctld, or by a terminal that is gone.

use crate::fixture::{Fixture, program};
use crate::slurm::{Fake, wait};
use cloud_sim::{Fault, Rule, Timing};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// A cloud whose machines never come up, so that only a signal ends a start before its deadline of minutes.
fn endless() -> Fixture {
    let never = |settings: &mut cloud_sim::CloudSettings| {
        settings.timing =
            Timing { vnic: f64::INFINITY, provision: f64::INFINITY, ..settings.timing }
    };
    Fixture::with(never, |_| {}).running()
}

/// A start that another program begins, once its machine is launched.
fn start(stage: &Fixture, through: &[&str]) -> Child {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(through).arg(program("startnode"));
    command.arg("--config").arg(stage.path("startnode.yaml")).arg(NODE);
    command.env("HOME", stage.path("home")).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let log = || stage.read("log/elastic.log");
    wait("launch", || log().contains("launched instance").then_some(()), log);
    child
}

/// What only looks has nothing to end in order; it waited for the cloud all the same.
#[test]
fn a_list_and_a_check_can_be_ended_while_the_cloud_is_silent() {
    let stage = Fixture::new().running();
    let fault = Fault::Delay { millis: 600_000 };
    stage.cloud().add_fault(Rule::always("ListInstances", fault)).unwrap();
    for (name, argument) in [("finish", "--check"), ("listnodes", "--all")] {
        stage.cloud().clear_requests();
        let mut command = stage.command(name, &[argument]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let all = || stage.cloud().requests();
        let listing = || all().iter().any(|it| it.operation == "ListInstances").then_some(());
        wait("listing", listing, || format!("{:?}", all()));
        tell(&child, "INT");
        let ended = wait("end", || child.try_wait().unwrap(), String::new);
        assert_eq!(ended.code(), Some(1), "{name}");
        let asked = all().iter().filter(|it| it.operation == "ListInstances").count();
        assert_eq!(asked, 1, "{name} has waited for the cloud, and asked again");
    }
}

/// Whoever listens once for each round is deaf in between.
#[test]
fn a_watch_that_is_told_to_end_between_two_rounds_ends() {
    let stage = Fixture::new().running();
    let mut command = stage.command("reconcile", &["--watch", "1"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let all = || stage.cloud().requests();
    let asked = |what: &str| all().iter().any(|it| it.operation == what).then_some(());
    wait("first round", || asked("ListInstances"), || format!("{:?}", all()));
    let fault = Fault::Delay { millis: 600_000 };
    stage.cloud().add_fault(Rule::always("ListImages", fault)).unwrap();
    stage.cloud().clear_requests();
    wait("second round", || asked("ListImages"), || format!("{:?}", all()));
    tell(&child, "TERM");
    let ended = wait("end", || child.try_wait().unwrap(), String::new);
    assert_eq!(ended.code(), Some(0));
}

fn tell(child: &Child, signal: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
}

/// Ends in order, with what became of its node.
fn settles(stage: &Fixture, child: &mut Child) {
    let log = || stage.read("log/elastic.log");
    let ended = wait("end", || child.try_wait().unwrap(), log);
    assert_eq!(ended.code(), Some(1), "it was killed, and has not ended in order");
    assert!(log().contains("end: start"), "{}", log());
}

#[test]
fn ends_in_order_though_slurmctld_has_blocked_the_signal() {
    let stage = endless();
    let mut child = start(&stage, &["env", "--block-signal=TERM", "--block-signal=INT"]);
    tell(&child, "TERM");
    settles(&stage, &mut child);
}

#[test]
fn ends_in_order_when_the_terminal_is_gone() {
    for signal in ["HUP", "QUIT"] {
        let stage = endless();
        let mut child = start(&stage, &["env", "--block-signal=HUP"]);
        tell(&child, signal);
        settles(&stage, &mut child);
    }
}

#[test]
fn goes_on_under_nohup() {
    let stage = endless();
    let mut child = start(&stage, &["nohup"]);
    tell(&child, "HUP");
    // What is ignored still is, and so cannot have reached it.
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "it listens for HUP");
    assert!(child.try_wait().unwrap().is_none());
    tell(&child, "TERM");
    settles(&stage, &mut child);
}

/// slurmctld dies of the new file while nobody is there any more who could put the old one back.
#[test]
fn a_session_that_is_cut_off_still_puts_back_a_refused_file() {
    let twice = "NodeName=vm-standard2-1-ad1-0005 CPUs=1 State=CLOUD\n";
    let stage = Fixture::on("22.05", |_| {}, |conf| conf.push_str(twice)).running();
    let old = stage.read("etc/slurm.conf");
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let dir = stage.dir.path().display().to_string();
    let slow = format!(
        "#!/bin/sh\ntouch {dir}/begun\nwhile [ ! -e {dir}/cut ]; do sleep 0.05; done\nexec {dir}/restart\n"
    );
    stage.write("slowly", &slow);
    fs::set_permissions(stage.path("slowly"), fs::Permissions::from_mode(0o755)).unwrap();
    let text =
        stage.configuration().replace(&format!("[{dir}/restart]"), &format!("[{dir}/slowly]"));
    stage.write("startnode.yaml", &text);
    let mut command = stage.command("finish", &["--no-prove"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait(
        "restart",
        || stage.path("begun").exists().then_some(()),
        || stage.read("log/elastic.log"),
    );
    assert_ne!(stage.read("etc/slurm.conf"), old);
    tell(&child, "HUP");
    stage.write("cut", "");
    let ended = wait("end", || child.try_wait().unwrap(), || stage.read("log/elastic.log"));
    assert_eq!(ended.code(), Some(1));
    assert_eq!(stage.read("etc/slurm.conf"), old);
    assert!(stage.slurm.is_up());
}

/// The moment at which whoever has seen what changes says no.
#[test]
fn a_finish_that_is_told_to_end_during_its_trial_ends() {
    let stage = Fixture::new().running();
    let old = stage.read("etc/slurm.conf");
    stage.slurm.fake(&Fake { scontrol: "exec \"$REAL/scontrol\" \"$@\"", sbatch: "exit 1" });
    let dir = stage.dir.path().display().to_string();
    let real = stage.slurm.bin().display().to_string();
    let slow = format!(
        "#!/bin/sh\ntouch {dir}/begun\nwhile [ ! -e {dir}/cut ]; do sleep 0.05; done\nexec {real}/../sbin/slurmctld \"$@\"\n"
    );
    stage.write("bin/slurmctld", &slow);
    fs::set_permissions(stage.path("bin/slurmctld"), fs::Permissions::from_mode(0o755)).unwrap();
    stage.write("startnode.yaml", &stage.configuration().replace(&real, &format!("{dir}/bin")));
    stage.write("limits.yaml", "VM.Standard2.1: {1: 5}\n");
    let mut command = stage.command("finish", &[]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let log = || stage.read("log/elastic.log");
    wait("trial", || stage.path("begun").exists().then_some(()), log);
    tell(&child, "INT");
    stage.write("cut", "");
    let ended = wait("end", || child.try_wait().unwrap(), log);
    assert_eq!(ended.code(), Some(1), "{}", log());
    assert!(log().contains("cancelled: nothing is changed"), "{}", log());
    assert_eq!(stage.read("etc/slurm.conf"), old);
}
