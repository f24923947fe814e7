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
pub(crate) use value::{between, duration, texts};

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
    /// The cloud, and what only it needs.
    pub cloud: Arc<dyn CloudConfig>,
    /// The cluster's name, in the tag `cluster` of everything that is its own; a CitC 2 file has none.
    pub cluster_id: Option<String>,
    /// The image of new machines; else the newest that carries the cluster's tag.
    pub image_id: Option<String>,
    /// Another address for the cloud's API.
    pub endpoint: Option<String>,
    /// The proxies, which replace those of the environment.
    pub proxies: Proxies,
    /// How a machine gets a new image.
    pub rebuild: RebuildHow,
    /// Where else to launch when a node's own shape and zone have no capacity, in order.
    pub fallback: Vec<Fallback>,
    /// Policies and limits.
    pub elastic: Elastic,
    /// What may be spent.
    pub budget: BudgetLimits,
    /// Who is told of what.
    pub notify: Vec<Notify>,
    /// Paths of other files.
    pub paths: Paths,
}

/// Paths of other files, where they differ from the defaults.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Paths {
    /// The public keys that may log in to a machine.
    #[serde(rename = "ssh_keys_file")]
    pub ssh_keys: Option<String>,
    /// The script that a machine runs when it first boots.
    #[serde(rename = "bootstrap_file")]
    pub bootstrap: Option<String>,
    /// `slurm.conf`.
    pub slurm_conf: Option<String>,
    /// The directory of `scontrol`.
    pub slurm_bin: Option<String>,
    /// The target of each node's next rebuild.
    pub reboot_vars: Option<String>,
    /// StackHPC's hostvars, an older place for the target of the next rebuild.
    pub hostvars: Option<String>,
    /// Shapes besides those that are built in.
    #[serde(rename = "shapes_file")]
    pub shapes: Option<String>,
    /// What an hour of each shape costs.
    #[serde(rename = "prices_file")]
    pub prices: Option<String>,
    /// The management node's shape, which the limits count, too.
    #[serde(rename = "mgmt_shape_file")]
    pub management: Option<String>,
    /// The directory with a flag for each host that is ready.
    #[serde(rename = "finalised_dir")]
    pub ready: Option<String>,
    /// What restarts slurmctld.
    #[serde(rename = "restart_command", deserialize_with = "words")]
    pub restart: Vec<String>,
    /// A hosts file whose block of ours is kept up to date.
    #[serde(rename = "hosts_file")]
    pub hosts: Option<String>,
    /// Slurm's topology.conf, which is kept up to date.
    #[serde(rename = "topology_file")]
    pub topology: Option<String>,
    /// An inventory that is kept up to date.
    #[serde(rename = "inventory_file")]
    pub inventory: Option<String>,
}

/// What all clouds have in common.
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

/// Keys of CitC's own tools, which are known and not used.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Citc {
    ansible_repo: IgnoredAny,
    ansible_branch: IgnoredAny,
    mgmt_image_id: IgnoredAny,
    packer_version: IgnoredAny,
}

/// A configuration that was read, with its warnings.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub settings: Settings,
    /// Unknown keys, each with the key that was probably meant.
    pub warnings: Vec<Error>,
}

impl Settings {
    /// Reads a `startnode.yaml`; `file` is the name that errors call it by.
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
        // What is missing may be there under another name; what is wrong comes first.
        errors.extend(warnings);
        Err(errors)
    }
}

impl General {
    fn into_settings(self, file: &str, cloud: Arc<dyn CloudConfig>, paths: Paths) -> Settings {
        let Self { cluster_id, image_id, endpoint, rebuild, mut fallback, elastic, .. } = self;
        let (budget, notify) = (self.budget, self.notify);
        fallback.retain(|place| *place != Fallback::default());
        // One proxy for all; what is gone to directly is a list, or a text with commas.
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
