//! What the operator decided, as `provision` takes it.

use super::read;
use crate::config::{Cloud, Settings};
use crate::environment::Environment;
use crate::trouble::Trouble;
use cloud_core::{ImageFilter, ImageId, Provider, Secret, SubnetId, Tags, Zone};
use provision::{Fallback, Identity, Policies, Site};
use std::time::Duration;

/// Where Cluster in the Cloud has them.
const SSH_KEYS: &str = "~/opc_authorized_keys";
const BOOTSTRAP: &str = "~/bootstrap.sh";

/// How long before Slurm's own deadline a run ends: slurmctld kills it there.
const MARGIN: Duration = Duration::from_secs(30);

/// What the operator decided; `resume_timeout` is Slurm's.
pub fn site(
    settings: &Settings,
    environment: &Environment,
    resume_timeout: Duration,
) -> Result<Site, Trouble> {
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
        }
        Cloud::OpenStack(openstack) => {
            site.zones = openstack.availability_zone.iter().map(Zone::new).collect();
        }
    }
    let root = site.zone_root.clone().unwrap_or_default();
    site.fallback = settings.fallback.iter().map(|other| fallback(other, &root)).collect();
    let keys = optional(settings.paths.ssh_keys.as_deref(), SSH_KEYS, environment)?;
    let lines = keys.iter().flat_map(|text| text.lines());
    site.ssh_keys =
        lines.map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    site.user_data =
        optional(settings.paths.bootstrap.as_deref(), BOOTSTRAP, environment)?.map(Secret::new);
    site.policies = policies(settings, resume_timeout);
    Ok(site)
}

fn fallback(other: &crate::config::Fallback, root: &str) -> Fallback {
    // A number is that of an availability domain, as in the features of nodes.
    let zone = |zone: &String| match zone.parse::<u32>() {
        Ok(number) => Zone::new(format!("{root}{number}")),
        Err(_) => Zone::new(zone),
    };
    Fallback {
        shape: other.shape.clone(),
        zone: other.zone.as_ref().map(zone),
        ..Fallback::default()
    }
}

/// The text of a file: one that is named must be there, one in its usual place may be.
fn optional(
    named: Option<&str>,
    usual: &str,
    environment: &Environment,
) -> Result<Option<String>, Trouble> {
    let path = environment.expand(named.unwrap_or(usual));
    if named.is_some() || path.exists() { read(&path).map(Some) } else { Ok(None) }
}

fn policies(settings: &Settings, resume_timeout: Duration) -> Policies {
    let elastic = &settings.elastic;
    let mut policies = Policies::default();
    policies.stopped = elastic.stopped.unwrap_or_default();
    policies.on_partial = elastic.on_partial.unwrap_or_default();
    policies.rebuild = settings.rebuild;
    if let Some(cooldown) = elastic.cooldown {
        policies.cooldown = cooldown;
    }
    if let Some(concurrency) = elastic.concurrency.and_then(|most| usize::try_from(most).ok()) {
        policies.concurrency = concurrency;
    }
    // With a short timeout, half of it is better than nothing.
    let before = resume_timeout.saturating_sub(MARGIN).max(resume_timeout / 2);
    policies.deadline = elastic.deadline.map_or(before, |deadline| deadline.min(before));
    policies
}

/// The image of new machines: the configuration's, or else the newest with the cluster's tag.
pub async fn image(site: &mut Site, cloud: &dyn Provider) -> Result<(), Trouble> {
    let (None, Some(cluster)) = (&site.image, site.identity.id()) else { return Ok(()) };
    let filter = ImageFilter { tags: Tags::from([("cluster", cluster)]), name: None };
    let images = cloud.images(&filter).await.map_err(|error| Trouble::from_error(&error))?;
    site.image = images.into_iter().find(|image| image.available).map(|image| image.id);
    Ok(())
}
