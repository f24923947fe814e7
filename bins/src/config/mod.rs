//! `startnode.yaml`: the cloud, the cluster and the policies.
//!
//! Every file that Cluster in the Cloud writes is read unchanged; the new keys are optional. All errors are reported
//! together.

mod budget;
mod elastic;
mod fallback;
mod value;

pub use budget::{BudgetLimits, Notify};
pub use elastic::Elastic;
pub use fallback::Fallback;
pub(crate) use value::{between, texts};

use crate::clouds::{self, CloudConfig, Csp};
use cloud_core::Secret;
use cloud_core::http::Proxies;
use provision::RebuildHow;
use serde::Deserialize;
use serde::de::IgnoredAny;
use slurmconf::Error;
use slurmconf::yaml::{Reader, Source};
use std::sync::Arc;
use value::words;

/// The configuration in `startnode.yaml`.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of the file.
    pub file: String,
    /// The cloud and its own keys.
    pub cloud: Arc<dyn CloudConfig>,
    /// The cluster's name, which is the tag `cluster` of its resources. A CitC 2 file has none.
    pub cluster_id: Option<String>,
    /// The image of new machines; by default, the newest with the cluster's tag.
    pub image_id: Option<String>,
    /// Address of the cloud's API, if not the usual one.
    pub endpoint: Option<String>,
    /// Proxies, which replace those of the environment.
    pub proxies: Proxies,
    /// How a machine gets a new image.
    pub rebuild: RebuildHow,
    /// Fallback places for nodes whose own shape and zone have no capacity, in order.
    pub fallback: Vec<Fallback>,
    /// Policies and limits.
    pub elastic: Elastic,
    /// The budget.
    pub budget: BudgetLimits,
    /// Webhooks that get notifications.
    pub notify: Vec<Notify>,
    /// Paths of other files.
    pub paths: Paths,
}

/// Paths of other files, where they differ from the defaults.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Paths {
    /// Public keys for logging in to machines.
    #[serde(rename = "ssh_keys_file")]
    pub ssh_keys: Option<String>,
    /// Script that a machine runs at its first boot.
    #[serde(rename = "bootstrap_file")]
    pub bootstrap: Option<String>,
    /// `slurm.conf`.
    pub slurm_conf: Option<String>,
    /// The directory of `scontrol`.
    pub slurm_bin: Option<String>,
    /// Directory with the target image of each node's next rebuild.
    pub reboot_vars: Option<String>,
    /// Directory of StackHPC's hostvars, an older source of the target image.
    pub hostvars: Option<String>,
    /// Shapes in addition to the built-in ones.
    #[serde(rename = "shapes_file")]
    pub shapes: Option<String>,
    /// Price per hour of each shape.
    #[serde(rename = "prices_file")]
    pub prices: Option<String>,
    /// The management node's shape, which also counts towards the limits.
    #[serde(rename = "mgmt_shape_file")]
    pub management: Option<String>,
    /// Directory with a flag file for each host that is ready.
    #[serde(rename = "finalised_dir")]
    pub ready: Option<String>,
    /// Command that restarts slurmctld.
    #[serde(rename = "restart_command", deserialize_with = "words")]
    pub restart: Vec<String>,
    /// A hosts file with a managed block.
    #[serde(rename = "hosts_file")]
    pub hosts: Option<String>,
    /// Slurm's topology.conf, which is kept up to date.
    #[serde(rename = "topology_file")]
    pub topology: Option<String>,
    /// An Ansible inventory to keep up to date.
    #[serde(rename = "inventory_file")]
    pub inventory: Option<String>,
}

/// Keys that do not depend on the cloud.
#[derive(Default, Deserialize)]
#[serde(default)]
struct General {
    csp: Option<Csp>,
    cluster_id: Option<String>,
    image_id: Option<String>,
    endpoint: Option<String>,
    proxy: Option<String>,
    #[serde(deserialize_with = "texts")]
    no_proxy: Vec<String>,
    rebuild: RebuildHow,
    fallback: Vec<Fallback>,
    elastic: Elastic,
    budget: BudgetLimits,
    notify: Vec<Notify>,
}

/// Keys of CitC's own tools, which are accepted and not used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Citc {
    ansible_repo: IgnoredAny,
    ansible_branch: IgnoredAny,
    mgmt_image_id: IgnoredAny,
    packer_version: IgnoredAny,
}

/// A configuration with its warnings.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub settings: Settings,
    /// Unknown keys, each with the most similar known key.
    pub warnings: Vec<Error>,
}

impl Settings {
    /// Reads a `startnode.yaml`. `file` is its name in errors.
    pub fn read(file: &str, text: &str) -> Result<Loaded, Vec<Error>> {
        let source = Source::new(file, text);
        let root = source.read().map_err(|error| vec![error])?;
        let mut reader = Reader::new(&source, file, &root).map_err(|error| vec![error])?;
        let general: General = reader.read();
        let paths: Paths = reader.read();
        reader.know::<Citc>();
        let cloud = clouds::read(general.csp, &mut reader);
        let (mut errors, warnings) = reader.into_findings();
        if errors.is_empty() {
            let settings = general.into_settings(file, cloud, paths);
            return Ok(Loaded { settings, warnings });
        }
        // An unknown key may explain a missing one.
        errors.extend(warnings);
        Err(errors)
    }
}

impl General {
    fn into_settings(self, file: &str, cloud: Arc<dyn CloudConfig>, paths: Paths) -> Settings {
        let Self { cluster_id, image_id, endpoint, rebuild, mut fallback, elastic, .. } = self;
        let (budget, notify) = (self.budget, self.notify);
        fallback.retain(|place| *place != Fallback::default());
        let proxy = self.proxy.map(Secret::new);
        let no_proxy = Some(self.no_proxy.join(",")).filter(|text| !text.is_empty());
        let proxies = Proxies { http: proxy.clone(), https: proxy, no_proxy };
        let file = file.to_owned();
        Settings {
            file,
            cloud,
            cluster_id,
            image_id,
            endpoint,
            proxies,
            rebuild,
            fallback,
            elastic,
            budget,
            notify,
            paths,
        }
    }
}

#[cfg(test)]
mod tests;
