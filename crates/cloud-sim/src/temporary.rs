//! Directories for the machines of clouds that keep no state, beside each other in one that all
//! users share.

use crate::directory_lock::DirectoryLock;
use crate::error::Error;
use crate::machine::end_left;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

const PREFIX: &str = "cloud-sim-";

/// A new directory that no other cloud has, whatever network it is in.
pub(crate) fn make() -> Result<(PathBuf, DirectoryLock), Error> {
    let above = above()?;
    loop {
        let name = format!("{PREFIX}{:016x}", fastrand::u64(..));
        let (hidden, path) = (above.join(format!(".{name}")), above.join(name));
        match fs::DirBuilder::new().mode(0o700).create(&hidden) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(source) => return Err(Error::File { path: hidden, source }),
        }
        let hold = DirectoryLock::take(&hidden)?;
        // It gets its name when it is held: under it, others take it for one that was left behind.
        match fs::rename(&hidden, &path) {
            Ok(()) => return Ok((path, hold)),
            Err(source) => return Err(Error::File { path, source }),
        }
    }
}

/// Where these directories are, in the spelling by which machines are found.
fn above() -> Result<PathBuf, Error> {
    let path = std::env::temp_dir();
    fs::canonicalize(&path).map_err(|source| Error::File { path, source })
}

/// Ends the machines of clouds that were killed, and deletes their directories.
pub(crate) async fn sweep() {
    let Ok(entries) =
        above().and_then(|path| fs::read_dir(&path).map_err(|source| Error::File { path, source }))
    else {
        return;
    };
    for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        // Held until it is gone, so that nobody else does the same.
        let Some(_lock) = left(&path) else {
            continue;
        };
        end_left(path.clone()).await;
        // What cannot be deleted is in nobody's way.
        let _ = fs::remove_dir_all(&path);
    }
}

/// Takes a directory that is ours and that no cloud has any more.
fn left(path: &Path) -> Option<DirectoryLock> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    let what = fs::symlink_metadata(path).ok()?;
    // Another's may lead anywhere.
    let ours = what.is_dir() && what.uid() == rustix::process::geteuid().as_raw();
    // One without a lock was made by somebody who knows of none.
    if !ours || !path.join("lock").is_file() {
        return None;
    }
    DirectoryLock::take(path).ok()
}
