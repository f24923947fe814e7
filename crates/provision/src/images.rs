//! The images of new machines: by id, by name, or the newest of the cluster.

use crate::plan::ImageWish;
use crate::site::Site;
use cloud_core::{Image, ImageFilter, ImageId, ImageName, Provider, Result, Tags};
use hostlist::NodeName;
use slurmconf::{Config, NodeDef};
use std::collections::BTreeSet;

/// What shapes with graphics cards, and the images built for them, have in their names.
const GPU: &str = "GPU";

/// Most image names that an error offers to choose from.
const MOST_NAMES: usize = 5;

/// What is particular about the images of a cloud.
#[derive(Clone, Copy, Debug)]
pub struct ImageRules {
    /// True for what can only be an id.
    pub is_id: fn(&str) -> bool,
    /// True if shapes with graphics cards have images of their own, told by their names.
    pub gpu_images: bool,
}

impl ImageRules {
    /// Of a cluster's images, newest first, the one that new machines of a shape boot from.
    ///
    /// Cluster in the Cloud's builder tags its own with `compute`; a cloud may give a snapshot of any node the cluster of
    /// the image that the node was made from, and not that tag. An image that is made for all shapes fits where there is
    /// no other.
    #[must_use]
    pub(crate) fn preferred<'a>(&self, images: &'a [Image], shape: &str) -> Option<&'a Image> {
        let ready = images.iter().filter(|image| image.available);
        let is_built = |image: &Image| image.tags.get("compute").is_some();
        let some_are_built = ready.clone().any(is_built);
        let mut usable = ready.filter(|image| is_built(image) || !some_are_built);
        let fits =
            |image: &&Image| !self.gpu_images || has_gpu(image.name.as_str()) == has_gpu(shape);
        usable.clone().find(fits).or_else(|| usable.next())
    }

    /// Sets the images of a site: the configured one, or else the newest with the cluster's tag; and the ids of those that
    /// the features of nodes call by name.
    ///
    /// Returns what is wrong with a configured name that no image has, if nodes need it: as an id, the cloud would call it
    /// forbidden.
    pub async fn resolve(
        &self,
        site: &mut Site,
        slurm: &Config,
        cloud: &dyn Provider,
    ) -> Result<Option<String>> {
        if let (None, Some(cluster)) = (&site.image, site.identity.id()) {
            let filter = ImageFilter { tags: Tags::from([("cluster", cluster)]), name: None };
            let images = cloud.images(&filter).await?;
            let newest = |shape| self.preferred(&images, shape).map(|image| image.id.clone());
            site.image = newest("");
            let other = newest(GPU).filter(|image| Some(image) != site.image.as_ref());
            site.shape_images = other.map(|image| (GPU.to_owned(), image)).into_iter().collect();
        }
        let of_nodes = slurm.nodes.iter().filter_map(own_image).map(str::to_owned);
        let configured = site.image.iter().map(|image| image.as_str().to_owned());
        let names: BTreeSet<String> = of_nodes.chain(configured).collect();
        if names.iter().all(|name| (self.is_id)(name)) {
            return Ok(None);
        }
        let all = cloud.images(&ImageFilter::default()).await?;
        let mut unknown = None;
        for name in names {
            let configured = site.image.as_ref().is_some_and(|image| image.as_str() == name);
            match ready(&all, &name)[..] {
                [one] => {
                    if configured {
                        site.image = Some(one.id.clone());
                    }
                    site.images.insert(name, one.id.clone());
                }
                // An id may be that of an image that is not listed here.
                [] if configured && !(self.is_id)(&name) => {
                    let help = "change image_id, or wait until it is";
                    unknown = Some(format!("the cloud has no image {name} that is ready; {help}"));
                }
                ref several if configured && !(self.is_id)(&name) => {
                    let count = several.len();
                    let help = "set image_id to the id of one";
                    unknown = Some(format!("{count} images are called {name}; {help}"));
                }
                _ => {}
            }
        }
        Ok(unknown.filter(|_| slurm.nodes.iter().any(|def| needs_image(site, def))))
    }

    /// The image of a name or an id.
    ///
    /// What can only be an id is taken as it is, as by a launch: not all images that may be used are listed, such as those of
    /// other compartments or projects.
    pub async fn find(&self, cloud: &dyn Provider, name: &str) -> Result<ImageWish> {
        if (self.is_id)(name) {
            let listed = cloud.images(&ImageFilter::default()).await.unwrap_or_default();
            let same = listed.into_iter().find(|image| is_same_id(image.id.as_str(), name));
            return Ok(ImageWish::Known(same.map_or_else(|| ImageId::new(name), |image| image.id)));
        }
        let images = cloud.images(&called(name)).await?;
        let known = match &images[..] {
            [image] => Some(image.id.clone()),
            [] => {
                let all = cloud.images(&ImageFilter::default()).await?;
                all.into_iter().map(|image| image.id).find(|id| id.as_str() == name)
            }
            [..] => None,
        };
        Ok(known.map_or_else(|| ImageWish::Unknown(name.to_owned()), ImageWish::Known))
    }

    /// The images that nodes have by name, each with the number of images that are called so and ready, where that is not
    /// one. An id may be that of an image that is not listed.
    pub(crate) fn misnamed<'a>(
        &self,
        listed: &[Image],
        nodes: &'a [NodeDef],
    ) -> Vec<(&'a str, usize)> {
        let names: BTreeSet<&str> = nodes.iter().filter_map(own_image).collect();
        let names = names.into_iter().filter(|name| !(self.is_id)(name));
        names
            .map(|name| (name, ready(listed, name).len()))
            .filter(|(_, count)| *count != 1)
            .collect()
    }
}

fn has_gpu(name: &str) -> bool {
    name.to_ascii_uppercase().contains(GPU)
}

/// The image that the features of a node name.
fn own_image(node: &NodeDef) -> Option<&str> {
    node.features.as_ref()?.value("image")
}

/// The images of a name that are ready.
fn ready<'a>(images: &'a [Image], name: &str) -> Vec<&'a Image> {
    images.iter().filter(|image| image.available && image.name.as_str() == name).collect()
}

fn called(name: &str) -> ImageFilter {
    ImageFilter { name: Some(ImageName::new(name)), ..ImageFilter::default() }
}

/// True for a node of ours whose features name no image.
pub(crate) fn needs_image(site: &Site, def: &NodeDef) -> bool {
    own_image(def).is_none() && site.places(def).is_some()
}

/// True if none of these nodes can be launched without the image of the configuration.
#[must_use]
pub fn all_need_image(site: &Site, slurm: &Config, names: &[NodeName]) -> bool {
    let known = slurm.index();
    let needs = |name: &NodeName| known.get(name.as_str()).is_some_and(|it| needs_image(site, it));
    names.iter().all(needs)
}

/// True if two ids are one: UUIDs are written with hyphens or without, in either case.
fn is_same_id(one: &str, other: &str) -> bool {
    let plain = |id: &str| id.replace('-', "").to_ascii_lowercase();
    let is_uuid = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    one == other || (is_uuid(&plain(one)) && plain(one) == plain(other))
}

/// True if the cloud lists the image, or cannot list any: one that is not listed may be mistyped.
pub async fn is_listed(cloud: &dyn Provider, image: &ImageId) -> bool {
    let listed = cloud.images(&ImageFilter::default()).await;
    listed.map_or(true, |listed| listed.iter().any(|it| it.id == *image))
}

/// Explains why a name is not that of one image.
pub async fn explain_unknown(cloud: &dyn Provider, name: &str) -> Result<String> {
    Ok(not_one(name, &cloud.images(&ImageFilter::default()).await?))
}

fn not_one(name: &str, images: &[Image]) -> String {
    let called = images.iter().filter(|image| image.name.as_str() == name);
    let ids: Vec<&str> = called.map(|image| image.id.as_str()).collect();
    if !ids.is_empty() {
        return format!(
            "{} images are called {name}: use the id of one: {}",
            ids.len(),
            ids.join(", ")
        );
    }
    let mut names: Vec<&str> = images.iter().map(|image| image.name.as_str()).collect();
    if let Some(near) = slurmconf::nearest(name, names.iter().copied()) {
        return format!("the cloud has no image {name}; did you mean {near}?");
    }
    names.dedup();
    names.truncate(MOST_NAMES);
    let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("the cloud has no image {name}; the newest are: {has}")
}

/// The images that have this name already.
pub async fn named(cloud: &dyn Provider, name: &str) -> Result<Vec<ImageId>> {
    Ok(cloud.images(&called(name)).await?.into_iter().map(|image| image.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;
    use hostlist::Hostlist;

    fn rules(gpu_images: bool) -> ImageRules {
        ImageRules { is_id: |text| text.starts_with("id-"), gpu_images }
    }

    #[test]
    fn only_nodes_that_name_no_image_need_the_configured_one() {
        let config = Config::parse(
            "NodeName=gpu1 State=CLOUD Features=shape=S,image=cuda\nNodeName=cpu[1-2] State=CLOUD Features=flavor=S\n\
             NodeName=login1\n",
        );
        let (site, config) = (Site::new(Identity::cluster("c")), config.unwrap());
        let all = |nodes: &str| {
            let nodes: Hostlist = nodes.parse().unwrap();
            all_need_image(&site, &config, &nodes.node_names().unwrap())
        };
        assert!(all("cpu[1-2]"), "also by their flavor");
        assert!(!all("gpu1"));
        assert!(!all("gpu1,cpu1"));
        assert!(!all("login1"));
    }

    #[test]
    fn a_snapshot_of_a_node_is_not_preferred_to_an_image_that_was_built() {
        let image = |id: &str, tags: &[(&str, &str)], available| {
            let mut image = Image::new(ImageId::new(id), ImageName::new(id));
            image.tags = tags.iter().copied().collect();
            image.available = available;
            image
        };
        let cluster = ("cluster", "blue");
        let snapshot = image("snapshot", &[cluster], true);
        let coming = image("coming", &[cluster, ("compute", "")], false);
        let built = image("built", &[cluster, ("compute", "")], true);
        let older = image("older", &[cluster, ("compute", "")], true);
        let chosen = |images: &[&Image]| {
            let images: Vec<Image> = images.iter().map(|&image| image.clone()).collect();
            rules(false).preferred(&images, "m1.small").map(|image| image.id.to_string())
        };
        assert_eq!(chosen(&[&snapshot, &coming, &built, &older]).as_deref(), Some("built"));
        assert_eq!(chosen(&[&coming, &snapshot]).as_deref(), Some("snapshot"));
        assert_eq!(chosen(&[&coming]), None);
    }

    #[test]
    fn shapes_with_graphics_cards_prefer_images_of_their_own() {
        let (oracle, openstack) = (rules(true), rules(false));
        let (cpu, gpu) = ("VM.Standard2.1", "BM.GPU4.8");
        for (rules, shape, names, expected) in [
            (&oracle, cpu, &["c1-GPU-v9", "c1-v8", "c1-v7"][..], Some("c1-v8")),
            (&oracle, gpu, &["c1-v8", "c1-GPU-v7", "c1-GPU-v6"], Some("c1-GPU-v7")),
            (&oracle, gpu, &["c1-v8", "c1-gpu-v7"], Some("c1-gpu-v7")),
            (&oracle, gpu, &["c1-v8", "c1-v7"], Some("c1-v8")),
            (&oracle, cpu, &["c1-GPU-v9", "c1-GPU-v8"], Some("c1-GPU-v9")),
            (&oracle, cpu, &["c1-v9, not ready", "c1-GPU-v8"], Some("c1-GPU-v8")),
            (&oracle, cpu, &[], None),
            // Flavors say nothing of graphics cards by their names.
            (&openstack, "g1.a100", &["c1-gpu", "c1"], Some("c1-gpu")),
            (&openstack, "gpu.a100", &["c1", "c1-gpu"], Some("c1")),
        ] {
            let image = |name: &&str| {
                let mut image = Image::new(ImageId::new(*name), ImageName::new(*name));
                image.available = !name.ends_with("not ready");
                image
            };
            let images: Vec<Image> = names.iter().map(image).collect();
            let found = rules.preferred(&images, shape).map(|image| image.name.as_str());
            assert_eq!(found, expected, "{shape} of {names:?}");
        }
    }

    #[test]
    fn no_image_of_a_name_is_told_from_several() {
        let image = |id: &str, name: &str| Image::new(ImageId::new(id), ImageName::new(name));
        let images = [image("i-1", "golden"), image("i-2", "golden"), image("i-3", "base")];
        let several = not_one("golden", &images);
        assert_eq!(several, "2 images are called golden: use the id of one: i-1, i-2");
        assert_eq!(not_one("bass", &images), "the cloud has no image bass; did you mean base?");
        let none = not_one("unheard-of", &images);
        assert!(none.ends_with("the newest are: golden, base"), "{none}");
    }

    #[test]
    fn an_image_that_nodes_name_is_one_that_is_ready() {
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
            ("shape=s,image=id-other", None),
            ("shape=s,image=amr", Some(0)),
            ("shape=s,image=coming", Some(0)),
            ("shape=s,image=gpu", Some(2)),
        ] {
            let text = format!("NodeName=n[1-2] State=CLOUD Features={features}");
            let nodes = [text.parse().unwrap()];
            let found = rules(false).misnamed(&listed, &nodes);
            assert_eq!(found.first().map(|(_, count)| *count), expected, "{features}");
        }
    }
}
