//! The state in a directory, shared by several processes and hosts.

use super::error::{Error, Result};
use super::lock::{self, FileLock};
use super::{Event, NodeLock, NodeRecord, State, StateFile, atomic_write, owner, safe_open};
use history::Position;
use hostlist::NodeName;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The state in a directory.
/// [The module](super) lists its files.
#[derive(Debug)]
pub struct StateDir {
    root: PathBuf,
}

impl StateDir {
    /// Opens the directory, and creates it if it does not exist.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        for part in ["nodes", "yield"] {
            let path = root.join(part);
            fs::create_dir_all(&path).map_err(Error::on("make", &path))?;
            safe_open::directory(&path).map_err(Error::on("use", &path))?;
            owner::inherit_owner(&path);
        }
        Ok(Self { root })
    }

    /// Opens a directory for reading only. A missing one counts as empty.
    #[must_use]
    pub fn read_only(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// As root, creates a missing directory and gives it to a user, because slurmctld's programs could not use one of
    /// root's. Errors surface when it is opened.
    pub fn create_for(root: &Path, user: u32, group: u32) {
        let Some(parent) = root.parent().filter(|_| !root.exists()) else { return };
        if fs::create_dir_all(parent).and_then(|()| fs::create_dir(root)).is_err() {
            return;
        }
        if fs::metadata(parent).is_ok_and(|parent| parent.uid() == 0) {
            let _ = lchown(root, Some(user), Some(group));
        } else {
            // In a parent directory of another user, that user could replace this one, so root must not change its owner.
            owner::inherit_owner(root);
        }
    }

    fn wish(&self, node: &NodeName) -> PathBuf {
        self.root.join("yield").join(node.as_str())
    }
}

/// Applies a change to all nodes, and returns the first error.
fn all(nodes: &[NodeName], work: impl Fn(&NodeName) -> Result<()>) -> Result<()> {
    nodes.iter().map(work).fold(Ok(()), Result::and)
}

impl State for StateDir {
    fn try_lock(&self, node: &NodeName) -> Result<Option<Box<dyn NodeLock>>> {
        let lock = FileLock::take(self.root.join("nodes").join(node.as_str()))?;
        Ok(lock.map(|lock| -> Box<dyn NodeLock> { Box::new(lock) }))
    }

    fn record(&self, node: &NodeName) -> NodeRecord {
        let text = safe_open::read(&self.root.join("nodes").join(node.as_str()), lock::LONGEST);
        text.ok().flatten().map(|text| NodeRecord::from_line(&text)).unwrap_or_default()
    }

    fn load(&self, document: StateFile) -> Result<Option<String>> {
        atomic_write::read(&self.root.join(document.file()))
    }

    fn change(
        &self,
        document: StateFile,
        change: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<bool> {
        let path = self.root.join(document.file());
        let guard_path = path.with_extension("lock");
        let guard = lock::open(&guard_path)?;
        if !lock::try_lock(&guard, &guard_path)? {
            return Ok(false);
        }
        let before = atomic_write::read(&path)?;
        let after = change(before.as_deref());
        if before.as_deref() != Some(after.as_str()) {
            atomic_write::replace_no_follow(&path, after.as_bytes())?;
        }
        Ok(true)
    }

    fn history(&self) -> Result<history::Log> {
        history::read(&self.root).map_err(|error| Error::on("read", error.path)(error.source))
    }

    fn note(&self, event: &Event) -> Result<()> {
        let path = self.root.join(history::FILE);
        let file = safe_open::open(&path, OpenOptions::new().append(true));
        owner::inherit_owner(&path);
        let written = file.and_then(|mut file| file.write_all(event.to_line().as_bytes()));
        written.map_err(Error::on("append to", path))
    }

    fn events_after(&self, position: Position) -> Result<(Vec<Event>, Position)> {
        history::read_after(&self.root, position)
            .map_err(|error| Error::on("read", error.path)(error.source))
    }

    fn ask_to_yield(&self, nodes: &[NodeName], until: SystemTime) -> Result<()> {
        let until = until.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let text = until.as_millis().to_string();
        let write = |node: &NodeName| {
            let path = self.wish(node);
            let file = safe_open::open(&path, OpenOptions::new().write(true));
            owner::inherit_owner(&path);
            // A fixed length, so that a reader always finds a complete number.
            let written = file.and_then(|file| {
                file.write_all_at(text.as_bytes(), 0)?;
                file.set_len(u64::try_from(text.len()).unwrap_or_default())
            });
            written.map_err(Error::on("write", &path))
        };
        all(nodes, write)
    }

    fn stop_asking(&self, nodes: &[NodeName]) -> Result<()> {
        let remove = |node: &NodeName| {
            let path = self.wish(node);
            match fs::remove_file(&path) {
                Ok(()) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(source) => Err(Error::on("remove", path)(source)),
            }
        };
        all(nodes, remove)
    }

    fn asked_to_yield(&self, now: SystemTime) -> Result<BTreeSet<NodeName>> {
        let directory = self.root.join("yield");
        let entries = fs::read_dir(&directory).map_err(Error::on("read", &directory))?;
        let mut nodes = BTreeSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let node = name.to_str().and_then(|name| NodeName::new(name).ok());
            let text = safe_open::read(&entry.path(), lock::LONGEST).ok().flatten();
            let until = text.and_then(|text| text.parse().ok());
            let until = until.map(|millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
            if until.is_some_and(|until| super::is_wished(until, now)) {
                nodes.extend(node);
            }
        }
        Ok(nodes)
    }
}
