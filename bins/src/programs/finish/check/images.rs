//! Whether images that nodes have by name are there.

use super::Point::{self, Wrong};
use crate::wiring;
use cloud_core::Image;
use slurmconf::NodeDef;
use std::collections::BTreeSet;

/// The images that these nodes have by name. An id may be that of an image that is not listed.
pub(super) fn named(nodes: &[NodeDef]) -> BTreeSet<&str> {
    let names = nodes.iter().filter_map(|node| node.features.as_ref()?.value("image"));
    names.filter(|name| !wiring::is_image_id(name)).collect()
}

/// What no image, or more than one, is called by.
pub(super) fn points(listed: &[Image], nodes: &[NodeDef]) -> Vec<Point> {
    let wrong = |name: &str| {
        let called = |image: &&Image| image.available && image.name.as_str() == name;
        match listed.iter().filter(called).count() {
            1 => None,
            0 => Some(format!(
                "nodes are to have the image {name}, and the cloud has none of that name that is ready; change `image` in \
                 limits.yaml"
            )),
            count => Some(format!(
                "nodes are to have the image {name}, and {count} are called so; set `image` in limits.yaml to the id of one"
            )),
        }
    };
    named(nodes).into_iter().filter_map(wrong).map(Wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_core::{ImageId, ImageName};

    #[test]
    fn a_mistyped_image_of_a_group_was_all_well_until_a_node_started() {
        let image = |id: &str, name: &str, available| {
            let mut image = Image::new(ImageId::new(id), ImageName::new(name));
            image.available = available;
            image
        };
        let listed = [
            image("i-1", "arm", true),
            image("i-2", "gpu", true),
            image("i-3", "gpu", true),
            image("i-4", "coming", false),
        ];
        for (features, expected) in [
            ("shape=s", None),
            ("shape=s,image=arm", None),
            ("shape=s,image=ocid1.image.oc1.phx.other", None),
            ("shape=s,image=amr", Some("none of that name")),
            ("shape=s,image=coming", Some("none of that name")),
            ("shape=s,image=gpu", Some("2 are called so")),
        ] {
            let text = format!("NodeName=n[1-2] State=CLOUD Features={features}");
            let found = points(&listed, &[text.parse().unwrap()]);
            match (&found[..], expected) {
                ([], None) => {}
                ([Wrong(text)], Some(words)) if text.contains(words) => {}
                _ => panic!("{features}"),
            }
        }
    }
}
