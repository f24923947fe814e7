//! The lock of a node: a file with the node's record, locked with `flock` and never removed.

use super::error::{Error, Result};
use super::{NodeLock, NodeRecord, owner, safe_open};
use crate::failure::chain;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Maximum length of a record.
pub(crate) const LONGEST: u64 = 4096;

#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
    path: PathBuf,
    record: NodeRecord,
    /// Why nothing can be written.
    read_only: Option<String>,
}

/// Opens or creates a file for locking. It is never truncated or removed: two processes could otherwise lock two files of
/// the same name.
pub(crate) fn open(path: &Path) -> Result<File> {
    let file = safe_open::open(path, OpenOptions::new().read(true).write(true));
    owner::inherit_owner(path);
    file.map_err(Error::on("open", path))
}

/// Locks an open file, unless another process or handle holds the lock.
pub(super) fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(Error::on("lock", path)(source)),
    }
}

impl FileLock {
    pub(super) fn take(path: PathBuf) -> Result<Option<Self>> {
        let (file, read_only) = match open(&path) {
            Ok(file) => (file, None),
            // On a file system that is read-only, what was written before still counts, and locks hold.
            Err(error) => {
                let file = safe_open::open(&path, OpenOptions::new().read(true));
                let why = chain(&error);
                (file.map_err(|_| error)?, Some(why))
            }
        };
        if !try_lock(&file, &path)? {
            return Ok(None);
        }
        let mut text = String::new();
        // A record that is not UTF-8 counts as missing.
        let _ = (&file).take(LONGEST).read_to_string(&mut text);
        Ok(Some(Self { record: NodeRecord::from_line(&text), file, path, read_only }))
    }
}

impl NodeLock for FileLock {
    fn record(&self) -> NodeRecord {
        self.record.clone()
    }

    fn keep(&mut self, record: &NodeRecord) -> Result<()> {
        let line = format!("{}\n", record.to_line());
        // One write at the start. The reader takes the first line, so the rest of a longer old record does no harm if the
        // process is killed before truncating it.
        let written = self.file.write_all_at(line.as_bytes(), 0);
        let length = u64::try_from(line.len()).unwrap_or(LONGEST);
        let written = written.and_then(|()| self.file.set_len(length));
        written.map_err(Error::on("write", &self.path))?;
        self.record = record.clone();
        Ok(())
    }

    fn trouble(&self) -> Option<String> {
        self.read_only.as_ref().map(|why| format!("requests to the cloud are not recorded: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn a_lock_that_cannot_be_written_holds_all_the_same() -> Result<(), Box<dyn std::error::Error>>
    {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("n1");
        // Nobody can write a program that runs, not even root.
        fs::copy("/bin/sleep", &path)?;
        let mut running = Command::new(&path).arg("60").spawn()?;
        let (first, second) = (FileLock::take(path.clone()), FileLock::take(path.clone()));
        running.kill()?;
        running.wait()?;
        let mut first = first?.ok_or("nobody else has it")?;
        assert!(second?.is_none(), "taken twice");
        let why = first.trouble().ok_or("it can be written")?;
        assert!(why.starts_with("requests to the cloud are not recorded: open"), "{why}");
        first.keep(&NodeRecord::default()).unwrap_err();
        drop(first);
        let after = FileLock::take(path)?.ok_or("released")?;
        assert_eq!(after.trouble(), None);
        Ok(())
    }
}
