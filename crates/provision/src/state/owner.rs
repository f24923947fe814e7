//! Ownership of files: those that root creates get the owner of their directory.
//!
//! slurmctld's user must be able to lock and write the files that an operator created with `sudo`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::Path;

/// As root, gives a file that root owns to the owner of its directory. Files of other users and links keep their owner.
pub fn inherit_owner(path: &Path) {
    let Some(directory) = path.parent().and_then(|directory| fs::metadata(directory).ok()) else {
        return;
    };
    let Ok(file) = fs::symlink_metadata(path) else { return };
    if file.uid() == 0 && directory.uid() != 0 && !file.is_symlink() {
        let _ = lchown(path, Some(directory.uid()), Some(directory.gid()));
    }
}

#[cfg(test)]
mod tests {
    use crate::state::{Event, EventKind, State as _, StateDir, StateFile};
    use hostlist::NodeName;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, chown};
    use std::path::{Path, PathBuf};
    use std::time::SystemTime;

    fn below(directory: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                found.extend(below(&path));
            }
            found.push(path);
        }
        found
    }

    #[test]
    fn what_root_makes_belongs_to_the_owner_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let us = fs::metadata(directory.path()).unwrap().uid();
        // Only root can change an owner.
        let owner = if us == 0 { 12_345 } else { us };
        chown(directory.path(), Some(owner), None).unwrap();
        let state = StateDir::open(directory.path()).unwrap();
        let node = NodeName::new("n1").unwrap();
        let lock = state.try_lock(&node).unwrap();
        assert!(lock.is_some());
        state.note(&Event::new(SystemTime::now(), "r1", EventKind::Begun)).unwrap();
        state.ask_to_yield(&[node], SystemTime::now()).unwrap();
        for _ in 0..2 {
            assert!(state.change(StateFile::Sightings, &mut |old| format!("{old:?}")).unwrap());
        }
        let found = below(directory.path());
        assert!(found.len() >= 7, "{found:?}");
        for path in found {
            assert_eq!(fs::metadata(&path).unwrap().uid(), owner, "{}", path.display());
        }
    }

    /// A directory of root's that others can write, as `/var/log/slurm` often is.
    #[test]
    fn root_takes_no_file_away_from_slurms_user() {
        let directory = tempfile::tempdir().unwrap();
        let us = fs::metadata(directory.path()).unwrap().uid();
        let owner = if us == 0 { 12_345 } else { us };
        let path = directory.path().join("elastic.log");
        fs::write(&path, "").unwrap();
        chown(&path, Some(owner), None).unwrap();
        super::inherit_owner(&path);
        assert_eq!(fs::metadata(&path).unwrap().uid(), owner);
    }
}
