//! How Slurm's programs are run, with programs of our own in their place.

use slurmconf::SlurmVersion;
use slurmctl::{Controller as _, ErrorKind, NodeAddress, Programs, Scontrol, ScontrolConfig};
use std::{
    fs,
    net::IpAddr,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Three programs that are one script; `--version` is answered for it.
fn programs(script: &str) -> (TempDir, ScontrolConfig) {
    let dir = tempfile::tempdir().unwrap();
    for name in ["scontrol", "squeue", "sbatch"] {
        let path = dir.path().join(name);
        let version = "[ \"$1\" = --version ] && echo slurm 24.11.5 && exit";
        fs::write(&path, format!("#!/bin/sh\n{version}\ncd {}\n{script}\n", dir.path().display()))
            .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let found = Programs::find(&[dir.path()], Path::exists).unwrap();
    (dir, ScontrolConfig::new(found))
}

async fn connect(config: ScontrolConfig) -> Scontrol {
    Scontrol::connect(config).await.unwrap()
}

#[tokio::test]
async fn a_program_gets_no_environment_but_ours_and_no_input() {
    let (dir, mut config) = programs("env > env; readlink /proc/self/fd/0 > stdin; echo x = y");
    config.slurm_conf = Some("/etc/elsewhere/slurm.conf".into());
    let error = connect(config).await.config().await.unwrap_err();
    assert!(error.to_string().ends_with("show config: ResumeTimeout is missing"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let text = read("env");
    // The shell adds some of its own.
    let own = |line: &&str| {
        !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|name| line.starts_with(name))
    };
    let mut lines: Vec<&str> = text.lines().filter(own).collect();
    lines.sort_unstable();
    let expected = [
        "LC_ALL=C",
        "PATH=/usr/bin:/bin:/usr/sbin:/sbin",
        "SLURM_CONF=/etc/elsewhere/slurm.conf",
        "TZ=UTC",
    ];
    assert_eq!(lines, expected);
    assert_eq!(read("stdin"), "/dev/null\n");
}

#[tokio::test]
async fn an_error_says_program_arguments_exit_code_and_first_line() {
    let (dir, config) =
        programs("echo; echo 'slurm_update error: out of luck' >&2; echo more >&2; exit 3");
    let error = connect(config).await.reconfigure().await.unwrap_err();
    let expected = format!(
        "{}/scontrol reconfigure: exit code 3: slurm_update error: out of luck",
        dir.path().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Refused, Some(3)));
}

#[tokio::test]
async fn what_slurm_says_decides_the_kind_of_error() {
    let table = [
        (
            "slurm_update error: Unable to contact slurm controller (connect failure)",
            ErrorKind::Unavailable,
        ),
        (
            "slurm_reconfigure error: Zero Bytes were transmitted or received",
            ErrorKind::Unavailable,
        ),
        ("slurm_update error: Socket timed out on send/recv operation", ErrorKind::Unavailable),
        ("slurm_update error: Invalid node name specified", ErrorKind::NotFound),
        ("Invalid job id specified for job 999", ErrorKind::NotFound),
        ("slurm_update error: Invalid node state transition requested", ErrorKind::Refused),
        (
            "error: Munge encode failed\nslurm_update error: Unable to contact slurm controller",
            ErrorKind::Unavailable,
        ),
        ("", ErrorKind::Refused),
    ];
    for (words, kind) in table {
        let (_dir, config) = programs(&format!("echo '{words}' >&2; exit 1"));
        let error = connect(config).await.reconfigure().await.unwrap_err();
        assert_eq!(error.kind(), kind, "{words}");
    }
}

/// Nodes with an address and an id of their own, which 24.11 is told one by one.
fn addresses(count: u8) -> Vec<NodeAddress> {
    let item = |number: u8| {
        let node = format!("n{number}").parse().unwrap();
        let mut item = NodeAddress::new(node, IpAddr::from([10, 0, 0, number]));
        item.instance_id = Some(format!("i-{number}"));
        item
    };
    (1..=count).map(item).collect()
}

#[tokio::test]
async fn one_refused_command_does_not_keep_the_others_from_being_tried() {
    let (dir, config) = programs(
        "echo \"$*\" >> calls; case $1 in --quiet) cat >> calls; echo 'no luck' >&2; exit 1; esac",
    );
    let error = connect(config).await.set_addresses(&addresses(4)).await.unwrap_err();
    let calls = fs::read_to_string(dir.path().join("calls")).unwrap();
    let expected = "update nodename=n[1-4] nodeaddr=10.0.0.[1-4]\n--quiet\nupdate nodename=n1 instanceid=i-1\n\
        update nodename=n2 instanceid=i-2\nupdate nodename=n3 instanceid=i-3\n\
        update nodename=n4 instanceid=i-4\n";
    assert_eq!(calls, expected);
    assert_eq!((error.kind(), error.also().len()), (ErrorKind::Refused, 0));
    let text = error.to_string();
    assert!(text.ends_with("--quiet: exit code 1: no luck"), "{text}");
}

#[tokio::test]
async fn a_controller_that_does_not_answer_is_not_asked_for_the_rest() {
    let (dir, config) =
        programs("echo x >> calls; echo 'Unable to contact slurm controller' >&2; exit 1");
    let error = connect(config).await.set_addresses(&addresses(4)).await.unwrap_err();
    assert_eq!((error.kind(), error.also().len()), (ErrorKind::Unavailable, 0));
    assert_eq!(fs::read_to_string(dir.path().join("calls")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_command_may_take_twice_the_message_timeout() {
    let (_dir, config) = programs("sleep 1");
    let usual = connect(config.clone()).await;
    let seconds = Duration::from_secs;
    assert_eq!(usual.timeout(), seconds(20));
    assert_eq!(usual.clone().with_message_timeout(seconds(5)).timeout(), seconds(20));
    assert_eq!(usual.clone().with_message_timeout(seconds(60)).timeout(), seconds(120));
    assert_eq!(
        usual.with_message_timeout(seconds(65_535)).timeout(),
        seconds(120),
        "not for hours"
    );
    let mut short = config;
    short.timeout = Duration::from_millis(50);
    let short = Scontrol::new(short, SlurmVersion::new(24, 11));
    let error = short.clone().with_message_timeout(Duration::ZERO).reconfigure().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    short.with_message_timeout(seconds(20)).reconfigure().await.unwrap();
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_all_it_started() {
    let (dir, mut config) = programs("sleep 1000 & echo $! > pid.new; mv pid.new pid; wait");
    // A busy machine may need longer to start the child, which has to be there to be killed.
    for seconds in [5, 20, 80] {
        config.timeout = Duration::from_secs(seconds);
        let slurm = Scontrol::new(config.clone(), SlurmVersion::new(24, 11));
        let error = slurm.reconfigure().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let end = format!("scontrol reconfigure: no answer in {seconds}s");
        assert!(error.to_string().ends_with(&end), "{error}");
        if let Ok(pid) = fs::read_to_string(dir.path().join("pid")) {
            return gone(pid.trim()).await;
        }
    }
    unreachable!("no child after all that time");
}

#[tokio::test]
async fn a_program_whose_caller_goes_away_is_killed_with_all_it_started() {
    let (dir, mut config) = programs("sleep 1000 & echo $! > pid.new; mv pid.new pid; wait");
    config.timeout = Duration::from_mins(2);
    let slurm = connect(config).await;
    let task = tokio::spawn(async move { slurm.reconfigure().await });
    let pid = poll("child", || fs::read_to_string(dir.path().join("pid")).ok()).await;
    task.abort();
    gone(pid.trim()).await;
}

/// Waits until a process is dead; its parent may not have noticed yet.
async fn gone(pid: &str) {
    poll("end of the child", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start().to_owned();
        (state.is_empty() || state.starts_with('Z')).then_some(())
    })
    .await;
}

async fn poll<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_mins(1);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "no {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_program_that_prints_without_end_is_stopped() {
    let (_dir, mut config) = programs("exec yes NodeName=n1");
    config.longest_output = 100_000;
    let error = connect(config).await.nodes(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().ends_with("more than 100000 bytes of output"), "{error}");
}

#[tokio::test]
async fn a_daemon_that_keeps_the_output_open_is_not_waited_for() {
    let (dir, mut config) = programs("echo 'Slurmctld(primary) at here is UP'");
    let restart = dir.path().join("restart");
    let pid = dir.path().join("daemon");
    fs::write(
        &restart,
        format!(
            "#!/bin/sh
sleep 1000 &
echo $! > {}
",
            pid.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&restart, fs::Permissions::from_mode(0o755)).unwrap();
    config.restart = vec![restart.display().to_string()];
    connect(config).await.restart().await.unwrap();
    let daemon = fs::read_to_string(pid).unwrap();
    assert!(fs::exists(format!("/proc/{}", daemon.trim())).unwrap(), "it lives on");
    let killed = std::process::Command::new("kill").args(["-s", "KILL", daemon.trim()]).status();
    assert!(killed.unwrap().success());
}

#[tokio::test]
async fn a_warning_does_not_spoil_a_list_in_which_some_nodes_are_unknown() {
    let (_dir, config) = programs(
        "echo 'scontrol: error: a warning' >&2; echo NodeName=n1 State=IDLE; echo Node n2 not found; exit 1",
    );
    let slurm = connect(config).await;
    let nodes = slurm.nodes(Some(&"n[1-2]".parse().unwrap())).await.unwrap();
    assert_eq!(nodes.len(), 1);
    let error = slurm.nodes(Some(&"n[1-3]".parse().unwrap())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "n3 is missing: {error}");
}

#[tokio::test]
async fn a_restart_waits_for_the_controller_in_charge_and_not_for_its_standby() {
    // Up from the first, but in charge only when it was asked for the third time.
    let (dir, mut config) = programs(
        "[ \"$1\" = ping ] && echo 'Slurmctld(backup) at b is UP' && exit\n\
         echo x >> asked; [ $(wc -l < asked) -gt 2 ] && echo a = b && exit\n\
         echo 'slurm_load_ctl_conf error: Slurm backup controller in standby mode' >&2; exit 1",
    );
    config.restart = vec!["/bin/true".into()];
    let slurm = connect(config).await;
    assert!(slurm.ping().await.unwrap());
    slurm.restart().await.unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("asked")).unwrap().lines().count(), 3);
}

#[tokio::test]
async fn a_restart_command_that_does_not_work_is_no_unknown_node() {
    let (dir, mut config) = programs("echo a = b");
    let restart = dir.path().join("restart");
    fs::write(&restart, "#!/bin/sh\necho 'Node Invalid node name not found' >&2\nexit 5\n")
        .unwrap();
    fs::set_permissions(&restart, fs::Permissions::from_mode(0o755)).unwrap();
    config.restart = vec![restart.display().to_string()];
    let error = connect(config).await.restart().await.unwrap_err();
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Refused, Some(5)));
    assert_eq!(error.message(), Some("Node Invalid node name not found"));
}

/// Its reservations and scrontab then ran by another clock.
#[tokio::test]
async fn a_slurmctld_that_a_script_starts_has_no_time_zone_of_ours() {
    let (dir, mut config) = programs("echo a = b");
    let (restart, seen) = (dir.path().join("restart"), dir.path().join("seen"));
    fs::write(&restart, format!("#!/bin/sh\nenv > {}\n", seen.display())).unwrap();
    fs::set_permissions(&restart, fs::Permissions::from_mode(0o755)).unwrap();
    config.restart = vec![restart.display().to_string()];
    connect(config).await.restart().await.unwrap();
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("PATH=/usr/bin:/bin"), "{seen}");
    assert!(!seen.contains("TZ=") && !seen.contains("LC_ALL="), "{seen}");
}

#[tokio::test]
async fn a_restart_does_not_outlast_its_deadline_by_a_command() {
    let (_dir, mut config) = programs("exec sleep 1000");
    config.restart = vec!["/bin/true".into()];
    config.restart_timeout = Duration::from_secs(2);
    // Waited out, it would be longer than a test may take.
    config.timeout = Duration::from_mins(10);
    let slurm = Scontrol::new(config, SlurmVersion::new(24, 11));
    let error = slurm.restart().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(error.to_string(), "restart of slurmctld: slurmctld does not answer after 2s");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn a_daemon_is_not_killed_when_the_caller_goes_away_after_its_starter_has_ended() {
    let (dir, mut config) = programs("echo a = b");
    let path = dir.path().display();
    let restart = dir.path().join("restart");
    // It lives if it answers to a signal.
    let script = format!(
        "#!/bin/sh\n\
         (trap 'echo x > {path}/alive' USR1; echo x > {path}/ready; for _ in $(seq 999); do sleep 0.1; done) &\n\
         echo $! > {path}/daemon; echo $$ > {path}/starter.new; mv {path}/starter.new {path}/starter\n"
    );
    fs::write(&restart, script).unwrap();
    fs::set_permissions(&restart, fs::Permissions::from_mode(0o755)).unwrap();
    config.restart = vec![restart.display().to_string()];
    let slurm = connect(config).await;
    let task = tokio::spawn(async move { slurm.restart().await });
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
    let starter = poll("starter", || read("starter")).await;
    poll("daemon", || read("ready")).await;
    let stat = format!("/proc/{}/stat", starter.trim());
    poll("end of the starter", || (!fs::exists(&stat).unwrap()).then_some(())).await;
    task.abort();
    // On a busy machine it may have stopped waiting for output already.
    let _ = task.await;
    let daemon = read("daemon").unwrap();
    let signal = |name: &str| {
        std::process::Command::new("kill").args(["-s", name, daemon.trim()]).status().unwrap()
    };
    assert!(signal("USR1").success());
    poll("answer of the daemon", || read("alive")).await;
    assert!(signal("KILL").success());
}

#[tokio::test]
async fn a_program_that_cannot_be_started_or_understood_is_an_error() {
    let (_dir, mut config) =
        programs("echo NodeName=n1 State=IDLE; echo 'scontrol: error: halfway' >&2; exit 1");
    let slurm = connect(config.clone()).await;
    let error = slurm.nodes(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "half a list is no list: {error}");
    config.restart = Vec::new();
    assert_eq!(
        connect(config.clone()).await.restart().await.unwrap_err().kind(),
        ErrorKind::Missing
    );
    config.programs.scontrol = "/nowhere/scontrol".into();
    let error = Scontrol::connect(config).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    assert!(std::error::Error::source(&error).is_some());
    let (_dir, config) = programs("echo 'NodeName=n1 CPUs=2'");
    let error = connect(config).await.nodes(None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
}
