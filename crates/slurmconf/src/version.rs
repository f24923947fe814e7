//! Slurm's versions, and what differs between them for a configuration.

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

    /// True if `scontrol reconfigure` may change the set of nodes.
    ///
    /// Before 23.11 slurmctld dies of it and loses what it had not saved.
    #[must_use]
    pub fn reconfigures_nodes(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if `SlurmctldParameters=cloud_reg_addrs` and `PrivateData=cloud` must be said.
    ///
    /// Since 23.11 both are what happens anyway, and the first is called defunct in the log.
    #[must_use]
    pub fn needs_cloud_parameters(self) -> bool {
        self < Self::new(23, 11)
    }

    /// True if a `PowerAction` can give a program arguments.
    #[must_use]
    pub fn has_power_actions(self) -> bool {
        self >= Self::new(26, 5)
    }

    /// True if a node can be told its instance id and type.
    ///
    /// 22.05 refuses the whole request; the releases between it and 23.11 were not tried.
    #[must_use]
    pub fn knows_instance_ids(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if a list of instance ids is given to a list of nodes in pairs.
    ///
    /// Before 25.11.6 every node gets the whole list as its id.
    #[must_use]
    pub fn pairs_instance_ids(self) -> bool {
        self >= Self::new(25, 11).patch(6)
    }

    /// True if a job with `--reboot` has the resume program called for an elastic node that is up.
    ///
    /// Since 23.02 such a job runs, and nobody is called.
    #[must_use]
    pub fn reboots_elastic_nodes(self) -> bool {
        self < Self::new(23, 2)
    }

    /// True if the address of a cloud node goes back to its name when the node is powered down.
    #[must_use]
    pub fn resets_addresses(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if each item of `SuspendExcNodes` stands for itself, and may be a node set or `ALL`.
    ///
    /// Before 23.11 a count is one of all the items before it, and only nodes are known there.
    #[must_use]
    pub fn excludes_item_by_item(self) -> bool {
        self >= Self::new(23, 11)
    }

    /// True if a relative `Include` inside an included file starts from that file's directory.
    ///
    /// 22.05 does that; 24.11 and 26.05 start from slurm.conf's. 23.11, which rewrote the reading of
    /// configurations, is taken for the change.
    #[must_use]
    pub fn includes_from_including_file(self) -> bool {
        self < Self::new(23, 11)
    }
}

impl FromStr for SlurmVersion {
    type Err = Error;

    /// Reads `24.11`, `24.11.5`, or what `slurmctld -V` prints.
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
    fn what_a_patch_brought_is_told_from_the_series() {
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
