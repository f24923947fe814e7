//! Where configuration is read from: handed in, so that nothing here looks at the environment.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Everything that [`Config::load`](super::Config::load) looks at.
///
/// ```no_run
/// use cloud_oci::{Config, Sources, Overrides};
/// use std::time::SystemTime;
///
/// let variables = std::env::vars().collect();
/// let sources = Sources::of_system(Some("/home/slurm".into()), variables, SystemTime::now());
/// let config = Config::load(&sources, &Overrides::default())?;
/// # Ok::<(), cloud_core::ConfigError>(())
/// ```
pub struct Sources {
    home: Option<PathBuf>,
    variables: BTreeMap<String, String>,
    read: Box<Read>,
    now: SystemTime,
}

type Read = dyn Fn(&Path) -> io::Result<File>;

/// A file as read; `Debug` shows nothing of what is in it, which may be a key.
#[derive(Clone)]
pub struct File {
    /// What is in it.
    pub text: String,
    /// Its permission bits, where there are such.
    pub mode: Option<u32>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, mode } = self;
        f.debug_struct("File").field("bytes", &text.len()).field("mode", mode).finish()
    }
}

impl Sources {
    /// Sources with a reader of files of one's own.
    pub fn new(
        home: Option<PathBuf>,
        variables: BTreeMap<String, String>,
        read: impl Fn(&Path) -> io::Result<File> + 'static,
        now: SystemTime,
    ) -> Self {
        Self { home, variables, read: Box::new(read), now }
    }

    /// The files of the system, with the home directory and the variables that a program found.
    #[must_use]
    pub fn of_system(
        home: Option<PathBuf>,
        variables: BTreeMap<String, String>,
        now: SystemTime,
    ) -> Self {
        Self::new(home, variables, read, now)
    }

    /// A variable's value; an empty one is as good as none.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<File> {
        (self.read)(path)
    }

    pub(super) fn now(&self) -> SystemTime {
        self.now
    }

    /// A path under the home directory, if that is known.
    pub(super) fn at_home(&self, path: &str) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(path))
    }

    /// The path with `~` in front replaced by the home directory.
    pub(super) fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(path),
        }
    }
}

fn read(path: &Path) -> io::Result<File> {
    let text = std::fs::read_to_string(path)?;
    Ok(File { text, mode: mode(path)? })
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
