//! One at a time: no two programs work on slurm.conf at once.

use crate::args::Common;
use crate::context::Context;
use crate::trouble::Trouble;
use crate::wiring::Purpose;
use provision::state::give_to_directory;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The lock, in the state directory; never removed, as two that lock two files of one name would both have it.
const LOCK: &str = "slurm.conf.lock";

/// How long another is waited for; one that waits for jobs takes longer than anybody wants to wait.
const LOCK_WAIT: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_millis(250);

/// The right to work on slurm.conf, until it is dropped or the process ends; nothing where there is no lock to be had.
#[derive(Debug)]
pub(in crate::programs) struct Turn(#[expect(dead_code, reason = "held, not read")] Option<File>);

/// Opens everything and waits for our turn; what is only looked at needs none.
pub(in crate::programs) async fn open(
    program: &'static str,
    common: &Common,
    (purpose, writes): (Purpose, bool),
) -> Result<(Context, Turn), Trouble> {
    let context = Context::open(program, common, purpose).await?;
    let path = context.state_path.join(LOCK);
    if !writes || common.dry_run || !context.state_path.is_dir() {
        return Ok((context, Turn(None)));
    }
    let file = match lockable(&path) {
        Ok(file) => file,
        Err(error) => {
            context.warn(&format!("no lock on slurm.conf: {}: {error}", path.display()));
            return Ok((context, Turn(None)));
        }
    };
    if taken(&file, program) {
        return Ok((context, Turn(Some(file))));
    }
    wait(&context, &file, program).await?;
    // What was read before is what the other has changed.
    Ok((Context::open(program, common, purpose).await?, Turn(Some(file))))
}

fn lockable(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // The directory is another's, and root empties what it locks.
    let file = options.custom_flags(nix::libc::O_NOFOLLOW).open(path)?;
    give_to_directory(path);
    Ok(file)
}

/// True if it is ours now; then it says whose it is.
fn taken(file: &File, program: &str) -> bool {
    match file.try_lock() {
        Ok(()) => {
            let mut file = file;
            let line = format!("{program}, process {}\n", std::process::id());
            // Only those who wait read it.
            let emptied = file.set_len(0).and_then(|()| file.rewind());
            let _ = emptied.and_then(|()| file.write_all(line.as_bytes()));
            true
        }
        Err(TryLockError::WouldBlock) => false,
        // A file system without locks: as good as no lock.
        Err(TryLockError::Error(_)) => true,
    }
}

async fn wait(context: &Context, file: &File, program: &str) -> Result<(), Trouble> {
    let until = Instant::now() + LOCK_WAIT;
    let mut other = String::new();
    let mut reader = file;
    let _ = reader.read_to_string(&mut other);
    let other = if other.is_empty() { "another program" } else { other.trim() };
    let most = LOCK_WAIT.as_secs();
    context.warn(&format!("slurm.conf is being changed by {other}: waiting for at most {most} s"));
    while Instant::now() < until {
        sleep(PAUSE).await;
        if taken(file, program) {
            return Ok(());
        }
    }
    let text =
        format!("slurm.conf is still being changed by {other}; run it again when that has ended");
    Err(Trouble::new(text).passing(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waited_left_zeros_before_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        std::fs::write(&path, "resize, process 1\n").unwrap();
        let mut file = lockable(&path).unwrap();
        let mut other = String::new();
        file.read_to_string(&mut other).unwrap();
        assert!(taken(&file, "finish"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("finish, process "), "{text:?}");
    }

    #[test]
    fn a_link_in_the_place_of_the_lock_had_root_empty_what_it_leads_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join(LOCK), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(lockable(&path).is_err());
        assert!(!other.exists());
        std::fs::write(&other, "precious").unwrap();
        assert!(lockable(&path).is_err());
    }
}
