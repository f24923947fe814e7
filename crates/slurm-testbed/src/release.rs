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

    /// Where the project keeps what it has fetched.
    #[must_use]
    pub fn cache() -> PathBuf {
        let path =
            |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache)
    }

    /// Its version; another series than was asked for where Debian's suite has moved on.
    #[must_use]
    pub fn version(&self) -> SlurmVersion {
        self.version
    }

    /// True if it is older than 23.11, which has learnt to add nodes and addresses by itself.
    #[must_use]
    pub fn is_old(&self) -> bool {
        self.version < SlurmVersion::new(23, 11)
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where scontrol and the like are.
    #[must_use]
    pub fn bin(&self) -> PathBuf {
        self.dir.join("bin")
    }

    /// What slurm.conf must name, as the release does not lie where it was built to lie.
    #[must_use]
    pub fn plugin_dir(&self) -> PathBuf {
        self.dir.join("lib/slurm")
    }

    /// One of its daemons.
    #[must_use]
    pub fn daemon(&self, program: &str, conf: &Path) -> Command {
        let mut command = Command::new(self.dir.join("sbin").join(program));
        command.env("SLURM_CONF", conf);
        command
    }

    /// A client command; without a controller it would try for minutes.
    #[must_use]
    pub fn client(&self, program: &str, conf: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg("60").arg(self.bin().join(program)).env("SLURM_CONF", conf);
        command
    }
}
