//! The lock of slurm.conf.

use crate::state::{Result, lock};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The lock file in the state directory. It is never removed: two processes could otherwise lock two files of the same
/// name.
const NAME: &str = "slurm.conf.lock";

const PAUSE: Duration = Duration::from_millis(250);

/// The lock of slurm.conf, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct ConfLock {
    file: File,
    program: String,
    holder: Option<String>,
}

impl ConfLock {
    /// How long to wait for another program. One that waits for jobs takes longer.
    pub const WAIT: Duration = Duration::from_mins(2);

    /// Tries to take the lock in a state directory for a program.
    pub fn open(state: &Path, program: &str) -> Result<Self> {
        let file = lock::open(&state.join(NAME))?;
        let mut lock = Self { file, program: program.to_owned(), holder: None };
        if !lock.take() {
            let mut text = String::new();
            let _ = (&lock.file).take(lock::LONGEST).read_to_string(&mut text);
            let holder = if text.is_empty() { "another program" } else { text.trim() };
            lock.holder = Some(holder.to_owned());
        }
        Ok(lock)
    }

    /// The other program that holds the lock, if any.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// Waits up to [`WAIT`](Self::WAIT) for the lock. Returns false on a timeout.
    pub async fn wait(&mut self) -> bool {
        let until = Instant::now() + Self::WAIT;
        while Instant::now() < until {
            sleep(PAUSE).await;
            if self.take() {
                self.holder = None;
                return true;
            }
        }
        false
    }

    /// Tries to lock the file, and writes the holder into it.
    fn take(&self) -> bool {
        match self.file.try_lock() {
            Ok(()) => {
                let mut file = &self.file;
                let line = format!("{}, process {}\n", self.program, std::process::id());
                // Only waiting programs read it.
                let emptied = file.set_len(0).and_then(|()| file.rewind());
                let _ = emptied.and_then(|()| file.write_all(line.as_bytes()));
                true
            }
            Err(TryLockError::WouldBlock) => false,
            // On a file system without locks, continue without.
            Err(TryLockError::Error(_)) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_names_the_holder_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "resize, process 1, and more\n").unwrap();
        let held = ConfLock::open(folder.path(), "finish").unwrap();
        assert_eq!(held.holder(), None);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("finish, process {}\n", std::process::id()));
        let waiting = ConfLock::open(folder.path(), "resize").unwrap();
        assert_eq!(waiting.holder(), Some(text.trim()));
        drop(held);
        // Reading has moved the position in the file.
        assert!(waiting.take());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("resize, process "), "{text:?}");
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join(NAME), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(ConfLock::open(folder.path(), "finish").is_err());
        assert!(!other.exists());
        std::fs::write(&other, "precious").unwrap();
        assert!(ConfLock::open(folder.path(), "finish").is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
    }
}
