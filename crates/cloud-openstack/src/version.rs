//! Nova's microversions: the requested one, and the limitations of older clouds.

use cloud_core::http::HeaderValue;
use std::fmt;
use std::str::FromStr;

/// A microversion of Nova's API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Microversion(u32, u32);

/// The microversion of all requests.
pub(crate) const PINNED: Microversion = Microversion(2, 90);
/// The oldest one with tags in the call that creates a server.
pub(crate) const LEAST: Microversion = Microversion(2, 52);
/// The oldest one that can rebuild a boot volume.
pub(crate) const VOLUME_REBUILD: Microversion = Microversion(2, 93);

/// The limitations below each microversion.
const LOSSES: &[(Microversion, &str)] = &[
    (Microversion(2, 61), "shapes show no GPUs"),
    (Microversion(2, 67), "a boot volume cannot have a type"),
    (VOLUME_REBUILD, "an instance that boots from a volume cannot be rebuilt"),
];

impl Microversion {
    /// Older than all microversions.
    pub(crate) const NONE: Self = Self(2, 0);

    pub(crate) fn header(self) -> HeaderValue {
        let text = format!("compute {self}");
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("compute 2.90"))
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl FromStr for Microversion {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |digits: &str| digits.parse().map_err(|_cause| ());
        Ok(Self(number(major)?, number(minor)?))
    }
}

/// The microversions for a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) pinned: Microversion,
    pub(crate) rebuild: Microversion,
}

impl Versions {
    /// The microversions for a cloud with this maximum; none if it is too old.
    pub(crate) fn on(newest: Microversion) -> Option<Self> {
        let versions =
            Self { pinned: newest.min(PINNED), rebuild: newest.min(VOLUME_REBUILD).max(LEAST) };
        (newest >= LEAST).then_some(versions)
    }

    /// True if servers that boot from a volume can be rebuilt.
    pub(crate) fn rebuild_volumes(self) -> bool {
        self.rebuild >= VOLUME_REBUILD
    }

    /// Warnings about the limitations of an old cloud.
    pub(crate) fn warning(self) -> Option<String> {
        let lost = LOSSES.iter().filter(|(needed, _)| self.rebuild < *needed);
        let lost: Vec<&str> = lost.map(|(_, what)| *what).collect();
        let (newest, all) = (self.rebuild, VOLUME_REBUILD);
        let lost = (!lost.is_empty()).then(|| lost.join("; "))?;
        Some(format!("its Nova offers microversion {newest} at most, not {all}: {lost}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_clouds_cost_something() {
        let versions = |text: &str| Versions::on(text.parse().unwrap());
        assert_eq!(versions("2.51"), None);
        let new = versions("2.104").unwrap();
        assert_eq!(
            (new.pinned.to_string(), new.rebuild.to_string()),
            ("2.90".into(), "2.93".into())
        );
        assert_eq!(new.warning(), None);
        assert!(new.rebuild_volumes());
        let yoga = versions("2.90").unwrap();
        assert!(!yoga.rebuild_volumes());
        assert_eq!(
            yoga.warning().unwrap(),
            "its Nova offers microversion 2.90 at most, not 2.93: \
             an instance that boots from a volume cannot be rebuilt"
        );
        assert_eq!(versions("2.93").unwrap().warning(), None);
        let rocky = versions("2.65").unwrap();
        assert_eq!(
            rocky.warning().unwrap(),
            "its Nova offers microversion 2.65 at most, not 2.93: a boot volume cannot have a type; \
             an instance that boots from a volume cannot be rebuilt"
        );
    }

    #[test]
    fn what_is_no_microversion_is_none() {
        for text in ["", "2", "2.", ".90", "2.x", "latest", "2.1.1", "-1.2"] {
            assert_eq!(text.parse::<Microversion>(), Err(()), "{text}");
        }
    }
}
