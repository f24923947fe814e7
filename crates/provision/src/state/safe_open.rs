//! Opens files in a directory of another user safely: without following links, and without blocking.
//!
//! The directory belongs to slurmctld's user, who could create a link, a FIFO, a device or an endless file in it, and root
//! also works in it.

use rustix::fs::OFlags;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Maximum attempts to open a file that others replace meanwhile.
const MOST_TRIES: usize = 100;

/// Opens or creates a file, without following a link.
///
/// The options must neither create nor truncate a file, because it is checked first.
pub(super) fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let options = &without_waiting(options);
    for _ in 0..MOST_TRIES {
        match regular_file(path) {
            Ok(there) => match options.open(path) {
                Ok(file) if is_same(&file.metadata()?, &there) => return Ok(file),
                // Another process has replaced or removed it in between.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                // Fails if anything exists by now, even a link.
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

/// Reads a text of at most this length, if the file exists.
pub(super) fn read(path: &Path, longest: u64) -> io::Result<Option<String>> {
    let bytes = read_bytes(path, longest)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a file of at most this length, if it exists.
pub(super) fn read_bytes(path: &Path, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match regular_file(path) {
        Ok(_) => without_waiting(OpenOptions::new().read(true)).open(path),
        Err(error) => Err(error),
    };
    let file = match file {
        // Another file may have replaced it by now.
        Ok(file) if !file.metadata()?.is_file() => return Err(no_file()),
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(longest.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= longest) {
        return Ok(Some(bytes));
    }
    Err(io::Error::other(format!("it has more than {longest} bytes: remove it")))
}

/// Opens without blocking, in case a FIFO or device replaces the file.
fn without_waiting(options: &OpenOptions) -> OpenOptions {
    let mut options = options.clone();
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed());
    options
}

fn no_file() -> io::Error {
    io::Error::other("it is no file: remove it")
}

/// The metadata, if it is a regular file.
pub(super) fn regular_file(path: &Path) -> io::Result<Metadata> {
    let there = fs::symlink_metadata(path)?;
    if there.is_symlink() {
        return Err(io::Error::other("it is a link, and not followed: remove it"));
    }
    if !there.is_file() {
        return Err(no_file());
    }
    Ok(there)
}

/// Returns an error unless it is a directory and not a link.
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
    use crate::state::{Event, EventKind, NodeRecord, Result, State as _, StateDir, StateFile};
    use hostlist::NodeName;
    use std::error::Error as _;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    /// Asserts that `work` fails with an error about the link if a link replaces the file, that the target stays unchanged
    /// whether it exists or not, and that `work` succeeds without the link.
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
    fn a_link_in_the_place_of_a_wish_is_not_followed() {
        follows_no_link("yield/n1", |state, node| state.ask_to_yield(&[node], SystemTime::now()));
    }

    #[test]
    fn a_link_in_the_place_of_a_lock_is_not_followed() {
        follows_no_link("nodes/n1", |state, node| {
            let lock = state.try_lock(&node)?;
            lock.unwrap().keep(&NodeRecord::default())
        });
    }

    #[test]
    fn a_link_in_the_place_of_the_events_is_not_followed() {
        follows_no_link("events.jsonl", |state, _| {
            state.note(&Event::new(SystemTime::now(), "r1", EventKind::Begun))
        });
    }

    #[test]
    fn a_link_in_the_place_of_the_cool_downs_is_not_followed() {
        follows_no_link("cooldowns.json", |state, _| {
            let changed = state.change(StateFile::Cooldowns, &mut |old| format!("{old:?}"))?;
            assert!(changed);
            Ok(())
        });
    }

    #[test]
    fn a_link_in_the_place_of_a_directory_is_not_followed() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), root.path().join("nodes")).unwrap();
        let error = StateDir::open(root.path()).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("it is a link"), "{error:?}");
    }

    #[test]
    fn a_link_in_the_place_of_the_version_before_is_not_followed() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let target = elsewhere.path().join("shadow");
        fs::write(&target, "root:*:").unwrap();
        let state = StateDir::open(root.path()).unwrap();
        let change = || state.change(StateFile::Cooldowns, &mut |old| format!("{old:?}"));
        change().unwrap();
        symlink(&target, root.path().join("cooldowns.json.previous")).unwrap();
        // The file that a process would link first cannot be created.
        let old = format!("cooldowns.json.{}.old", std::process::id());
        fs::create_dir(root.path().join(old)).unwrap();
        change().unwrap_err();
        assert_eq!(fs::read_to_string(&target).unwrap(), "root:*:");
    }

    /// Files that may replace those of the state directory.
    #[test]
    fn fifos_and_files_without_end_hang_nobody() {
        let node = NodeName::new("n1").unwrap();
        let files = ["nodes/n1", "yield/n1", "cooldowns.json", "cooldowns.lock", "events.jsonl"];
        for (name, fifo) in files.iter().flat_map(|name| [(name, true), (name, false)]) {
            let directory = tempfile::tempdir().unwrap();
            let state = StateDir::open(directory.path()).unwrap();
            let path = directory.path().join(name);
            if fifo {
                let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                let kind = rustix::fs::FileType::Fifo;
                rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
            } else {
                fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
            }
            let now = SystemTime::now();
            assert_eq!(state.record(&node), NodeRecord::default(), "{name}");
            assert!(state.asked_to_yield(now).unwrap().is_empty(), "{name}");
            let locked = state.try_lock(&node).and_then(|lock| match lock {
                Some(mut lock) => lock.keep(&NodeRecord::default()),
                None => Ok(()),
            });
            assert_eq!(locked.is_err(), fifo && *name == "nodes/n1", "{name}: {locked:?}");
            let changed = state.change(StateFile::Cooldowns, &mut |_| "{}".to_owned());
            let cooldowns = name.starts_with("cooldowns") && (fifo || name.ends_with("json"));
            assert_eq!(changed.is_err(), cooldowns, "{name}: {changed:?}");
            let noted = state.note(&Event::new(now, "r1", EventKind::Begun));
            assert_eq!(noted.is_err(), fifo && *name == "events.jsonl", "{name}: {noted:?}");
            let wished = state.ask_to_yield(std::slice::from_ref(&node), now);
            assert_eq!(wished.is_err(), fifo && *name == "yield/n1", "{name}: {wished:?}");
        }
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
