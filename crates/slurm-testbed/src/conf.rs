//! slurm.conf for daemons in a directory and on ports of their own.

use crate::release::Release;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The host name of this machine.
#[must_use]
pub fn hostname() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux has it");
    text.trim().to_owned()
}

/// The lines for a slurmctld on a loopback port: host, users, paths below `dir` (`state`, `run`), the socket of
/// [`munged`](crate::munged), and plugins that need no root.
#[must_use]
pub fn daemons(release: &Release, dir: &Path, port: u16) -> String {
    let user = Command::new("id").arg("-un").output().expect("coreutils are there").stdout;
    let user = String::from_utf8_lossy(&user);
    let (host, user) = (hostname(), user.trim());
    let (plugins, dir) = (release.plugin_dir(), dir.display());
    let plugins = plugins.display();
    format!(
        "SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
PluginDir={plugins}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={dir}/run/munge
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/run/%n
SlurmctldPidFile={dir}/run/slurmctld.pid
SlurmctldLogFile={dir}/run/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
MailProg=/bin/true
"
    )
}

/// The text of cgroup.conf: without cgroups, where the release can do without.
#[must_use]
pub fn cgroup(release: &Release) -> String {
    let plugin = if release.is_old() { "cgroup/v1" } else { "disabled" };
    format!("CgroupPlugin={plugin}\n")
}
