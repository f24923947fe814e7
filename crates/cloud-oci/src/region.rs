//! Regions, their short names, and the domains of their realms.

use std::fmt;

/// A region and the domain of its services.
///
/// ```
/// use cloud_oci::Region;
///
/// let london = Region::find("lhr").unwrap();
/// assert_eq!(london.name(), "uk-london-1");
/// assert_eq!(london.domain(), "oraclecloud.com");
/// assert_eq!(Region::find("us-luke-1").unwrap().domain(), "oraclegovcloud.com");
/// assert!(Region::find("us-atlantis-1").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    name: String,
    domain: String,
}

impl Region {
    /// Finds a region by name, or by short name as in the metadata service.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        let row = rows().find(|row| row.name == name || row.short == name)?;
        Some(Self::in_realm(row.name, row.domain))
    }

    /// Creates a region that is not built in, with the domain of its realm.
    #[must_use]
    pub fn in_realm(name: impl Into<String>, domain: impl Into<String>) -> Self {
        Self { name: name.into(), domain: domain.into() }
    }

    /// The name, such as `uk-london-1`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The domain, such as `oraclecloud.com`.
    #[must_use]
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The known name most similar to this one, for a hint.
    #[must_use]
    pub fn nearest(name: &str) -> &'static str {
        let names = rows().map(|row| row.name);
        names.min_by_key(|known| strsim::levenshtein(known, name)).unwrap_or_default()
    }

    /// The address of the compute, network and work request services.
    pub(crate) fn core(&self) -> String {
        format!("https://iaas.{}.{}", self.name, self.domain)
    }

    pub(crate) fn identity(&self) -> String {
        format!("https://identity.{}.oci.{}", self.name, self.domain)
    }

    pub(crate) fn limits(&self) -> String {
        format!("https://limits.{}.oci.{}", self.name, self.domain)
    }

    /// The address for exchanging a certificate for a token.
    pub(crate) fn auth(&self) -> String {
        format!("https://auth.{}.{}", self.name, self.domain)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The built-in regions.
const TABLE: &str = include_str!("regions.txt");

/// A row of the table.
struct Row {
    domain: &'static str,
    name: &'static str,
    short: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    TABLE.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        Some(Row { domain: fields.next()?, name: fields.next()?, short: fields.next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_known_once() {
        let names: Vec<&str> = rows().flat_map(|row| [row.name, row.short]).collect();
        assert_eq!(names.len(), 2 * 85, "a row that is not whole is left out");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn hosts_follow_region_and_realm() {
        let phoenix = Region::find("PHX").unwrap();
        assert_eq!(phoenix.core(), "https://iaas.us-phoenix-1.oraclecloud.com");
        assert_eq!(phoenix.limits(), "https://limits.us-phoenix-1.oci.oraclecloud.com");
        assert_eq!(phoenix.auth(), "https://auth.us-phoenix-1.oraclecloud.com");
        let cardiff = Region::find("uk-gov-cardiff-1").unwrap();
        assert_eq!(cardiff.identity(), "https://identity.uk-gov-cardiff-1.oci.oraclegovcloud.uk");
    }

    #[test]
    fn a_misspelt_region_is_corrected() {
        for (slip, meant) in [("uk-lodnon-1", "uk-london-1"), ("us-pheonix-1", "us-phoenix-1")] {
            assert_eq!(Region::nearest(slip), meant);
        }
    }
}
