//! A Slurm release in the cache that `tests/slurm/fetch` fills.

use slurmconf::SlurmVersion;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The series that scenarios run on which tell them apart.
pub const ALL: [&str; 3] = ["22.05", "24.11", "26.05"];

/// The series of all other scenarios.
pub const USUAL: &str = "24.11";

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
        let series = text("SLURM_VERSION").unwrap_or_else(|| series.to_owned());
        let dir = Self::cache().join("slurm").join(&series);
        let version = fs::read_to_string(dir.join("version")).unwrap_or_else(|error| {
            let missing = dir.display();
            panic!("no Slurm {series} in {missing}: {error}\nrun tests/slurm/fetch {series}")
        });
        // A suite of Debian moves on; what it has now is as good, and said.
        if !version.starts_with(&series) {
            say(&format!("Slurm {series} has moved on: this is {}", version.trim()));
        }
        Self { dir, version: version.parse().expect("the version that fetch wrote") }
    }

    /// Where the project keeps what it has fetched.
    pub(crate) fn cache() -> PathBuf {
        let path = |name: &str| text(name).map(PathBuf::from);
        let home = || path("HOME").expect("HOME is set").join(".cache");
        let cache = || path("XDG_CACHE_HOME").unwrap_or_else(home).join("slurm-elastic");
        path("SLURM_ELASTIC_CACHE").unwrap_or_else(cache)
    }

    /// Its version.
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
}

/// A variable of the environment, if it says something.
fn text(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

#[expect(clippy::print_stderr, reason = "for whoever reads the test's output")]
fn say(text: &str) {
    eprintln!("{text}");
}
