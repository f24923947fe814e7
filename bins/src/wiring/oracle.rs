//! Oracle's cloud, from the configuration.

use super::site::features;
use super::{Connected, Purpose, http};
use crate::config::{Auth, Oracle, Settings};
use crate::diagnostic::Diagnostic;
use crate::environment::Environment;
use crate::output::chain;
use cloud_core::{ConfigError, Secret, Sources, SubnetId, Tags};
use cloud_oci::{Clock, Config, Mode, Oci, Overrides, Site, Subnet};
use serde_json::{Map, Value, json};
use std::time::SystemTime;

/// What Cluster in the Cloud called it before it had tags.
const SUBNET: &str = "Subnet";

pub(super) async fn connect(
    oracle: &Oracle,
    settings: &Settings,
    environment: &Environment,
    (purpose, slurm): (Purpose, &slurmconf::Config),
) -> Result<Connected, Diagnostic> {
    let config = credentials(oracle, settings, environment)?;
    let clock = Clock::new(SystemTime::now);
    let site = site(oracle);
    let (http, pacer) = (http(settings, environment, purpose), super::pacer(&settings.elastic));
    let cloud = Oci::connect(config, site, http, pacer, clock).await?;
    let mut warnings = Vec::new();
    let mut named = Vec::new();
    let subnet = match (purpose, &oracle.subnet_id) {
        (Purpose::Launch, None) => Some(subnet(oracle, settings, &cloud).await?),
        (Purpose::Check, None) => {
            let found = unless_silent(subnet(oracle, settings, &cloud).await)?;
            named.push(found.clone().map(|id| format!("subnet {id}")));
            found.ok()
        }
        (Purpose::Perhaps, None) => {
            let found = subnet(oracle, settings, &cloud).await;
            found.map_err(|diagnostic| warnings.push(diagnostic.to_string())).ok()
        }
        (Purpose::Launch | Purpose::Perhaps | Purpose::Check, Some(_))
        | (Purpose::Look | Purpose::Print | Purpose::Other | Purpose::EndAll, _) => None,
    };
    if purpose == Purpose::Check {
        for found in subnets(oracle, slurm, &cloud).await {
            named.push(unless_silent(found)?);
        }
    }
    Ok(Connected { cloud: Box::new(cloud), subnet, named, warnings, unreachable: None })
}

/// What was found, unless nobody has answered: all other questions would have to wait as long.
fn unless_silent<T>(found: Result<T, Diagnostic>) -> Result<Result<T, Diagnostic>, Diagnostic> {
    match found {
        Err(diagnostic) if diagnostic.is_transient() => Err(diagnostic),
        found => Ok(found),
    }
}

/// Who we are, by the files and variables that Oracle's own tools read.
fn credentials(
    oracle: &Oracle,
    settings: &Settings,
    environment: &Environment,
) -> Result<Config, Diagnostic> {
    let (home, variables) = (environment.home.clone(), environment.variables.clone());
    let sources = Sources::of_system(home, variables);
    let overrides = Overrides {
        file: oracle.config_file.as_deref().map(|file| environment.expand(file)),
        profile: oracle.profile.clone(),
        mode: match oracle.auth {
            // The file says whether it is a key or a session.
            Auth::ConfigFile => None,
            Auth::InstancePrincipal => Some(Mode::InstancePrincipal),
        },
        region: oracle.region.clone(),
        realm: oracle.realm.clone(),
        endpoint: settings.endpoint.clone(),
        written_in: Some(settings.file.clone().into()),
    };
    Config::load(&sources, &overrides, SystemTime::now()).map_err(|error| unusable(error, settings))
}

/// What is wrong with the credentials; slurmctld passes its programs no variables.
fn unusable(error: ConfigError, settings: &Settings) -> Diagnostic {
    if error.is_unspecified() {
        let file = &settings.file;
        return Diagnostic::new(format!("{}, or with config_file in {file}", chain(&error)));
    }
    Diagnostic::from(error)
}

/// Where and how machines are launched.
pub(super) fn site(oracle: &Oracle) -> Site {
    let mut site = Site::new(&oracle.compartment_id);
    site.subnet = oracle.subnet_id.clone().map(SubnetId::new);
    site.hostname = oracle.hostname_label;
    site.compute_cluster.clone_from(&oracle.compute_cluster_id);
    let mut template = Map::new();
    let mut set = |key: &str, value: Value| template.insert(key.to_owned(), value);
    set("instanceOptions", json!({"areLegacyImdsEndpointsDisabled": !oracle.legacy_imds}));
    set("freeformTags", json!(oracle.freeform_tags));
    if !oracle.defined_tags.is_empty() {
        set("definedTags", json!(oracle.defined_tags));
    }
    if !oracle.nsg_ids.is_empty() {
        set("createVnicDetails", json!({"nsgIds": oracle.nsg_ids}));
    }
    if let Some(size) = oracle.boot_volume_gb {
        set("sourceDetails", json!({"sourceType": "image", "bootVolumeSizeInGBs": size}));
    }
    site.template = Secret::new(template);
    site
}

/// All that launches say and `provision` does not know.
pub(super) fn beside(oracle: &Oracle) -> String {
    let site = site(oracle);
    // What we serialise has string keys only, so this does not fail.
    let template = serde_json::to_string(site.template.expose()).unwrap_or_default();
    let Site { compartment, hostname, compute_cluster, .. } = site;
    format!("{compartment} {hostname} {compute_cluster:?} {template}")
}

/// The subnets that are named by id, or why there is none.
async fn subnets(
    oracle: &Oracle,
    slurm: &slurmconf::Config,
    cloud: &Oci,
) -> Vec<Result<String, Diagnostic>> {
    let own = oracle.subnet_id.iter().map(|id| (id.clone(), "subnet_id"));
    let nodes = features(slurm, "network");
    let nodes = nodes.map(|id| (id, "the feature network of nodes in slurm.conf"));
    let wanted: Vec<(String, &str)> = own.chain(nodes).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let all = match cloud.subnets(None, &Tags::default()).await {
        Ok(all) => all,
        Err(error) => return vec![Err(error.into())],
    };
    let is_there = |id: &str| all.iter().any(|subnet| subnet.id.as_str() == id);
    let found = |(id, place): (String, &str)| {
        if is_there(&id) {
            return Ok(format!("subnet {id}"));
        }
        Err(Diagnostic::new(format!(
            "the compartment of the machines has no subnet {id}; change {place}, unless the network has a compartment of \
             its own, which is not looked at"
        )))
    };
    wanted.into_iter().map(found).collect()
}

/// The subnet of the machines, where the configuration names only the network: the one with the cluster's tag, or without a
/// cluster id the one that Cluster in the Cloud called so.
async fn subnet(oracle: &Oracle, settings: &Settings, cloud: &Oci) -> Result<SubnetId, Diagnostic> {
    let Some(vcn) = &oracle.vcn_id else {
        return Err(Diagnostic::new(
            "no subnet: the configuration needs subnet_id, or vcn_id to look for it",
        ));
    };
    let tags = settings.cluster_id.as_deref().map(|id| Tags::from([("cluster", id)]));
    let found = cloud.subnets(Some(vcn), &tags.clone().unwrap_or_default()).await?;
    let fits = |subnet: &&Subnet| tags.is_some() || subnet.name == SUBNET;
    let fitting: Vec<&Subnet> = found.iter().filter(fits).collect();
    match fitting[..] {
        [one] => Ok(one.id.clone()),
        [] => Err(Diagnostic::new(match &settings.cluster_id {
            Some(id) => {
                format!("{vcn} has no subnet with this cluster's tag, cluster={id}; set subnet_id")
            }
            None => format!(
                "{vcn} has no subnet called {SUBNET}, and without cluster_id none is told by a tag; set subnet_id"
            ),
        })),
        [..] => {
            let ids: Vec<&str> = fitting.iter().map(|subnet| subnet.id.as_str()).collect();
            Err(Diagnostic::new(format!(
                "several subnets could be meant, set subnet_id: {}",
                ids.join(", ")
            )))
        }
    }
}
