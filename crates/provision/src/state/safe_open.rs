//! Files of a directory that is another's: where root is to write, nothing leads elsewhere.
//!
//! The directory is slurmctld's user's, who may put a link into it, and root works in it, too.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How often a file is opened that others replace meanwhile.
const MOST_TRIES: usize = 100;

/// Opens a file, and makes it if need be; not what a link in its place leads to.
///
/// The options must neither make nor empty a file: what is opened is looked at before anything is done to it.
pub(super) fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    for _ in 0..MOST_TRIES {
        match regular_file(path) {
            Ok(there) => match options.open(path) {
                Ok(file) if is_same(&file.metadata()?, &there) => return Ok(file),
                // Somebody has replaced or removed it in between.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Takes nothing for it that is there by now, not even a link.
                match options.clone().create_new(true).open(path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    made => return made,
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("it is replaced all the time"))
}

/// What is there, if it is a file.
pub(super) fn regular_file(path: &Path) -> io::Result<Metadata> {
    let there = fs::symlink_metadata(path)?;
    if there.is_symlink() {
        return Err(io::Error::other("it is a link, and not followed: remove it"));
    }
    if !there.is_file() {
        return Err(io::Error::other("it is no file: remove it"));
    }
    Ok(there)
}

/// Refuses what is no directory by itself.
pub(super) fn directory(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(io::Error::other("it is a link, and not followed: remove it"));
    }
    Ok(())
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use crate::state::{Document, Event, EventKind, NodeRecord, Result, State as _, StateDir};
    use hostlist::NodeName;
    use std::error::Error as _;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    /// Holds that work fails where a link is in the place of a file, that it says so, and that what the link leads to stays
    /// as it is, be it there or not; and that it goes well when the link is gone.
    fn follows_no_link(name: &str, work: impl Fn(&StateDir, NodeName) -> Result<()>) {
        let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (link, target) = (directory.path().join(name), elsewhere.path().join("shadow"));
        let state = StateDir::open(directory.path()).unwrap();
        let work = || work(&state, NodeName::new("n1").unwrap());
        symlink(&target, &link).unwrap();
        for before in [None, Some("root:*:")] {
            if let Some(text) = before {
                fs::write(&target, text).unwrap();
            }
            let error = work().unwrap_err();
            assert!(error.to_string().ends_with(name), "{error}");
            assert!(error.source().unwrap().to_string().contains("it is a link"), "{error:?}");
            assert_eq!(fs::read_to_string(&target).ok().as_deref(), before);
        }
        fs::remove_file(&link).unwrap();
        for _ in 0..2 {
            work().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_wish_had_root_empty_what_it_leads_to() {
        follows_no_link("yield/n1", |state, node| state.ask_to_yield(&[node], SystemTime::now()));
    }

    #[test]
    fn a_link_in_the_place_of_a_lock_had_root_write_where_it_leads() {
        follows_no_link("nodes/n1", |state, node| {
            let lock = state.try_lock(&node)?;
            lock.unwrap().keep(&NodeRecord::default())
        });
    }

    #[test]
    fn a_link_in_the_place_of_the_events_had_root_append_to_what_it_leads_to() {
        follows_no_link("events.jsonl", |state, _| {
            state.note(&Event::new(SystemTime::now(), "r1", EventKind::Begun))
        });
    }

    #[test]
    fn a_link_in_the_place_of_the_cool_downs_had_root_replace_what_it_leads_to() {
        follows_no_link("cooldowns.json", |state, _| {
            let changed = state.change(Document::Cooldowns, &mut |old| format!("{old:?}"))?;
            assert!(changed);
            Ok(())
        });
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_had_root_write_where_it_leads() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), root.path().join("nodes")).unwrap();
        let error = StateDir::open(root.path()).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("it is a link"), "{error:?}");
    }

    #[test]
    fn a_link_in_the_place_of_the_version_before_had_root_write_where_it_leads() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("shadow");
        fs::write(&target, "root:*:").unwrap();
        let state = StateDir::open(root.path()).unwrap();
        let change = || state.change(Document::Cooldowns, &mut |old| format!("{old:?}"));
        change().unwrap();
        symlink(&target, root.path().join("cooldowns.json.previous")).unwrap();
        // What a process of ours would link first cannot be made.
        let old = format!("cooldowns.json.{}.old", std::process::id());
        fs::create_dir(root.path().join(old)).unwrap();
        change().unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "root:*:");
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::open(directory.path()).unwrap();
        fs::create_dir(directory.path().join("nodes/n1")).unwrap();
        let error = state.try_lock(&NodeName::new("n1").unwrap()).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("it is no file"), "{error:?}");
    }
}
