//! A Slurm release in the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// A Slurm release.
#[derive(Clone, Debug)]
pub struct Release {
    dir: PathBuf,
    version: SlurmVersion,
}

impl Release {
    /// The release of a series such as `24.11`, or of what `SLURM_VERSION` says.
    #[must_use]
    pub fn find(series: &str) -> Self {
        let text = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let series = text("SLURM_VERSION").unwrap_or_else(|| series.to_owned());
        let path = |name: &str| text(name).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        let dir = path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache).join("slurm").join(&series);
        let version = fs::read_to_string(dir.join("version")).unwrap_or_else(|error| {
            panic!(
                "no Slurm {series} in {}: {error}\nrun tests/slurm/fetch {series}",
                dir.display()
            )
        });
        Self { dir, version: version.parse().expect("the version that fetch wrote") }
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> SlurmVersion {
        self.version
    }

    /// Where it is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
