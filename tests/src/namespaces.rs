//! A scenario in a world of its own: its processes and its network end with it, whatever happens.

use crate::folder::Folder;
use crate::network;
use crate::release::Release;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::panic::{resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, fs};

/// Names the scenario's directory, and says to a program that it is inside.
const INSIDE: &str = "SLURM_ELASTIC_SCENARIO";

/// The file of a scenario that says in short what went wrong.
const FAILURE: &str = "failure";

/// Runs a test's scenario in process and network namespaces of its own.
///
/// The test runs itself again there. When either ends, also by a kill, the kernel ends everything that the scenario has
/// started, and nothing else: process numbers and ports are the scenario's own. Needs root, or a kernel that lets ordinary
/// users make user namespaces.
pub fn in_namespaces<F: FnOnce()>(scenario: F) {
    if let Some(dir) = directory() {
        enter();
        note_failure(dir.join(FAILURE));
        return scenario();
    }
    let name = test_name(std::any::type_name::<F>());
    well(name, inside(&[name, "--exact", "--nocapture", "--include-ignored"]));
}

/// Runs a test's scenario in namespaces of its own, never as root: root runs the test again as the user `daemon`.
pub fn in_namespaces_as_user<F: FnOnce()>(scenario: F) {
    if !is_root() {
        return in_namespaces(scenario);
    }
    let name = test_name(std::any::type_name::<F>());
    well(name, as_user(&[name, "--exact", "--nocapture", "--include-ignored"]));
}

/// Ends the test here, too, if it did not go well inside.
fn well(name: &str, status: ExitStatus) {
    if !status.success() {
        say(&format!("{name}: {status}"));
        // Without a trace of calls, which would hide what was said of the scenario.
        resume_unwind(Box::new("what went wrong stands above"));
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Has the beginning of what goes wrong be written down, too: it is said once more at the end of the whole story.
fn note_failure(path: PathBuf) {
    let usual = take_hook();
    set_hook(Box::new(move |panic| {
        let words = panic.payload_as_str().unwrap_or_default();
        let begin: String = words.lines().next().unwrap_or_default().chars().take(400).collect();
        let at = panic.location().map(|at| format!("{}:{}: ", at.file(), at.line()));
        // The first is why others come.
        let _ = fs::File::create_new(&path)
            .and_then(|mut file| write!(file, "in short: {}{begin}", at.unwrap_or_default()));
        usual(panic);
    }));
}

/// True if we are root, who needs no user namespace to make the others.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Runs this program again as an ordinary user, with what it needs of root's home.
fn as_user(arguments: &[&str]) -> ExitStatus {
    let aside = Folder::new();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--", "unshare", "--mount", "--"])
        .arg(here.join("slurm/as-user"))
        .arg(aside.path())
        .args([&Release::cache().join("slurm"), here])
        // Our other programs are beside it or above.
        .args(program().ancestors().nth(2))
        .arg("--")
        .arg(program())
        .args(arguments)
        .status()
        .expect("util-linux is installed")
}

/// The program that runs.
fn program() -> PathBuf {
    env::current_exe().expect("a test is a program")
}

/// Runs this program again, inside, with these arguments; `SLURM_ELASTIC_KEEP=1` leaves its directory to look at.
#[must_use]
pub fn inside(arguments: &[&str]) -> ExitStatus {
    let dir = Folder::new();
    // In a user namespace of their own, ordinary users may make the others. It comes first, as the kernel forgets the
    // signal for the parent's end when a process gains rights.
    let mut command = if is_root() {
        Command::new("setpriv")
    } else {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-current-user", "--keep-caps", "--", "setpriv"]);
        command
    };
    command
        .args(["--pdeathsig", "KILL", "--", "unshare", "--net", "--pid", "--mount-proc", "--fork"])
        // The shell is the first process there, and reaps those that nobody waits for.
        .args(["--kill-child=KILL", "--", "sh", "-c", "\"$0\" \"$@\"; exit $?"])
        .arg(program())
        .args(arguments)
        .env(INSIDE, dir.path());
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
    {
        command.env_remove(name);
    }
    let mut child = command.spawn().expect("util-linux is installed");
    write_enter(dir.path(), child.id());
    let status = child.wait().expect("our own child");
    if let (false, Ok(short)) = (status.success(), fs::read_to_string(dir.path().join(FAILURE))) {
        say(&short);
    }
    if env::var_os("SLURM_ELASTIC_KEEP").is_some() {
        dir.keep();
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
    let user = if is_root() { "" } else { " --user --preserve-credentials" };
    let script = format!(
        "#!/bin/sh
read -r first others </proc/{unshare}/task/{unshare}/children
export SLURM_CONF={at}/etc/slurm.conf PATH={at}/bin:{at}/slurm/bin:/usr/bin:/bin:/usr/sbin:/sbin
exec nsenter --target \"$first\"{user} --net --pid --mount -- sh -c 'cd {at} && exec \"$@\"' sh \"$@\"
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

/// The name of a test, from that of a closure in it such as `file::test::{{closure}}`. With another name no test would run inside,
/// and none would fail.
fn test_name(closure: &str) -> &str {
    let name = closure.split_once("::").map_or(closure, |(_, rest)| rest);
    name.strip_suffix("::{{closure}}").expect("a scenario is a closure that is written in its test")
}
