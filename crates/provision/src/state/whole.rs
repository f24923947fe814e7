//! Files that are written whole: a temporary file beside them, fsync, rename.

use super::error::{Error, Result};
use super::owner::give_to_directory;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, chown};
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
pub fn replace(path: &Path, text: &[u8]) -> Result<()> {
    // A link stays one: what it leads to is replaced.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = real.as_path();
    let temporary = beside(path, &format!(".{}.new", std::process::id()));
    let put = || {
        write_new(&temporary, path, text).map_err(Error::on("write", &temporary))?;
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

fn write_new(temporary: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    let mode = before.as_ref().map_or(0o644, |before| before.mode() & 0o7777);
    // What a killed process left here is not ours to follow if it is a link.
    let _ = fs::remove_file(temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary)?;
    file.write_all(text)?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
        // Only root may give files away; a file of our own needs no giving.
        let now = file.metadata()?;
        if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
            chown(temporary, Some(before.uid()), Some(before.gid()))?;
        }
    } else {
        give_to_directory(temporary);
    }
    file.sync_all()
}

/// A second name for what is there now, so that the file itself is there at every moment.
fn keep_previous(path: &Path) -> io::Result<()> {
    let kept = previous(path);
    let link = beside(path, &format!(".{}.old", std::process::id()));
    let _ = fs::remove_file(&link);
    match fs::hard_link(path, &link) {
        Ok(()) => fs::rename(&link, kept),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A file system without hard links.
        Err(_) => fs::copy(path, kept).map(|_| ()),
    }
}

/// The text of a file, or none if there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::on("read", path)(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
