//! A temporary directory that goes with its process, however that ends.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Removes a directory when its input ends, which it does with whoever holds the other end, and whatever runs in it: those
/// who have the directory in their environment.
const WATCH: &str = "trap '' INT TERM HUP
cat
for _ in 1 2 3 4 5 6 7 8 9 10; do
    for process in /proc/[0-9]*; do
        grep -qa \"$0/\" $process/environ && kill -s KILL ${process#/proc/}
    done
    rm -rf \"$0\" && [ ! -e \"$0\" ] && exit
    sleep 0.2
done";

/// A directory directly below `/tmp`, as a socket's path is at most 107 bytes.
///
/// It goes when this is dropped, and also if this process is killed.
#[derive(Debug)]
pub(crate) struct Folder {
    dir: TempDir,
    watcher: Option<Child>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let dir = TempDir::with_prefix_in("se", "/tmp").expect("a temporary directory");
        let watcher = Command::new("sh")
            .args(["-c", WATCH])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Whoever ends this process with its group is not to end the watcher.
            .process_group(0)
            .spawn()
            .expect("a shell");
        Self { dir, watcher: Some(watcher) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves it to look at.
    pub(crate) fn keep(mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            let _ = watcher.kill();
            let _ = watcher.wait();
        }
        self.dir.disable_cleanup(true);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}
