//! Sources of configuration, passed in so that no library reads the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The content of a file. `Debug` does not show it, because it may be a key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct File {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Its permission bits, if the system has them.
    pub mode: Option<u32>,
}

impl File {
    /// The content as text; an error of kind `InvalidData` if it is not UTF-8.
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

/// The home directory, variables and files for the configuration of a cloud.
pub struct Sources<'a> {
    /// The directory for `~`, because slurmctld does not set HOME.
    pub home: Option<PathBuf>,
    /// The environment's variables.
    pub variables: BTreeMap<String, String>,
    read: Box<Read<'a>>,
}

type Read<'a> = dyn Fn(&Path) -> io::Result<File> + 'a;

impl<'a> Sources<'a> {
    /// Creates sources with a custom file reader.
    pub fn new(
        home: Option<PathBuf>,
        variables: BTreeMap<String, String>,
        read: impl Fn(&Path) -> io::Result<File> + 'a,
    ) -> Self {
        Self { home, variables, read: Box::new(read) }
    }

    /// Creates sources with the files of the system.
    #[must_use]
    pub fn of_system(home: Option<PathBuf>, variables: BTreeMap<String, String>) -> Self {
        Self::new(home, variables, read)
    }

    /// The value of a variable. An empty one counts as unset.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Reads a file.
    pub fn read(&self, path: &Path) -> io::Result<File> {
        (self.read)(path)
    }

    /// A path in the home directory, if that is known.
    #[must_use]
    pub fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    /// Expands a leading `~` to the home directory.
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
        // A variable may contain a password.
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
