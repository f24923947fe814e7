//! Where configuration is read from: handed in, so that no library reads the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file as read; `Debug` shows nothing of what is in it, which may be a key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct File {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Its permission bits, where there are such.
    pub mode: Option<u32>,
}

impl File {
    /// What is in it, as text; an error of kind `InvalidData` if it is not UTF-8.
    pub fn into_text(self) -> io::Result<String> {
        String::from_utf8(self.bytes).map_err(|_cause| io::ErrorKind::InvalidData.into())
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, mode } = self;
        f.debug_struct("File").field("bytes", &bytes.len()).field("mode", mode).finish()
    }
}

/// The home directory, the variables and the files that a cloud's configuration comes from.
pub struct Sources<'a> {
    /// The directory that `~` means: slurmctld gives its programs no variable that says so.
    pub home: Option<PathBuf>,
    /// The environment's variables.
    pub variables: BTreeMap<String, String>,
    read: Box<Read<'a>>,
}

type Read<'a> = dyn Fn(&Path) -> io::Result<File> + 'a;

impl<'a> Sources<'a> {
    /// Sources with a file reader of their own.
    pub fn new(
        home: Option<PathBuf>,
        variables: BTreeMap<String, String>,
        read: impl Fn(&Path) -> io::Result<File> + 'a,
    ) -> Self {
        Self { home, variables, read: Box::new(read) }
    }

    /// The files of the system, with the home directory and the variables that a program found.
    #[must_use]
    pub fn of_system(home: Option<PathBuf>, variables: BTreeMap<String, String>) -> Self {
        Self::new(home, variables, read)
    }

    /// A variable's value; an empty one counts as none.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Reads a file.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        (self.read)(path)
    }

    /// A path under the home directory, if that is known.
    #[must_use]
    pub fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    /// The path with `~` in front replaced by the home directory.
    #[must_use]
    pub fn expand(&self, path: &str) -> PathBuf {
        let below = match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) => rest.strip_prefix('/').and_then(|rest| self.at_home(rest)),
            None => None,
        };
        below.unwrap_or_else(|| PathBuf::from(path))
    }
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Among the variables may be a password.
        f.debug_struct("Sources").field("home", &self.home).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> io::Result<File> {
    Ok(File { bytes: std::fs::read(path)?, mode: mode(path)? })
}

#[cfg(unix)]
fn mode(path: &Path) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(Some(std::fs::metadata(path)?.permissions().mode() & 0o7777))
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> io::Result<Option<u32>> {
    Ok(None)
}
