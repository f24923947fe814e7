//! Regions, their short names, and the domains of their realms.

use std::fmt;

/// A region and the domain that its services are under.
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
    /// The region with this name, or with this short name, which the metadata service uses.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        REALMS.iter().find_map(|(domain, regions)| {
            let (region, _) =
                regions.iter().find(|(region, short)| *region == name || *short == name)?;
            Some(Self::in_realm(*region, *domain))
        })
    }

    /// A region that this program need not know, under the domain of its realm.
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

    /// The known name that is most like this one, for a hint.
    #[must_use]
    pub fn nearest(name: &str) -> &'static str {
        let names = REALMS.iter().flat_map(|(_, regions)| regions.iter().map(|(name, _)| *name));
        names.min_by_key(|known| distance(known, name)).unwrap_or_default()
    }

    /// Where the compute, network and work request services are.
    pub(crate) fn core(&self) -> String {
        format!("https://iaas.{}.{}", self.name, self.domain)
    }

    pub(crate) fn identity(&self) -> String {
        format!("https://identity.{}.oci.{}", self.name, self.domain)
    }

    pub(crate) fn limits(&self) -> String {
        format!("https://limits.{}.oci.{}", self.name, self.domain)
    }

    /// Where a certificate is exchanged for a token.
    pub(crate) fn auth(&self) -> String {
        format!("https://auth.{}.{}", self.name, self.domain)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// How many letters have to be changed, added or removed to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (above, left) in a.chars().enumerate() {
        let mut diagonal = above;
        let mut before = above + 1;
        let mut next = vec![before];
        for (old, letter) in row.iter().skip(1).zip(b.chars()) {
            before = (diagonal + usize::from(left != letter)).min(old + 1).min(before + 1);
            next.push(before);
            diagonal = *old;
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// The domain of each realm, and its regions with their short names, as of November 2026; for newer ones an operator names
/// the realm.
const REALMS: &[(&str, &[(&str, &str)])] = &[
    (
        "oraclecloud.com", // oc1
        &[
            ("af-casablanca-1", "lej"),
            ("af-johannesburg-1", "jnb"),
            ("ap-batam-1", "hsg"),
            ("ap-chuncheon-1", "yny"),
            ("ap-delhi-1", "onm"),
            ("ap-hyderabad-1", "hyd"),
            ("ap-kulai-2", "jbp"),
            ("ap-melbourne-1", "mel"),
            ("ap-mumbai-1", "bom"),
            ("ap-osaka-1", "kix"),
            ("ap-seoul-1", "icn"),
            ("ap-singapore-1", "sin"),
            ("ap-singapore-2", "xsp"),
            ("ap-sydney-1", "syd"),
            ("ap-tokyo-1", "nrt"),
            ("ca-montreal-1", "yul"),
            ("ca-toronto-1", "yyz"),
            ("eu-amsterdam-1", "ams"),
            ("eu-frankfurt-1", "fra"),
            ("eu-madrid-1", "mad"),
            ("eu-madrid-3", "orf"),
            ("eu-marseille-1", "mrs"),
            ("eu-milan-1", "lin"),
            ("eu-paris-1", "cdg"),
            ("eu-stockholm-1", "arn"),
            ("eu-turin-1", "nrq"),
            ("eu-zurich-1", "zrh"),
            ("il-jerusalem-1", "mtz"),
            ("me-abudhabi-1", "auh"),
            ("me-dubai-1", "dxb"),
            ("me-jeddah-1", "jed"),
            ("me-riyadh-1", "ruh"),
            ("mx-monterrey-1", "mty"),
            ("mx-queretaro-1", "qro"),
            ("sa-bogota-1", "bog"),
            ("sa-santiago-1", "scl"),
            ("sa-saopaulo-1", "gru"),
            ("sa-valparaiso-1", "vap"),
            ("sa-vinhedo-1", "vcp"),
            ("uk-cardiff-1", "cwl"),
            ("uk-london-1", "lhr"),
            ("us-ashburn-1", "iad"),
            ("us-chicago-1", "ord"),
            ("us-phoenix-1", "phx"),
            ("us-saltlake-2", "aga"),
            ("us-sanjose-1", "sjc"),
        ],
    ),
    (
        "oraclegovcloud.com", // oc2
        &[("us-langley-1", "lfi"), ("us-luke-1", "luf")],
    ),
    (
        "oraclegovcloud.com", // oc3
        &[("us-gov-ashburn-1", "ric"), ("us-gov-chicago-1", "pia"), ("us-gov-phoenix-1", "tus")],
    ),
    (
        "oraclegovcloud.uk", // oc4
        &[("uk-gov-cardiff-1", "brs"), ("uk-gov-london-1", "ltn")],
    ),
    (
        "oraclecloud8.com", // oc8
        &[("ap-chiyoda-1", "nja"), ("ap-ibaraki-1", "ukb")],
    ),
    (
        "oraclecloud9.com", // oc9
        &[("me-dcc-muscat-1", "mct"), ("me-ibri-1", "ibr")],
    ),
    (
        "oraclecloud10.com", // oc10
        &[("ap-dcc-canberra-1", "wga")],
    ),
    (
        "oraclecloud14.com", // oc14
        &[
            ("eu-dcc-dublin-1", "ork"),
            ("eu-dcc-dublin-2", "snn"),
            ("eu-dcc-milan-1", "bgy"),
            ("eu-dcc-milan-2", "mxp"),
            ("eu-dcc-rating-1", "dus"),
            ("eu-dcc-rating-2", "dtm"),
        ],
    ),
    (
        "oraclecloud15.com", // oc15
        &[("ap-dcc-gazipur-1", "dac")],
    ),
    (
        "oraclecloud.eu", // oc19
        &[("eu-frankfurt-2", "str"), ("eu-madrid-2", "vll")],
    ),
    (
        "oraclecloud20.com", // oc20
        &[("eu-jovanovac-1", "beg")],
    ),
    (
        "oraclecloud21.com", // oc21
        &[("me-alrayyan-1", "vve"), ("me-dcc-doha-1", "doh")],
    ),
    (
        "oraclecloud23.com", // oc23
        &[("us-somerset-1", "ebb"), ("us-thames-1", "ebl")],
    ),
    (
        "oraclecloud24.com", // oc24
        &[("eu-crissier-1", "avf"), ("eu-dcc-zurich-1", "avz")],
    ),
    (
        "oraclecloud26.com", // oc26
        &[("me-abudhabi-3", "ahu"), ("me-alain-1", "rba")],
    ),
    (
        "oraclecloud29.com", // oc29
        &[("me-abudhabi-2", "rkt"), ("me-abudhabi-4", "shj")],
    ),
    (
        "oraclecloud35.com", // oc35
        &[("ap-chuncheon-2", "bno"), ("ap-seoul-2", "dtz"), ("ap-suwon-1", "dln")],
    ),
    (
        "oraclecloud42.com", // oc42
        &[("us-ashburn-2", "yxj"), ("us-newark-1", "pgc")],
    ),
    (
        "oraclecloud51.com", // oc51
        &[("eu-budapest-1", "jsk")],
    ),
    (
        "oraclecloud52.com", // oc52
        &[("sa-riodejaneiro-1", "hnw")],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_known_once() {
        let names = REALMS.iter().flat_map(|(_, regions)| regions.iter());
        let names: Vec<&str> = names.flat_map(|(name, short)| [*name, *short]).collect();
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
    fn a_slip_of_the_pen_is_found() {
        for (slip, meant) in [("uk-lodnon-1", "uk-london-1"), ("us-pheonix-1", "us-phoenix-1")] {
            assert_eq!(Region::nearest(slip), meant);
        }
    }
}
