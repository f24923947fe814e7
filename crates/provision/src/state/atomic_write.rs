//! Atomic writes: a temporary file in the same directory, fsync, rename.

use super::error::{Error, Result};
use super::owner::inherit_owner;
use super::safe_open;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The name of the previous version.
pub(crate) fn previous(path: &Path) -> PathBuf {
    beside(path, ".previous")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Replaces a file atomically. Owner and mode stay, and the previous version is kept.
///
/// A reader sees the old or the new content at any time, also after a crash.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<()> {
    put(&real(path), text)
}

/// Replaces a file of the state directory without following links, because another user owns the directory.
pub(crate) fn replace_no_follow(path: &Path, text: &[u8]) -> Result<()> {
    match safe_open::regular_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(Error::on("replace", path)(source))
        }
        _ => put(path, text),
    }
}

fn put(path: &Path, text: &[u8]) -> Result<()> {
    let temporary = temporary(path);
    let put = || {
        write_new(&temporary, path, text)?;
        keep_previous(path).map_err(Error::on("keep the version before of", path))?;
        fs::rename(&temporary, path).map_err(Error::on("replace", path))
    };
    put().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })?;
    // The rename is durable only after an fsync of the directory, which some file systems do not support.
    let _ = path.parent().map(|directory| File::open(directory).and_then(|open| open.sync_all()));
    Ok(())
}

/// Tries everything that [`replace`] does, without changing the file.
///
/// This finds errors before the caller makes changes that need the new file.
pub(crate) fn rehearse(path: &Path, text: &[u8]) -> Result<()> {
    let path = &real(path);
    let temporary = temporary(path);
    let written = write_new(&temporary, path, text);
    let _ = fs::remove_file(&temporary);
    written
}

/// Resolves a symbolic link, so that its target is replaced.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn temporary(path: &Path) -> PathBuf {
    beside(path, &format!(".{}.new", std::process::id()))
}

fn write_new(temporary: &Path, path: &Path, text: &[u8]) -> Result<()> {
    let before = fs::metadata(path).ok();
    let mode = before.as_ref().map_or(0o644, |before| before.mode() & 0o7777);
    let file = create(temporary, mode, text).map_err(Error::on("write", path))?;
    match before {
        Some(before) => {
            make_alike(&file, &before).map_err(Error::on("keep owner and mode of", path))?;
        }
        None => inherit_owner(temporary),
    }
    file.sync_all().map_err(Error::on("write", path))
}

fn create(temporary: &Path, mode: u32, text: &[u8]) -> io::Result<File> {
    // A leftover of a killed process may be a link, which is not followed.
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary)?;
    file.write_all(text)?;
    Ok(file)
}

fn make_alike(file: &File, before: &Metadata) -> io::Result<()> {
    file.set_permissions(before.permissions())?;
    // Only root can change the owner of a file.
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    Ok(())
}

/// Keeps the previous version as a hard link, so that the file exists at any time, or as a copy on file systems without
/// hard links. Neither follows a symbolic link.
fn keep_previous(path: &Path) -> io::Result<()> {
    let old = beside(path, &format!(".{}.old", std::process::id()));
    let _ = fs::remove_file(&old);
    match fs::hard_link(path, &old).or_else(|_| copy(path, &old)) {
        Ok(()) => fs::rename(&old, previous(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&old);
            Err(error)
        }
    }
}

fn copy(path: &Path, to: &Path) -> io::Result<()> {
    let (text, before) = (fs::read(path)?, fs::metadata(path)?);
    make_alike(&create(to, before.mode() & 0o7777, &text)?, &before)
}

/// Maximum length of a document; that of 100,000 nodes is shorter.
const LONGEST: u64 = 64 << 20;

/// Reads a document, if it exists.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    safe_open::read(path, LONGEST).map_err(Error::on("read", path))
}

/// Reads a file of the administrator's, if it exists. Its path may be a link, as for [`replace`].
pub(crate) fn read_followed(path: &Path) -> Result<Option<Vec<u8>>> {
    safe_open::read_bytes(&real(path), LONGEST).map_err(Error::on("read", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_that_only_some_may_read_stays_one()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("file");
        fs::write(&file, "old")?;
        // No umask results in the last mode.
        for mode in [0o640, 0o600, 0o666] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
            replace(&file, b"new")?;
            assert_eq!(fs::metadata(&file)?.mode() & 0o7777, mode, "{mode:o}");
        }
        Ok(())
    }

    /// Some network file systems refuse hard links.
    #[test]
    fn a_version_before_that_is_copied_is_like_the_file()
    -> std::result::Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let (file, old) = (directory.path().join("file"), directory.path().join("old"));
        let elsewhere = directory.path().join("elsewhere");
        fs::write(&file, "text")?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640))?;
        std::os::unix::fs::symlink(&elsewhere, &old)?;
        copy(&file, &old)?;
        assert_eq!(fs::read_to_string(&old)?, "text");
        assert_eq!(fs::metadata(&old)?.mode() & 0o7777, 0o640);
        assert!(!elsewhere.exists(), "a link is replaced, not followed");
        let missing = copy(&directory.path().join("missing"), &old).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        Ok(())
    }

    #[test]
    fn a_rehearsal_leaves_nothing_behind() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("file");
        fs::write(&file, "old")?;
        rehearse(&file, b"new")?;
        assert_eq!(fs::read_to_string(&file)?, "old");
        assert_eq!(fs::read_dir(directory.path())?.count(), 1);
        assert!(rehearse(&directory.path().join("missing/file"), b"new").is_err());
        Ok(())
    }

    #[test]
    fn a_link_is_not_replaced_by_a_file() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let directory = tempfile::tempdir()?;
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old")?;
        std::os::unix::fs::symlink(&file, &link)?;
        replace(&link, b"new")?;
        assert!(fs::symlink_metadata(&link)?.is_symlink());
        assert_eq!(fs::read_to_string(&file)?, "new");
        Ok(())
    }
}
