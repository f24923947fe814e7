//! Finding Slurm's programs.

use crate::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The paths of Slurm's programs, all in one directory and so of one release.
///
/// ```
/// use slurmctl::Programs;
/// use std::path::Path;
///
/// let exists = |path: &Path| path.starts_with("/opt/slurm/bin");
/// let programs = Programs::find(&Programs::USUAL.map(Path::new), exists)?;
/// assert_eq!(programs.scontrol, Path::new("/opt/slurm/bin/scontrol"));
/// # Ok::<(), slurmctl::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// Queries and changes slurmctld.
    pub scontrol: PathBuf,
    /// Lists jobs.
    pub squeue: PathBuf,
    /// Submits jobs.
    pub sbatch: PathBuf,
    /// Lists jobs from accounting. It need not exist if nothing uses it.
    pub sacct: PathBuf,
}

impl Programs {
    /// The usual directories.
    pub const USUAL: [&str; 7] = [
        "/usr/bin",
        "/usr/local/bin",
        "/opt/slurm/bin",
        "/usr/local/slurm/bin",
        "/opt/slurm/current/bin",
        "/opt/software/slurm/bin",
        "/usr/sbin",
    ];

    /// Takes the programs from the first directory that has scontrol. `PATH` is ignored, because slurmctld starts its
    /// programs without one.
    pub fn find(directories: &[&Path], exists: impl Fn(&Path) -> bool) -> Result<Self> {
        let absolute = directories.iter().filter(|directory| directory.is_absolute());
        let place = |directory: &&&Path| exists(&directory.join("scontrol"));
        let Some(directory) = absolute.clone().find(place) else {
            let tried: Vec<String> = absolute.map(|path| path.display().to_string()).collect();
            let text = format!("not found in {}", tried.join(", "));
            return Err(Error::new(ErrorKind::Missing, "scontrol").because(text));
        };
        let here = |name: &str| {
            let path = directory.join(name);
            let text = format!("not found next to {}", directory.join("scontrol").display());
            if exists(&path) {
                Ok(path)
            } else {
                Err(Error::new(ErrorKind::Missing, name).because(text))
            }
        };
        let sacct = directory.join("sacct");
        Ok(Self {
            scontrol: here("scontrol")?,
            squeue: here("squeue")?,
            sbatch: here("sbatch")?,
            sacct,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_taken_from_the_first_directory_that_has_them() {
        let both = |path: &Path| path.starts_with("/a") || path.starts_with("/b");
        let found = Programs::find(
            &[Path::new("b"), Path::new("/none"), Path::new("/b"), Path::new("/a")],
            both,
        );
        assert_eq!(found.unwrap().squeue, Path::new("/b/squeue"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let none = Programs::find(&[Path::new("/a"), Path::new("/b")], |_| false).unwrap_err();
        assert_eq!(none.to_string(), "scontrol: not found in /a, /b");
        let incomplete = |path: &Path| !path.ends_with("squeue");
        let incomplete = Programs::find(&[Path::new("/a")], incomplete).unwrap_err();
        assert_eq!(incomplete.to_string(), "squeue: not found next to /a/scontrol");
        assert_eq!(incomplete.kind(), ErrorKind::Missing);
    }
}
