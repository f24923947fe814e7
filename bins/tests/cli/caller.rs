//! Who calls: what slurmctld may ask for without being asked back, others may not.

use crate::fixture::{Ended, Fixture, program};
use crate::slurm::wait;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Command, Stdio};

const NODE: &str = "vm-standard2-1-ad1-0001";

/// `rebuild` as a program of this name calls it by a script.
pub(crate) fn by_daemon(stage: &Fixture, name: &str, arguments: &[&str]) -> Ended {
    let daemon = stage.path(name);
    symlink("/bin/sh", &daemon).unwrap();
    let call = stage.command("rebuild", arguments);
    // What comes behind keeps each shell from becoming the program.
    let mut command = Command::new(&daemon);
    command.args(["-c", "sh -c '\"$@\"; exit $?' sh \"$@\"; exit $?", name]);
    command.arg(call.get_program()).args(call.get_args()).env_clear();
    command.env("HOME", stage.path("home")).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    Ended::of(&command.current_dir(stage.dir.path()).output().unwrap(), stage.dir.path())
}

/// Neither has a terminal, and each counted as a call by slurmctld.
#[test]
fn a_rebuild_from_ansible_or_cron_needs_an_answer_of_slurmctld() {
    let stage = Fixture::new().running();
    stage.run("startnode", &[NODE]).with_code(0);
    stage.silence();
    stage.cloud().clear_requests();
    for caller in ["ansible", "cron", "sshd"] {
        let ended = by_daemon(&stage, caller, &[NODE]).with_code(1);
        let _ = ended.saying(&[NODE, "slurmctld does not answer"]);
    }
    assert_eq!(stage.changes(), Vec::<String>::new());
    for daemon in ["slurmctld", "slurmscriptd", "slurmd"] {
        let plan = by_daemon(&stage, daemon, &["--dry-run", NODE]).stdout;
        assert!(plan.contains(&format!("reboot {NODE}")), "{daemon}: {plan}");
    }
}

/// The real one is told by its own name, whatever it is that starts its programs.
#[test]
fn a_call_by_slurmctld_is_known_on_every_release() {
    for series in ["22.05", "24.11", "26.05"] {
        // A script of the site's own, as it may stand for any of our programs.
        let stage = Fixture::on(series, |_| {}, |_| {});
        let conf = stage.read("etc/slurm.conf");
        let resume = stage.path("resume").display().to_string();
        let resume = format!("ResumeProgram={resume}");
        stage.write("etc/slurm.conf", &conf.replace("ResumeProgram=/bin/true", &resume));
        let config = stage.path("startnode.yaml").display().to_string();
        let (home, plan) = (stage.path("home"), stage.path("plan"));
        let script = format!(
            "#!/bin/sh\nexec < /dev/null > {plan}.new 2>&1\nexport HOME={home}\n\
             {} --config {config} --dry-run {NODE}\n/bin/mv {plan}.new {plan}\n",
            program("rebuild"),
            plan = plan.display(),
            home = home.display(),
        );
        stage.write("resume", &script);
        fs::set_permissions(stage.path("resume"), fs::Permissions::from_mode(0o755)).unwrap();
        let stage = stage.running();
        stage.run("startnode", &[NODE]).with_code(0);
        stage.silence();
        let node = format!("nodename={NODE}");
        let _ = stage.slurm.ask("scontrol", &["update", &node, "state=power_up"]);
        let log = || stage.read("run/slurmctld.log");
        let said = wait("plan", || plan.exists().then(|| stage.read("plan")), log);
        assert!(said.contains(&format!("reboot {NODE}")), "{series}: {said}");
    }
}
