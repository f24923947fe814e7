//! Builds the site from the configuration.

use super::{Purpose, read};
use crate::config::Settings;
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use cloud_core::{ImageId, Secret};
use hostlist::Hostlist;
use provision::budget::Allowance;
use provision::images::ImageRules;
use provision::{Fallback, Identity, Policies, Site, before_timeout};
use slurmconf::Config;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Paths in Cluster in the Cloud.
const SSH_KEYS: &str = "~/opc_authorized_keys";
const BOOTSTRAP: &str = "~/bootstrap.sh";

/// Default deadline of a program that slurmctld does not call.
const OPERATOR_DEADLINE: Duration = Duration::from_mins(30);

/// The deadline of a program that slurmctld does not call, and so does not kill.
#[must_use]
pub fn operator_deadline(settings: &Settings) -> Duration {
    settings.elastic.deadline.unwrap_or(OPERATOR_DEADLINE)
}

/// The deadline of a run that slurmctld called for these nodes.
///
/// It follows the longest ResumeTimeout of the nodes. Slurm calls again for nodes with a shorter one that are late.
#[must_use]
pub fn deadline(settings: &Settings, slurm: &Config, nodes: &Hostlist) -> Duration {
    let before = before_timeout(slurm, nodes);
    settings.elastic.deadline.map_or(before, |deadline| deadline.min(before))
}

/// Builds the site from the configuration and slurm.conf. Files that only a launch needs are read only for a launch.
///
/// A check continues without a file that cannot be read, and gets the error.
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
    settings.cloud.complete(&mut site);
    if launches && settings.cloud.takes_ssh_keys() {
        let keys = text(("ssh_keys_file", settings.paths.ssh_keys.as_deref()), SSH_KEYS)?;
        let lines = keys.iter().flat_map(|text| text.lines()).map(str::trim);
        site.ssh_keys = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    }
    site.keypairs = keypairs(settings, slurm);
    site.fallback = settings.fallback.iter().map(|other| fallback(other, &site)).collect();
    if launches {
        let named = ("bootstrap_file", settings.paths.bootstrap.as_deref());
        site.user_data = text(named, BOOTSTRAP)?.map(Secret::new);
    }
    if let Some(budget) =
        settings.budget.budget().filter(|_| launches || purpose == Purpose::Observe)
    {
        site.allowance = Some(Allowance { budget, prices: super::prices(settings, environment)? });
    }
    if launches {
        site.prices = super::prices::known_prices(settings, environment)?;
    }
    site.policies = policies(settings);
    site.policies.deadline = deadline(settings, slurm, &slurm.cloud_nodes());
    Ok((site, unread))
}

/// The key pairs that the features of nodes name, on a cloud that stores key pairs.
#[must_use]
pub fn keypairs(settings: &Settings, slurm: &Config) -> BTreeMap<String, Vec<String>> {
    let named = features(slurm, "keypair").filter(|_| settings.cloud.keeps_key_pairs());
    named.map(|name| (name, Vec::new())).collect()
}

/// The distinct values of a feature in slurm.conf.
pub(crate) fn features(slurm: &Config, key: &str) -> impl Iterator<Item = String> {
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

/// Number of tags on a machine that is launched for a job: its own, and those for job, user and account.
const MACHINE_TAGS: usize = 6;

/// True if machines have room for tags with job, user and account.
#[must_use]
pub fn has_room_for_labels(settings: &Settings) -> bool {
    settings.cloud.free_tags() >= MACHINE_TAGS
}

/// Reads a file. A configured one must exist, one in its default place need not.
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
        |diagnostic| Diagnostic::new(format!("{diagnostic}; make it readable, or change {key}"));
    text.map(Some).map_err(remedy)
}

fn policies(settings: &Settings) -> Policies {
    let elastic = &settings.elastic;
    let mut policies = Policies::default();
    policies.stopped = elastic.stopped.unwrap_or_default();
    policies.on_partial = elastic.on_partial.unwrap_or_default();
    policies.rebuild = settings.rebuild;
    policies.max_nodes = elastic.max_nodes.and_then(|most| usize::try_from(most).ok());
    if !elastic.health_reasons.is_empty() {
        policies.health_reasons.clone_from(&elastic.health_reasons);
    }
    if let Some(cooldown) = elastic.cooldown {
        policies.cooldown = cooldown;
    }
    if let Some(grace) = elastic.grace {
        policies.grace = grace;
    }
    let wanted = elastic.concurrency.and_then(|most| usize::try_from(most).ok());
    let batch = settings.cloud.describe().batch;
    policies.concurrency = concurrency(wanted, policies.concurrency, batch);
    policies
}

/// As many as are wanted or usual. Fewer would never fill a request of a cloud that takes many machines in one.
fn concurrency(wanted: Option<usize>, usual: usize, batch: usize) -> usize {
    wanted.unwrap_or(usual.max(batch))
}

/// Rules for the cloud's images.
#[must_use]
pub fn image_rules(settings: &Settings) -> ImageRules {
    let cloud = &settings.cloud;
    ImageRules { is_id: cloud.describe().is_id, gpu_images: cloud.has_gpu_images() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_machines_are_worked_on_as_the_cloud_launches_in_one_request() {
        assert_eq!(concurrency(None, 32, 1), 32);
        assert_eq!(concurrency(None, 32, 100), 100);
        assert_eq!(concurrency(Some(4), 32, 100), 4);
    }

    #[test]
    fn the_resume_timeout_of_a_partition_counts() {
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
}
