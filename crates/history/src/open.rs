//! Opens the files of the log without waiting for anybody.

use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file for reading, without following a link; none if it does not exist.
///
/// The directory belongs to slurmctld's user, and root reads there, too. To open a FIFO is to wait for its writer, and a device
/// may have no end.
pub(crate) fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let found = fs::symlink_metadata(path).and_then(|there| {
        only_file(&there)?;
        // Something else may have replaced it by now.
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let there = file.metadata()?;
        only_file(&there)?;
        Ok((file, there))
    });
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn only_file(there: &Metadata) -> io::Result<()> {
    if there.is_symlink() {
        return Err(io::Error::other("it is a link, and not followed: remove it"));
    }
    if !there.is_file() {
        return Err(io::Error::other("it is no file: remove it"));
    }
    Ok(())
}
