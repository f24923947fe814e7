//! A scenario in a world of its own: its processes and its network end with it, whatever happens.

use crate::network;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, fs};
use tempfile::TempDir;

/// Names the scenario's directory, and says to a program that it is inside.
const INSIDE: &str = "SLURM_ELASTIC_SCENARIO";

/// Runs a test's scenario in process and network namespaces of its own.
///
/// The test runs itself again there. When either ends, also by a kill, the kernel ends everything that the scenario has
/// started, and nothing else: process numbers and ports are the scenario's own. Needs root.
pub fn alone<F: FnOnce()>(scenario: F) {
    if directory().is_some() {
        enter();
        return scenario();
    }
    let name = test_name(std::any::type_name::<F>());
    let status = inside(&[name, "--exact", "--nocapture", "--include-ignored"]);
    assert!(status.success(), "{name}: {status}; what went wrong stands above");
}

/// Runs this program again, inside, with these arguments; `SLURM_ELASTIC_KEEP=1` leaves its directory to look at.
#[must_use]
pub fn inside(arguments: &[&str]) -> ExitStatus {
    // Short, because a socket's path is at most 107 bytes.
    let dir = TempDir::with_prefix_in("se", "/tmp").expect("a temporary directory");
    let program = env::current_exe().expect("a test is a program");
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--pid", "--mount-proc", "--fork"])
        // The shell is the first process there, and reaps those that nobody waits for.
        .args(["--kill-child=KILL", "--", "sh", "-c", "\"$0\" \"$@\"; exit $?"])
        .arg(program)
        .args(arguments)
        .env(INSIDE, dir.path());
    for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().expect("util-linux is installed");
    write_enter(dir.path(), child.id());
    let status = child.wait().expect("our own child");
    if env::var_os("SLURM_ELASTIC_KEEP").is_some() {
        let _ = dir.keep();
    }
    status
}

/// Makes the network of a scenario, first thing inside.
pub fn enter() {
    network::make();
}

/// A script that runs a command inside, for whoever wants to look at a scenario, as `DIR/enter squeue`.
fn write_enter(dir: &Path, unshare: u32) {
    let at = dir.display();
    let script = format!(
        "#!/bin/sh
read -r first others </proc/{unshare}/task/{unshare}/children
export SLURM_CONF={at}/etc/slurm.conf PATH={at}/bin:{at}/slurm/bin:/usr/bin:/bin:/usr/sbin:/sbin
exec nsenter --target \"$first\" --net --pid --mount -- \"$@\"
"
    );
    let path = dir.join("enter");
    fs::write(&path, script).expect("a directory of ours");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
}

/// Where a scenario may write; none outside of one.
#[must_use]
pub fn directory() -> Option<PathBuf> {
    env::var_os(INSIDE).map(PathBuf::from)
}

/// The name of a test, from that of a closure in it such as `file::test::{{closure}}`.
fn test_name(closure: &str) -> &str {
    let name = closure.split_once("::").map_or(closure, |(_, rest)| rest);
    name.strip_suffix("::{{closure}}").unwrap_or(name)
}
