//! Where a configuration comes from, as a value: nothing here knows the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file as it was read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FileContent {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// True if others than its owner and group may read it.
    pub open_to_others: bool,
}

impl fmt::Debug for FileContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In it may be a password.
        f.debug_struct("FileContent")
            .field("length", &self.bytes.len())
            .field("open_to_others", &self.open_to_others)
            .finish_non_exhaustive()
    }
}

/// Reads a file from the disk, for [`Sources::read`].
pub fn read_file(path: &Path) -> io::Result<FileContent> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = std::fs::metadata(path)?.permissions().mode();
    Ok(FileContent { bytes: std::fs::read(path)?, open_to_others: mode & 0o004 != 0 })
}

/// Where a configuration comes from.
pub struct Sources<'a> {
    /// The cloud asked for, if any.
    pub cloud: Option<String>,
    /// The directory that `~` means: slurmctld gives its programs no variable that says so.
    pub home: Option<PathBuf>,
    /// Directories that may have a clouds.yaml, best first.
    pub directories: Vec<PathBuf>,
    /// The environment's variables.
    pub variables: BTreeMap<String, String>,
    /// Reads a file; [`read_file`] in a program.
    pub read: &'a dyn Fn(&Path) -> io::Result<FileContent>,
}

impl<'a> Sources<'a> {
    /// The usual places: the current directory, that of the user, that of the machine.
    #[must_use]
    pub fn usual(
        home: Option<&Path>,
        variables: BTreeMap<String, String>,
        read: &'a dyn Fn(&Path) -> io::Result<FileContent>,
    ) -> Self {
        let user = variables
            .get("XDG_CONFIG_HOME")
            .filter(|directory| !directory.is_empty())
            .map(PathBuf::from)
            .or_else(|| home.map(|home| home.join(".config")));
        let user = user.map(|config| config.join("openstack"));
        let places = [Some(PathBuf::from(".")), user, Some(PathBuf::from("/etc/openstack"))];
        let directories = places.into_iter().flatten().collect();
        Self { cloud: None, home: home.map(Path::to_owned), directories, variables, read }
    }

    /// A variable that is there and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).filter(|value| !value.is_empty()).cloned()
    }
}

impl fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Among the variables may be a password.
        f.debug_struct("Sources")
            .field("cloud", &self.cloud)
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}
