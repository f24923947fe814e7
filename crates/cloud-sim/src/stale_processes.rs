//! Processes of machines that an earlier run left behind, because it was killed.

use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

/// How long they may take to end when told to.
const GRACE: Duration = Duration::from_secs(5);

/// Ends every process of a machine whose file is in this directory, wherever it has gone since:
/// its environment names the file.
pub(crate) async fn end(directory: &Path) {
    if !directory.is_dir() {
        return;
    }
    let deadline = tokio::time::Instant::now() + GRACE;
    signal_all(directory, Signal::TERM);
    while !find(directory).is_empty() {
        if tokio::time::Instant::now() >= deadline {
            signal_all(directory, Signal::KILL);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        if tokio::time::Instant::now() >= deadline + GRACE {
            // Stuck in the kernel: nothing more can be done.
            return;
        }
    }
}

fn signal_all(directory: &Path, signal: Signal) {
    for process in find(directory) {
        // It may have ended in the meantime.
        let _ = kill_process(process, signal);
    }
}

/// The processes whose environment names a file in the directory. Those of others cannot be read.
fn find(directory: &Path) -> Vec<Pid> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let mut wanted = b"METADATA_FILE=".to_vec();
    wanted.extend_from_slice(directory.as_os_str().as_bytes());
    wanted.push(b'/');
    let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let ours = |number: &i32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry.starts_with(&wanted))
    };
    let own = rustix::process::getpid();
    let numbers = processes.filter_map(Result::ok).filter_map(number).filter(ours);
    numbers.filter_map(Pid::from_raw).filter(|process| *process != own).collect()
}
