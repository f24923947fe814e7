//! A Slurm release in the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// A Slurm release.
#[derive(Clone, Debug)]
pub struct Release {
    dir: PathBuf,
    version: SlurmVersion,
}

impl Release {
    /// The release of a series such as `24.11`.
    #[must_use]
    pub fn find(series: &str) -> Self {
        let dir = Self::cache().join("slurm").join(series);
        let version = fs::read_to_string(dir.join("version")).unwrap_or_else(|error| {
            let missing = dir.display();
            panic!("no Slurm {series} in {missing}: {error}\nrun tests/slurm/fetch {series}")
        });
        let version = version.parse().expect("the version that fetch wrote");
        Self { dir, version }
    }

    /// The cache directory of the project.
    #[must_use]
    pub fn cache() -> PathBuf {
        let path =
            |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache)
    }

    /// The version, which may be of a later series if Debian's suite has moved on.
    #[must_use]
    pub fn version(&self) -> SlurmVersion {
        self.version
    }

    /// True before 23.11, which can add nodes and addresses at a reconfigure.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.version < SlurmVersion::new(23, 11)
    }

    /// The directory of the release.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of scontrol and other commands.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// The value of `PluginDir`.
    #[must_use]
    pub fn plugin_dir(&self) -> PathBuf {
        self.dir.join("lib/slurm")
    }

    /// A command that starts a daemon.
    #[must_use]
    pub fn daemon(&self, program: &str, conf: &Path) -> Command {
        let mut command = Command::new(self.dir.join("sbin").join(program));
        command.env("SLURM_CONF", conf);
        command
    }

    /// A client command with a deadline; without a controller it would retry for minutes.
    #[must_use]
    pub fn client(&self, program: &str, conf: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg("60").arg(self.bin().join(program)).env("SLURM_CONF", conf);
        command
    }
}
