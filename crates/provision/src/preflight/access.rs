//! Checks whether a user can write a file, by permissions and by a real write.

use std::fs::{Metadata, metadata};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Number of bytes to write as a test for free space.
const BLOCK: [u8; 4096] = [0; 4096];

/// The ids of a user and its groups.
#[derive(Clone, Debug)]
pub struct UserIds {
    /// The user id.
    pub id: u32,
    /// The group ids.
    pub groups: Vec<u32>,
    /// True if this process runs as that user or as root, so that a failed write counts for the user.
    pub is_ours: bool,
}

/// Why a user cannot write a file.
#[derive(Debug)]
pub enum Unwritable {
    /// The directory does not exist.
    Missing,
    /// The permissions do not allow it.
    NotAllowed,
    /// A real write failed, as on a full or a read-only file system.
    Failed(io::Error),
}

impl UserIds {
    /// Checks whether the user can create files in a directory. The test leaves no file behind.
    pub fn writes_into(&self, directory: &Path) -> Result<(), Unwritable> {
        let found = metadata(directory).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Unwritable::Missing,
            _ => Unwritable::Failed(error),
        })?;
        if !found.is_dir() {
            return Err(Unwritable::Failed(ErrorKind::NotADirectory.into()));
        }
        if !self.is_allowed(&found) {
            return Err(Unwritable::NotAllowed);
        }
        self.judge(write_for_real(directory))
    }

    /// Checks whether the user can append to or create a file.
    pub fn appends_to(&self, path: &Path) -> Result<(), Unwritable> {
        let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        match metadata(path) {
            Ok(found) if !self.is_allowed(&found) => Err(Unwritable::NotAllowed),
            Ok(_) => self.judge(write_for_real(directory)),
            Err(_) => self.writes_into(directory),
        }
    }

    /// Interprets a write of this process: a missing permission of another user does not count.
    fn judge(&self, written: io::Result<()>) -> Result<(), Unwritable> {
        match written {
            Err(error) if self.is_ours || error.kind() != ErrorKind::PermissionDenied => {
                Err(Unwritable::Failed(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn is_allowed(&self, found: &Metadata) -> bool {
        let bit = if found.uid() == self.id {
            0o200
        } else if self.groups.contains(&found.gid()) {
            0o020
        } else {
            0o002
        };
        self.id == 0 || found.mode() & bit != 0
    }
}

/// Writes an unnamed temporary file, which never remains.
fn write_for_real(directory: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(&BLOCK)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;

    fn account(id: u32) -> UserIds {
        UserIds { id, groups: vec![id], is_ours: true }
    }

    #[test]
    fn a_user_writes_what_its_permissions_allow() {
        let folder = tempfile::tempdir().unwrap();
        let us = metadata(folder.path()).unwrap().uid();
        account(us).writes_into(folder.path()).unwrap();
        let other = account(12_345);
        assert!(matches!(other.writes_into(folder.path()), Err(Unwritable::NotAllowed)));
        set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        other.writes_into(folder.path()).unwrap();
        let log = folder.path().join("log");
        other.appends_to(&log).unwrap();
        fs::write(&log, "").unwrap();
        set_permissions(&log, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(other.appends_to(&log), Err(Unwritable::NotAllowed)));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn a_directory_that_is_not_there_is_missing_and_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let mistyped = folder.path().join("slrum-elastic");
        let found = account(0).writes_into(&mistyped);
        assert!(matches!(found, Err(Unwritable::Missing)), "{found:?}");
        assert!(!mistyped.exists());
    }

    #[test]
    fn a_file_system_that_takes_no_files_is_found_by_writing() {
        // Nobody can create files there, whatever its permissions.
        let found = account(0).writes_into(Path::new("/proc/self"));
        assert!(matches!(found, Err(Unwritable::Failed(_))), "{found:?}");
    }
}
