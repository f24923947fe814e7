//! Ports for daemons that need theirs in a file.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Mutex;

/// Below the ephemeral ports of the kernel.
const FIRST: u16 = 12_000;
const LAST: u16 = 32_000;

/// The locked files of the ports of this process.
static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port that no other test uses while this process lives.
#[must_use]
pub fn own_port() -> u16 {
    let mut locks = LOCKS.lock().expect("no test panics with it");
    let folder = folder();
    // Processes begin at different ports.
    let all = u32::from(LAST - FIRST);
    let begin = std::process::id().wrapping_mul(37) % all;
    for step in 0..all {
        let port = FIRST + u16::try_from((begin + step) % all).expect("it is less than all");
        let file = File::create(folder.join(port.to_string())).expect("anybody may write there");
        if file.try_lock().is_err() {
            continue;
        }
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            locks.push(file);
            return port;
        }
    }
    panic!("no port from {FIRST} to {LAST} is free");
}

/// The directory of the lock files of this user's tests.
fn folder() -> PathBuf {
    let user = fs::metadata("/proc/self").map_or(0, |it| std::os::unix::fs::MetadataExt::uid(&it));
    let folder = std::env::temp_dir().join(format!("slurm-testbed-ports-{user}"));
    fs::create_dir_all(&folder).expect("temporary files can be written");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
    folder
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_port_is_reserved_for_this_process() {
        let ports: BTreeSet<u16> = (0..50).map(|_| own_port()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..LAST).contains(port)), "{ports:?}");
        let taken = File::create(folder().join(ports.first().expect("some").to_string()));
        assert!(taken.expect("a file").try_lock().is_err(), "others see that it is taken");
    }
}
