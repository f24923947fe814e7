//! A munged for one test.

use crate::process::{Guard, PATIENCE, wait};
use crate::release::Release;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

/// Starts munged with the socket `run/munge` in this directory. The path of a socket has at most 107 bytes.
#[must_use]
pub fn munged(release: &Release, dir: &Path) -> Guard {
    make_directories(dir);
    let mut munged = Command::new(release.dir().join("sbin/munged"));
    munged.args(["--foreground", "--num-threads=4"]);
    if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
        // In a user namespace root's files belong to nobody, which munged takes for insecure.
        munged.arg("--force");
    }
    for (name, file) in [
        ("key-file", "munge/key"),
        ("socket", "run/munge"),
        ("pid-file", "munge/pid"),
        ("log-file", "munge/log"),
        ("seed-file", "munge/seed"),
    ] {
        munged.arg(format!("--{name}={}", dir.join(file).display()));
    }
    let munged = Guard::spawn(&munged);
    let there = wait(PATIENCE, || dir.join("run/munge").exists().then_some(()));
    assert!(there.is_some(), "munged: {:?}", fs::read_to_string(dir.join("munge/log")));
    munged
}

/// Makes the directories with the modes that munged requires.
fn make_directories(dir: &Path) {
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own");
    };
    mode(dir, 0o755);
    for (name, bits) in [("munge", 0o700), ("run", 0o755)] {
        fs::create_dir_all(dir.join(name)).expect("a directory of ours");
        mode(&dir.join(name), bits);
    }
    // A key of its own, so that a slurmctld of another test on the same port does not answer.
    let mut key = [0; 128];
    let mut random = fs::File::open("/dev/urandom").expect("Linux has it");
    random.read_exact(&mut key).expect("it has no end");
    fs::write(dir.join("munge/key"), key).expect("a directory of ours");
    mode(&dir.join("munge/key"), 0o600);
}
