//! The description of OCI.

use crate::LaunchOptions;
use crate::launch::is_host_name;
use crate::shapes::SHAPES;
use cloud_core::{Architecture, Capabilities, Counted, Description, ShapeLimit, ShapeName};

impl LaunchOptions {
    /// Describes OCI for these launch options, without a request.
    ///
    /// ```
    /// let oci = cloud_oci::LaunchOptions::new("ocid1.compartment.x").describe();
    /// assert!((oci.is_id)("ocid1.image.oc1.phx.aaaa") && !(oci.is_id)("rocky-9.5"));
    /// assert_eq!(oci.zone_term, "availability domain");
    /// ```
    #[must_use]
    pub fn describe(&self) -> Description {
        let mut description = Description::new("OCI");
        description.capabilities = Capabilities::all();
        description.is_id = |text| text.starts_with("ocid1.");
        description.zone_term = "availability domain";
        description.zone_help =
            Some("where that is a number, set ad_root to what these have before their number");
        description.zone_feature = "ad";
        description.needs_zone = true;
        description.is_host_name = self.hostname.then_some(is_host_name);
        description.architectures = ["x86_64", "aarch64"].map(Architecture::new).to_vec();
        description.built_in_shapes = Some(SHAPES);
        description.limit_of = limit_of;
        description.addresses_apart = true;
        description
    }
}

/// The limit that counts the cores of a shape: `standard2-core-count` for `VM.Standard2.4`.
fn limit_of(shape: &ShapeName) -> Option<ShapeLimit> {
    let name = format!("{}-core-count", family(shape.as_str())?);
    Some(ShapeLimit { name, counts: Counted::Cores })
}

/// The name of a series of shapes in limits: `standard2` for `VM.Standard2.4`, `standard-e4` for `VM.Standard.E4.Flex` of
/// any size.
fn family(shape: &str) -> Option<String> {
    let kind = shape.strip_prefix("VM.").or_else(|| shape.strip_prefix("BM."))?;
    let flexible = kind.split_once(".Flex").map(|(kind, _)| kind);
    let kind = flexible.or_else(|| kind.rsplit_once('.').map(|(kind, _)| kind))?;
    Some(kind.to_lowercase().replace('.', "-").replace("denseio", "dense-io"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_a_kind_have_one_limit() {
        for (shape, kind) in [
            ("VM.Standard2.4", Some("standard2")),
            ("BM.Standard.E4.128", Some("standard-e4")),
            ("VM.Standard.E4.Flex.16.256", Some("standard-e4")),
            ("VM.DenseIO2.8", Some("dense-io2")),
            ("m1.large", None),
        ] {
            let limit = limit_of(&ShapeName::new(shape)).map(|limit| limit.name);
            let expected = kind.map(|kind| format!("{kind}-core-count"));
            assert_eq!(limit, expected, "{shape}");
        }
    }
}
