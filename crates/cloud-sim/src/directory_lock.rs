//! The directory of the state, which is one cloud's at a time.

use crate::error::Error;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

/// A directory that no other cloud can have; it is free when this is dropped, and when the process
/// is killed.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _lock: File,
}

impl DirectoryLock {
    /// Takes a directory, or says that another cloud has it, of which nothing is touched.
    pub(crate) fn take(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("lock");
        let fail = |source| Error::File { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(fail)?;
        let mut options = File::options();
        let lock = options.create(true).truncate(false).write(true).open(&path).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Taken { directory: directory.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        // Whoever waits for the address must not find that of a cloud that was killed.
        forget(&directory.join("endpoint"))?;
        Ok(Self { _lock: lock })
    }
}

/// Deletes a file that may not be there.
fn forget(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(Error::File { path: path.to_owned(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
