//! Whether the image of all nodes is there, and those that nodes have by name.

use super::Point::{self, Odd, Well, Wrong};
use crate::context::Context;
use crate::output::chain;
use crate::programs::finish::inputs::Inputs;
use crate::wiring;
use cloud_core::{Image, ImageFilter, ImageId};
use provision::plan::Refusal;
use slurmconf::NodeDef;
use std::collections::BTreeSet;

/// The image that startnode would take; nodes may have their own.
pub(super) async fn default(context: &Context, inputs: Option<&Inputs>) -> Option<Point> {
    let tags = context.site.identity.id().map(|id| [("cluster", id)].into());
    let filter = match (&context.site.image, tags) {
        (None, Some(tags)) => ImageFilter { tags, name: None },
        _ => ImageFilter::default(),
    };
    let images = match context.cloud.images(&filter).await {
        Ok(images) => images,
        Err(error) => return Some(Wrong(format!("images cannot be listed: {}", chain(&error)))),
    };
    let is_listed = |id: &ImageId| images.iter().any(|image| image.id == *id);
    let mut ready = images.iter().filter(|image| image.available);
    match &context.site.image {
        Some(id) if ready.any(|image| image.id == *id) => {
            let others = context.site.shape_images.iter();
            let others =
                others.map(|(word, image)| format!(", and for shapes with {word} {image}"));
            Some(Well(format!("image {id}{}", others.collect::<String>())))
        }
        Some(id) if wiring::is_image_id(id.as_str()) && !is_listed(id) => Some(Odd(format!(
            "image {id} is not listed, as some of other projects or compartments are not, and cannot be looked at: make sure \
             that image_id is right"
        ))),
        Some(id) => {
            Some(Wrong(format!("there is no image {id}, or it is not ready; change image_id")))
        }
        // Without a cluster_id these are all there are, and startnode takes none of them.
        None => match newest(context, &images) {
            Some(image) => Some(Well(format!(
                "image {} ({}), the newest of this cluster",
                image.name, image.id
            ))),
            None => imageless(context, inputs),
        },
    }
}

/// The images that nodes have by name; that images cannot be listed is said already.
pub(super) async fn of_nodes(context: &Context, inputs: Option<&Inputs>) -> Vec<Point> {
    let nodes = inputs.map_or(&[][..], |inputs| &inputs.cluster.nodes);
    if named(nodes).is_empty() {
        return Vec::new();
    }
    let listed = context.cloud.images(&ImageFilter::default()).await;
    listed.map(|listed| points(&listed, nodes)).unwrap_or_default()
}

/// The newest of this cluster, if images tell whose they are.
fn newest<'a>(context: &Context, images: &'a [Image]) -> Option<&'a Image> {
    context.site.identity.id()?;
    wiring::preferred(images, &context.settings.cloud, "")
}

/// What startnode says of every node that names no image of its own.
fn imageless(context: &Context, inputs: Option<&Inputs>) -> Option<Point> {
    let new = inputs.iter().flat_map(|inputs| &inputs.cluster.nodes);
    let mut nodes = context.slurm.config.nodes.iter().chain(new);
    let needs = nodes.any(|node| wiring::needs_image(&context.site, node));
    let why = Refusal::NoImage;
    needs.then(|| Wrong(format!("{why}; set image_id, or set cluster_id and tag an image with it")))
}

/// The images that these nodes have by name. An id may be that of an image that is not listed.
fn named(nodes: &[NodeDef]) -> BTreeSet<&str> {
    let names = nodes.iter().filter_map(|node| node.features.as_ref()?.value("image"));
    names.filter(|name| !wiring::is_image_id(name)).collect()
}

/// What no image, or more than one, is called by.
fn points(listed: &[Image], nodes: &[NodeDef]) -> Vec<Point> {
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
    use cloud_core::ImageName;

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
