//! Releases of Slurm, and how they differ.

use crate::error::{Error, Problem};
use std::{fmt, str::FromStr};

/// A Slurm release, such as 24.11.5.
///
/// ```
/// use slurmconf::SlurmVersion;
///
/// let version: SlurmVersion = "slurm-wlm 22.05.8".parse()?;
/// assert!(version < SlurmVersion::new(24, 11));
/// assert_eq!(version.to_string(), "22.05.8");
/// # Ok::<(), slurmconf::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlurmVersion {
    year: u16,
    month: u16,
    patch: u16,
}

impl SlurmVersion {
    /// The first release of a series.
    #[must_use]
    pub const fn new(year: u16, month: u16) -> Self {
        Self { year, month, patch: 0 }
    }

    /// The release with this number in the same series.
    #[must_use]
    pub const fn patch(self, patch: u16) -> Self {
        Self { patch, ..self }
    }

    /// True if `scontrol reconfigure` may change the set of nodes; before 23.11 that kills slurmctld.
    #[must_use]
    pub fn reconfigures_nodes(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if `SlurmctldParameters=cloud_reg_addrs` and `PrivateData=cloud` must be set; since 23.11 both are the
    /// default.
    #[must_use]
    pub fn needs_cloud_parameters(self) -> bool {
        self < Self::new(23, 11)
    }

    /// True if a `PowerAction` can give a program arguments.
    #[must_use]
    pub fn has_power_actions(self) -> bool {
        self >= Self::new(26, 5)
    }

    /// True if a job can be requeued at once: `sbatch --requeue=expedite`.
    #[must_use]
    pub fn has_expedited_requeue(self) -> bool {
        self >= Self::new(25, 11)
    }

    /// True if an instance id can be set for a node; 22.05 refuses the whole request.
    #[must_use]
    pub fn knows_instance_ids(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if a list of instance ids is paired with a list of nodes; before 25.11.6 every node gets the whole list.
    #[must_use]
    pub fn pairs_instance_ids(self) -> bool {
        self >= Self::new(25, 11).patch(6)
    }

    /// True if a node can be put into another place of a topology at run time.
    #[must_use]
    pub fn moves_nodes_in_topologies(self) -> bool {
        self >= Self::new(25, 5)
    }

    /// True if a job with `--reboot` calls `ResumeProgram` for an elastic node that is up; since 23.02 nothing is called.
    #[must_use]
    pub fn reboots_elastic_nodes(self) -> bool {
        self < Self::new(23, 2)
    }

    /// True if a power-down resets the address of a cloud node to its name.
    #[must_use]
    pub fn resets_addresses(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if each item of `SuspendExcNodes` has its own count, and may be a node set or `ALL`. Before 23.11 a count
    /// covers all items before it, and items are nodes.
    #[must_use]
    pub fn excludes_item_by_item(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if a relative `Include` in an included file is relative to that file, and not to slurm.conf. Observed on
    /// 22.05, but not on 24.11 and 26.05; 23.11 rewrote the parser.
    #[must_use]
    pub fn includes_from_including_file(self) -> bool {
        self < Self::new(23, 11)
    }
}

impl FromStr for SlurmVersion {
    type Err = Error;

    /// Reads `24.11`, `24.11.5`, or the output of `slurmctld -V`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || Error::from(Problem::BadVersion(text.to_owned()));
        let word = text.split_whitespace().last().ok_or_else(bad)?;
        let mut parts = word.splitn(3, '.');
        let mut number = || parts.next()?.parse::<u16>().ok();
        let (year, month) = number().zip(number()).ok_or_else(bad)?;
        // The rest may be a pre-release such as `0rc1`.
        let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
        let patch = parts.next().and_then(|rest| digits(rest).parse().ok()).unwrap_or(0);
        Ok(Self { year, month, patch })
    }
}

impl fmt::Display for SlurmVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}.{}", self.year, self.month, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_releases_are_compared() {
        assert!(!SlurmVersion::new(25, 11).patch(5).pairs_instance_ids());
        assert!(SlurmVersion::new(25, 11).patch(6).pairs_instance_ids());
        assert!(!SlurmVersion::new(22, 5).patch(8).knows_instance_ids());
    }

    #[test]
    fn versions_are_read_and_ordered() {
        let order = ["22.05.8", "23.11", "24.11.5", "26.05.0rc1", "slurm 26.05.5"];
        let read: Vec<SlurmVersion> = order.iter().map(|text| text.parse().unwrap()).collect();
        assert!(read.is_sorted_by(|a, b| a < b), "{read:?}");
        for bad in ["", "24", "slurm", "24.x"] {
            assert!(bad.parse::<SlurmVersion>().is_err(), "{bad}");
        }
    }
}
