//! Launch tokens: the same for the same request, and only then.

use cloud_core::{ImageId, InstanceSpec, LaunchToken, Tags};
use std::fmt::Write as _;

/// The token of a launch: the beginning of the node's name, for people, and a digest of all that is asked.
///
/// `beside` is what the cloud's configuration adds to every launch.
pub(crate) fn of(spec: &InstanceSpec, beside: &str, generation: u32) -> Option<LaunchToken> {
    let mut digest = Digest::default();
    digest.field(beside);
    digest.field(spec.name.as_str());
    digest.field(&generation.to_string());
    digest.field(spec.shape.as_str());
    digest.field(spec.image.as_str());
    digest.field(spec.zone.as_ref().map_or("", |zone| zone.as_str()));
    digest.field(spec.fault_domain.as_ref().map_or("", |domain| domain.as_str()));
    digest.field(spec.subnet.as_ref().map_or("", |subnet| subnet.as_str()));
    digest.field(if spec.preemptible { "preemptible" } else { "" });
    for (key, value) in spec.tags.iter() {
        digest.field(key);
        digest.field(value);
    }
    for key in &spec.ssh_keys {
        digest.field(key);
    }
    if let Some(name) = &spec.keypair {
        digest.field(name);
    }
    // Only the digest of all of it together leaves this function.
    digest.field(spec.user_data.as_ref().map_or("", |data| data.expose().as_str()));
    let mut token: String = spec.name.as_str().chars().take(20).collect();
    write!(token, "-{generation}-{:032x}", digest.0).ok()?;
    LaunchToken::new(token).ok()
}

/// A digest of what a launch requests, but for its tags and its image, which may be replaced.
pub(crate) fn configuration(spec: &InstanceSpec, beside: &str) -> Option<LaunchToken> {
    let mut spec = spec.clone();
    spec.image = ImageId::new("");
    spec.tags = Tags::new();
    of(&spec, beside, 0)
}

/// FNV-1a of 128 bits: tokens are told apart by it, nothing is kept secret.
pub(crate) struct Digest(u128);

impl Default for Digest {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Digest {
    /// The digest of one text; the same in every release, unlike the hashes of the standard library.
    pub(crate) fn of(text: &str) -> u128 {
        let mut digest = Self::default();
        digest.field(text);
        digest.0
    }

    /// Adds a field with an end mark, so that `ab`, `c` and `a`, `bc` differ.
    fn field(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{FaultDomain, InstanceName, Secret, ShapeName, SubnetId, Zone};

    fn spec() -> InstanceSpec {
        let name = InstanceName::new("vm-standard-e4-flex-16-256-ad1-0001");
        InstanceSpec::new(name, ShapeName::new("shape"), ImageId::new("image"))
    }

    #[test]
    fn the_published_value_of_the_digest() {
        let mut digest = Digest::default();
        digest.0 = (digest.0 ^ u128::from(b'a')).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        assert_eq!(digest.0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn the_same_request_has_the_same_token() {
        assert_eq!(of(&spec(), "", 1), of(&spec(), "", 1));
        let token = of(&spec(), "", 1);
        assert!(token.is_some_and(|token| token.as_str().len() <= LaunchToken::LONGEST));
        assert!(of(&spec(), "", u32::MAX).is_some());
    }

    #[test]
    fn any_change_of_the_request_changes_the_token() {
        let edits: [fn(&mut InstanceSpec); 11] = [
            |spec| spec.name = InstanceName::new("vm-standard-e4-flex-16-256-ad1-0002"),
            |spec| spec.shape = ShapeName::new("other"),
            |spec| spec.image = ImageId::new("other"),
            |spec| spec.zone = Some(Zone::new("AD-1")),
            |spec| spec.fault_domain = Some(FaultDomain::new("AD-1")),
            |spec| spec.subnet = Some(SubnetId::new("AD-1")),
            |spec| spec.keypair = Some("AD-1".to_owned()),
            |spec| spec.preemptible = true,
            |spec| spec.ssh_keys = vec!["key".to_owned()],
            |spec| spec.user_data = Some(Secret::new("key".to_owned())),
            |spec| spec.tags = [("cluster", "blue")].into(),
        ];
        let mut tokens = vec![of(&spec(), "", 1), of(&spec(), "", 2), of(&spec(), "disk", 1)];
        for edit in edits {
            let mut other = spec();
            edit(&mut other);
            tokens.push(of(&other, "", 1));
        }
        let unlike: std::collections::HashSet<_> = tokens.iter().collect();
        assert_eq!(unlike.len(), tokens.len(), "{tokens:?}");
    }
}
