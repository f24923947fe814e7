//! Files that are written whole: a temporary file beside them, fsync, rename.

use super::error::{Error, Result};
use super::owner::inherit_owner;
use super::safe_open;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The name of the version before.
pub(crate) fn previous(path: &Path) -> PathBuf {
    beside(path, ".previous")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Replaces a file, with owner and mode of the one before, which is kept beside it.
///
/// A reader sees the old text or the new one, at any moment and after any crash.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<()> {
    put(&real(path), text)
}

/// Replaces a file of the state directory, which another user owns: a link there could lead anywhere, and is not followed.
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
    // The rename itself is on disk only when the directory is; not every file system can do that.
    let _ = path.parent().map(|directory| File::open(directory).and_then(|open| open.sync_all()));
    Ok(())
}

/// Does what [`replace`] does up to the point where the file would change, and undoes it.
///
/// What would end a replacement is found before anything is done that only makes sense with it.
pub(crate) fn rehearse(path: &Path, text: &[u8]) -> Result<()> {
    let path = &real(path);
    let temporary = temporary(path);
    let written = write_new(&temporary, path, text);
    let _ = fs::remove_file(&temporary);
    written
}

/// A link stays one: what it leads to is replaced.
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
    // What a killed process left here is not ours to follow if it is a link.
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary)?;
    file.write_all(text)?;
    Ok(file)
}

fn make_alike(file: &File, before: &Metadata) -> io::Result<()> {
    file.set_permissions(before.permissions())?;
    // Only root may give files away; a file of our own needs no giving.
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    Ok(())
}

/// Keeps the version before under its name: by a second name for what is there now, so that the file itself is there at
/// every moment, or by a copy where the file system has no such names. Neither writes where a link leads.
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

/// The longest document: that of a hundred thousand nodes is shorter.
const LONGEST: u64 = 64 << 20;

/// The text of a document, or none if there is none.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    safe_open::read(path, LONGEST).map_err(Error::on("read", path))
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
        // No umask makes the last of them by itself.
        for mode in [0o640, 0o600, 0o666] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
            replace(&file, b"new")?;
            assert_eq!(fs::metadata(&file)?.mode() & 0o7777, mode, "{mode:o}");
        }
        Ok(())
    }

    /// As on some network file systems, where hard links are refused.
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
