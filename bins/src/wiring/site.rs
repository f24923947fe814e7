//! What the operator decided, as `provision` takes it.

use super::{Purpose, read};
use crate::config::{Cloud, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use cloud_core::{Image, ImageFilter, ImageId, Provider, Secret, SubnetId, Tags, Zone};
use hostlist::{Hostlist, NodeName};
use provision::conf::LaunchRules;
use provision::{Fallback, Identity, Policies, Site};
use slurmconf::{Config, NodeDef};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Where Cluster in the Cloud has them.
const SSH_KEYS: &str = "~/opc_authorized_keys";
const BOOTSTRAP: &str = "~/bootstrap.sh";

/// How long before Slurm's own deadline a run ends: slurmctld kills it there.
const MARGIN: Duration = Duration::from_secs(30);

/// How long an operator's program may take for what is not said otherwise: nobody kills it.
const UNHURRIED: Duration = Duration::from_mins(30);

/// The deadline of a program that slurmctld does not call: its own is none of it.
#[must_use]
pub fn unhurried(settings: &Settings) -> Duration {
    settings.elastic.deadline.unwrap_or(UNHURRIED)
}

/// The deadline of a run that slurmctld has called for these nodes.
///
/// Where Slurm waits longer for some than for others, the longest counts: the others' machines may be up in time, too,
/// and for what is not, Slurm has us called again.
#[must_use]
pub fn deadline(settings: &Settings, slurm: &Config, nodes: &Hostlist) -> Duration {
    let before = before_timeout(slurm, nodes);
    settings.elastic.deadline.map_or(before, |deadline| deadline.min(before))
}

/// The time that slurmctld itself leaves a program which it has called for these nodes.
#[must_use]
pub fn before_timeout(slurm: &Config, nodes: &Hostlist) -> Duration {
    let timeout = *slurm.resume_timeouts(nodes).end();
    // Of a short one, most: less would be no time to start a node in.
    timeout.saturating_sub(MARGIN.min(timeout / 4))
}

/// What the operator decided, with what slurm.conf says; what only a launch needs is read only for one.
///
/// A check goes on without a file that cannot be read, and is told why.
pub fn site(
    settings: &Settings,
    environment: &Environment,
    slurm: &Config,
    purpose: Purpose,
) -> Result<(Site, Vec<String>), Diagnostic> {
    let launches = purpose.launches();
    let mut unread = Vec::new();
    let mut text = |named: (&str, Option<&str>), usual| match optional(named, usual, environment) {
        Err(diagnostic) if purpose == Purpose::Check => {
            unread.push(diagnostic.to_string());
            Ok(None)
        }
        text => text,
    };
    let identity = match &settings.cluster_id {
        Some(id) => Identity::cluster(id),
        None => Identity::by_name(),
    };
    let mut site = Site::new(identity);
    site.image = settings.image_id.clone().map(ImageId::new);
    match &settings.cloud {
        Cloud::Oracle(oracle) => {
            site.zone_root.clone_from(&oracle.ad_root);
            site.subnet = oracle.subnet_id.clone().map(SubnetId::new);
            site.preemptible = oracle.preemptible;
            site.beside = super::oracle::beside(oracle);
            let named = ("ssh_keys_file", settings.paths.ssh_keys.as_deref());
            let keys = if launches { text(named, SSH_KEYS)? } else { None };
            let lines = keys.iter().flat_map(|text| text.lines()).map(str::trim);
            site.ssh_keys = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        }
        Cloud::OpenStack(openstack) => {
            site.zones = openstack.availability_zone.iter().map(Zone::new).collect();
        }
    }
    site.keypairs = keypairs(settings, slurm);
    site.fallback = settings.fallback.iter().map(|other| fallback(other, &site)).collect();
    if launches {
        let named = ("bootstrap_file", settings.paths.bootstrap.as_deref());
        site.user_data = text(named, BOOTSTRAP)?.map(Secret::new);
    }
    site.policies = policies(settings);
    site.policies.deadline = deadline(settings, slurm, &slurm.cloud_nodes());
    Ok((site, unread))
}

/// What the cloud requires of every launch: Oracle's takes no machine outside an availability domain, nor one whose name its
/// DNS would not take.
#[must_use]
pub fn launch_rules(settings: &Settings) -> LaunchRules {
    match &settings.cloud {
        Cloud::Oracle(oracle) => LaunchRules {
            needs_zone: true,
            is_host_name: oracle.hostname_label.then_some(cloud_oci::is_host_name),
        },
        Cloud::OpenStack(_) => LaunchRules::default(),
    }
}

/// The key pairs that the features of nodes name: Nova takes the name and no keys, and knows itself which there are.
#[must_use]
pub fn keypairs(settings: &Settings, slurm: &Config) -> BTreeMap<String, Vec<String>> {
    match &settings.cloud {
        Cloud::Oracle(_) => BTreeMap::new(),
        Cloud::OpenStack(_) => features(slurm, "keypair").map(|name| (name, Vec::new())).collect(),
    }
}

/// What the nodes of slurm.conf have for a feature, each value once.
pub(super) fn features(slurm: &Config, key: &str) -> impl Iterator<Item = String> {
    let all = slurm.nodes.iter().filter_map(|def| def.features.as_ref()?.value(key));
    let all: BTreeSet<String> = all.map(str::to_owned).collect();
    all.into_iter()
}

fn fallback(other: &crate::config::Fallback, site: &Site) -> Fallback {
    Fallback {
        shape: other.shape.clone(),
        zone: other.zone.as_ref().map(|zone| site.zone(zone)),
        preemptible: other.preemptible.unwrap_or(site.preemptible),
        ..Fallback::default()
    }
}

/// The text of a file: one that is named must be there, one in its usual place may be.
fn optional(
    (key, named): (&str, Option<&str>),
    usual: &str,
    environment: &Environment,
) -> Result<Option<String>, Diagnostic> {
    let path = environment.expand(named.unwrap_or(usual));
    if named.is_none() && !path.exists() {
        return Ok(None);
    }
    let text = read(&path);
    let remedy =
        |diagnostic| Diagnostic::new(format!("{diagnostic}; let it be read, or change {key}"));
    text.map(Some).map_err(remedy)
}

fn policies(settings: &Settings) -> Policies {
    let elastic = &settings.elastic;
    let mut policies = Policies::default();
    policies.stopped = elastic.stopped.unwrap_or_default();
    policies.on_partial = elastic.on_partial.unwrap_or_default();
    policies.rebuild = settings.rebuild;
    if let Some(cooldown) = elastic.cooldown {
        policies.cooldown = cooldown;
    }
    if let Some(grace) = elastic.grace {
        policies.grace = grace;
    }
    if let Some(concurrency) = elastic.concurrency.and_then(|most| usize::try_from(most).ok()) {
        policies.concurrency = concurrency;
    }
    policies
}

/// What Oracle's shapes with graphics cards, and CitC's images for them, have in their names.
const GPU: &str = "GPU";

/// Of a cluster's images, newest first, the one that new machines boot from. CitC's builder tags its own with `compute`; an
/// OpenStack gives a snapshot of any node the cluster of the image that the node was made from, and not that tag.
///
/// CitC 5 has one image for Oracle's shapes with graphics cards and one for the others, told by their names; one that is made for
/// all fits where there is no other.
#[must_use]
pub fn preferred<'a>(images: &'a [Image], cloud: &Cloud, shape: &str) -> Option<&'a Image> {
    let ready = images.iter().filter(|image| image.available);
    let is_built = |image: &Image| image.tags.get("compute").is_some();
    let some_are_built = ready.clone().any(is_built);
    let mut usable = ready.filter(|image| is_built(image) || !some_are_built);
    let fits = |image: &&Image| match cloud {
        Cloud::Oracle(_) => has_gpu(image.name.as_str()) == has_gpu(shape),
        Cloud::OpenStack(_) => true,
    };
    usable.clone().find(fits).or_else(|| usable.next())
}

fn has_gpu(name: &str) -> bool {
    name.to_ascii_uppercase().contains(GPU)
}

/// The images of new machines: the configuration's, or else the newest with the cluster's tag; and the ids of those that
/// the features of nodes call by name.
///
/// Gives what is wrong with a configured name that is none, if nodes need it: as an id, the cloud would call it forbidden.
pub async fn images(
    site: &mut Site,
    settings: &Settings,
    slurm: &Config,
    cloud: &dyn Provider,
) -> Result<Option<Diagnostic>, Diagnostic> {
    if let (None, Some(cluster)) = (&site.image, site.identity.id()) {
        let filter = ImageFilter { tags: Tags::from([("cluster", cluster)]), name: None };
        let images = cloud.images(&filter).await.map_err(|error| Diagnostic::from_cloud(&error))?;
        let newest = |shape| preferred(&images, &settings.cloud, shape).map(|image| &image.id);
        site.image = newest("").cloned();
        let other = newest(GPU).filter(|image| Some(*image) != site.image.as_ref());
        site.shape_images =
            other.map(|image| (GPU.to_owned(), image.clone())).into_iter().collect();
    }
    let configured = site.image.iter().map(|image| image.as_str().to_owned());
    let names: BTreeSet<String> = features(slurm, "image").chain(configured).collect();
    if names.iter().all(|name| is_image_id(name)) {
        return Ok(None);
    }
    let all = cloud.images(&ImageFilter::default()).await;
    let all = all.map_err(|error| Diagnostic::from_cloud(&error))?;
    let mut unknown = None;
    for name in names {
        let fitting: Vec<&Image> =
            all.iter().filter(|image| image.available && image.name.as_str() == name).collect();
        let configured = site.image.as_ref().is_some_and(|image| image.as_str() == name);
        match fitting[..] {
            [one] => {
                if configured {
                    site.image = Some(one.id.clone());
                }
                site.images.insert(name, one.id.clone());
            }
            // An id may be that of an image that is not listed here.
            _ if configured && !is_image_id(&name) => {
                unknown = Some(no_image(&name, fitting.len()));
            }
            _ => {}
        }
    }
    Ok(unknown.filter(|_| slurm.nodes.iter().any(|def| needs_image(site, def))))
}

/// True if nothing of a call can be done without the image of the configuration.
#[must_use]
pub fn all_need_image(site: &Site, slurm: &Config, names: &[NodeName]) -> bool {
    let known = slurm.index();
    let needs = |name: &NodeName| known.get(name.as_str()).is_some_and(|it| needs_image(site, it));
    names.iter().all(needs)
}

/// True for a node of ours whose features name no image.
#[must_use]
pub fn needs_image(site: &Site, def: &NodeDef) -> bool {
    let own = def.features.as_ref().and_then(|features| features.value("image"));
    own.is_none() && site.places(def).is_some()
}

/// What is wrong with the name of an image that so many have.
fn no_image(name: &str, count: usize) -> Diagnostic {
    Diagnostic::new(match count {
        0 => format!(
            "the cloud has no image {name} that is ready; change image_id, or wait until it is"
        ),
        _ => format!("{count} images are called {name}; set image_id to the id of one"),
    })
}

/// True for what can only be an id: Oracle's, or 32 hexadecimal digits with or without hyphens.
#[must_use]
pub fn is_image_id(text: &str) -> bool {
    let digits = text.bytes().filter(|&byte| byte != b'-');
    let hexadecimal = digits.clone().all(|byte| byte.is_ascii_hexdigit()) && digits.count() == 32;
    text.starts_with("ocid1.") || hexadecimal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OpenStack;
    use cloud_core::ImageName;

    #[test]
    fn the_resume_timeout_of_a_partition_is_not_ignored() {
        let read = |text: &str| Settings::read("s.yaml", text).map(|loaded| loaded.settings);
        let config = Config::parse(
            "NodeName=n[1-2] State=CLOUD\nPartitionName=slow Nodes=n1 ResumeTimeout=900\n\
             PartitionName=main Nodes=ALL\n",
        );
        let (Ok(settings), Ok(config)) = (read("compartment_id: c\n"), config) else {
            panic!("cannot be read");
        };
        let of = |nodes: &str| {
            deadline(&settings, &config, &nodes.parse().unwrap_or_default()).as_secs()
        };
        assert_eq!(of("n1"), 870);
        assert_eq!(of("n2"), 45, "of a minute");
        assert_eq!(of("n[1-2]"), 870);
    }

    #[test]
    fn a_wrong_image_hindered_nodes_that_do_not_use_it() {
        let config = Config::parse(
            "NodeName=gpu1 State=CLOUD Features=shape=S,image=cuda\nNodeName=cpu[1-2] State=CLOUD Features=flavor=S\n\
             NodeName=login1\n",
        );
        let (site, config) = (Site::new(Identity::cluster("c")), config.unwrap_or_default());
        let all = |nodes: &str| {
            let nodes: Hostlist = nodes.parse().unwrap_or_default();
            all_need_image(&site, &config, &nodes.node_names().unwrap_or_default())
        };
        assert!(all("cpu[1-2]"), "also by their flavor");
        assert!(!all("gpu1"));
        assert!(!all("gpu1,cpu1"));
        assert!(!all("login1"));
    }

    #[test]
    fn a_snapshot_of_a_node_was_the_image_of_all_new_nodes() {
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
            let cloud = Cloud::OpenStack(OpenStack::default());
            preferred(&images, &cloud, "m1.small").map(|image| image.id.to_string())
        };
        assert_eq!(chosen(&[&snapshot, &coming, &built, &older]).as_deref(), Some("built"));
        assert_eq!(chosen(&[&coming, &snapshot]).as_deref(), Some("snapshot"));
        assert_eq!(chosen(&[&coming]), None);
    }

    #[test]
    fn machines_with_and_without_graphics_cards_had_the_same_image() {
        let settings = Settings::read("s.yaml", "compartment_id: c\n");
        let oracle = settings.map(|loaded| loaded.settings.cloud);
        let Ok(oracle) = oracle else { panic!("cannot be read") };
        let openstack = Cloud::OpenStack(OpenStack::default());
        let (cpu, gpu) = ("VM.Standard2.1", "BM.GPU4.8");
        for (cloud, shape, names, expected) in [
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
            let found = preferred(&images, cloud, shape).map(|image| image.name.as_str());
            assert_eq!(found, expected, "{shape} of {names:?}");
        }
    }

    #[test]
    fn an_id_is_told_from_a_name() {
        assert!(is_image_id("ocid1.image.oc1.phx.aaaa"));
        assert!(is_image_id("6b7f2c9e-0a8d-4a51-9a39-0e5f3b1c2d4e"));
        assert!(!is_image_id("rocky-9.5"));
        assert!(!is_image_id("deadbeef"));
    }
}
