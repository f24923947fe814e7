//! Checks of the cloud: its API, resources and images.

use super::{Check, Facts};
use crate::failure::chain;
use crate::images::needs_image;
use crate::plan::Refusal;
use crate::site::Site;
use cloud_core::{
    Error, ErrorKind, Image, ImageFilter, ImageId, InstanceFilter, Limit, Provider, Shape,
};
use slurmconf::NodeDef;

/// Observed facts about the cloud.
#[derive(Debug)]
pub struct CloudFacts {
    /// Number of machines of this cluster, or the error of listing them.
    machines: Result<usize, String>,
    /// The resources that the configuration names, or what is wrong with them.
    pub resources: Vec<Result<String, String>>,
    /// The images of the cluster, or all images if one is configured.
    images: Result<Vec<Image>, String>,
    /// All images.
    listed: Vec<Image>,
    pub(super) limits: Result<Vec<Limit>, String>,
    pub(super) shapes: Result<Vec<Shape>, String>,
}

impl CloudFacts {
    /// Queries the cloud.
    pub async fn observe(cloud: &dyn Provider, site: &Site) -> Self {
        let ours = InstanceFilter::tagged(site.identity.tags());
        let machines = match cloud.list(&ours).await {
            // A cloud lists terminated machines for some hours.
            Ok(machines) => Ok(machines.iter().filter(|it| it.state.is_live()).count()),
            Err(error) => Err(unanswered(&error)),
        };
        let tags = site.identity.id().map(|id| [("cluster", id)].into());
        let filter = match (&site.image, tags) {
            (None, Some(tags)) => ImageFilter { tags, name: None },
            _ => ImageFilter::default(),
        };
        let text = |error: Error| chain(&error);
        let (mut images, mut listed) = (Ok(Vec::new()), Vec::new());
        if machines.is_ok() {
            images = cloud.images(&filter).await.map_err(text);
            listed = cloud.images(&ImageFilter::default()).await.unwrap_or_default();
        }
        Self {
            machines,
            resources: Vec::new(),
            images,
            listed,
            limits: cloud.limits().await.map_err(text),
            shapes: cloud.shapes().await.map_err(text),
        }
    }

    /// True if the cloud lists the machines of this cluster. If not, other queries would fail, too.
    pub(super) fn is_open(&self) -> bool {
        self.machines.is_ok()
    }

    pub(super) fn answers(&self, facts: &Facts<'_>, nodes: &[NodeDef]) -> Vec<Check> {
        let mut checks = Vec::new();
        match &self.machines {
            Ok(count) => {
                checks.push(Check::ok(format!(
                    "the cloud answers: {count} machines of this cluster"
                )));
                if facts.site.identity.is_by_name() {
                    checks.push(Check::warn(
                        "no cluster_id: machines are told by name alone, and two clusters in one compartment would take each \
                         other's; set cluster_id",
                    ));
                }
                checks.extend(self.default_image(facts, nodes));
                checks.extend(self.images_of_nodes(facts, nodes));
            }
            // Other errors have the same cause.
            Err(why) => return vec![Check::fail(why)],
        }
        let resource = |found: &Result<String, String>| match found {
            Ok(text) => Check::ok(text),
            Err(text) => Check::fail(text),
        };
        checks.extend(self.resources.iter().map(resource));
        checks
    }

    /// Checks the default image; nodes may have their own.
    fn default_image(&self, facts: &Facts<'_>, nodes: &[NodeDef]) -> Option<Check> {
        let images = match &self.images {
            Ok(images) => images,
            Err(why) => return Some(Check::fail(format!("images cannot be listed: {why}"))),
        };
        let site = facts.site;
        let listed = |id: &ImageId| images.iter().find(|image| image.id == *id);
        let Some(id) = &site.image else {
            return newest_image(facts, images, nodes);
        };
        Some(match listed(id) {
            Some(image) if image.available => {
                let others = site.shape_images.iter();
                let others =
                    others.map(|(word, image)| format!(", and for shapes with {word} {image}"));
                Check::ok(format!("image {id}{}", others.collect::<String>()))
            }
            None if (facts.images.is_id)(id.as_str()) => Check::warn(format!(
                "image {id} is not in the image list; check `image_id` (images of other compartments are not listed)"
            )),
            _ => {
                Check::fail(format!("there is no image {id}, or it is not ready; change image_id"))
            }
        })
    }

    /// Checks the images that nodes name.
    fn images_of_nodes(&self, facts: &Facts<'_>, nodes: &[NodeDef]) -> Vec<Check> {
        let misnamed = facts.images.misnamed(&self.listed, nodes).into_iter();
        let fail = |(name, count)| match count {
            0 => format!(
                "nodes are to have the image {name}, and the cloud has none of that name that is ready; change `image` in \
                 limits.yaml"
            ),
            count => format!(
                "nodes are to have the image {name}, and {count} are called so; set `image` in limits.yaml to the id of one"
            ),
        };
        misnamed.map(fail).map(Check::fail).collect()
    }
}

/// The newest image of the cluster, if images have a cluster tag.
fn newest_image(facts: &Facts<'_>, images: &[Image], nodes: &[NodeDef]) -> Option<Check> {
    let by_cluster = facts.site.identity.id().is_some();
    if let Some(image) = facts.images.preferred(images, "").filter(|_| by_cluster) {
        let Image { name, id, .. } = image;
        return Some(Check::ok(format!("image {name} ({id}), the newest of this cluster")));
    }
    // The error of startnode for every node without an image of its own.
    let mut nodes = facts.slurm.config.nodes.iter().chain(nodes);
    let why = Refusal::NoImage;
    let help = "set image_id, or set cluster_id and tag an image with it";
    let needed = nodes.any(|node| needs_image(facts.site, node));
    needed.then(|| Check::fail(format!("{why}; {help}")))
}

/// A cloud that refuses is not the same as one that does not answer.
fn unanswered(error: &Error) -> String {
    let text = chain(error);
    match error.kind() {
        kind if kind.is_transient() || kind.is_about_the_place() => {
            format!("the cloud does not answer: {text}")
        }
        ErrorKind::Forbidden | ErrorKind::NotFound => format!(
            "the cloud refuses this host: {text}; give it the permissions in docs/nodes.md, and allow a new policy some minutes"
        ),
        _ => text,
    }
}
