//! `startnode.yaml`: which cloud, which cluster, and how to go about it.
//!
//! Every file that Cluster in the Cloud writes is read unchanged; what is new is optional. All that is wrong is said at
//! once, so that a file is mended in one go.

mod elastic;
mod fallback;
mod openstack;
mod oracle;
mod reader;

pub use elastic::Elastic;
pub use fallback::Fallback;
pub use openstack::OpenStack;
pub use oracle::{Auth, Oracle};
pub(crate) use reader::duration;

use cloud_core::Secret;
use cloud_core::http::Proxies;
use provision::RebuildHow;
use reader::Reader;
use slurmconf::{Error, yaml::Source};

/// What `startnode.yaml` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The file that all this stands in.
    pub file: String,
    /// The cloud, and what only it needs.
    pub cloud: Cloud,
    /// The cluster's name, in the tag `cluster` of everything that is its own; a CitC 2 file has none.
    pub cluster_id: Option<String>,
    /// The image of new machines; else the newest that carries the cluster's tag.
    pub image_id: Option<String>,
    /// Another address for the cloud's API.
    pub endpoint: Option<String>,
    /// The way to the cloud, in place of what the environment says of it.
    pub proxies: Proxies,
    /// How a machine gets a new image.
    pub rebuild: RebuildHow,
    /// Where to go when there is no room at a node's own place, in order.
    pub fallback: Vec<Fallback>,
    /// How to go about it.
    pub elastic: Elastic,
    /// Where other files are.
    pub paths: Paths,
}

/// The clouds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cloud {
    /// Oracle's.
    Oracle(Oracle),
    /// An OpenStack.
    OpenStack(OpenStack),
}

/// Where other files are, where that is not the usual place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// The public keys that may log in to a machine.
    pub ssh_keys: Option<String>,
    /// The script that a machine runs when it first boots.
    pub bootstrap: Option<String>,
    /// `slurm.conf`.
    pub slurm_conf: Option<String>,
    /// The directory of `scontrol`.
    pub slurm_bin: Option<String>,
    /// The target of each node's next rebuild.
    pub reboot_vars: Option<String>,
    /// The same, in the older place.
    pub hostvars: Option<String>,
    /// Shapes besides those that are built in.
    pub shapes: Option<String>,
    /// The management node's shape, which the limits count, too.
    pub management: Option<String>,
    /// The directory with a flag for each host that is ready.
    pub ready: Option<String>,
    /// What restarts slurmctld.
    pub restart: Vec<String>,
    /// A hosts file whose block of ours is kept up to date.
    pub hosts: Option<String>,
    /// An inventory that is kept up to date.
    pub inventory: Option<String>,
}

const COMMON: [&str; 25] = [
    "csp",
    "cluster_id",
    "image_id",
    "endpoint",
    "proxy",
    "no_proxy",
    "rebuild",
    "fallback",
    "elastic",
    "ssh_keys_file",
    "bootstrap_file",
    "slurm_conf",
    "slurm_bin",
    "reboot_vars",
    "hostvars",
    "shapes_file",
    "mgmt_shape_file",
    "finalised_dir",
    "restart_command",
    "hosts_file",
    "inventory_file",
    // CitC's own tools read these; we need them for nothing.
    "ansible_repo",
    "ansible_branch",
    "mgmt_image_id",
    "packer_version",
];

/// A file that was read, and what is odd about it.
#[derive(Debug)]
pub struct Loaded {
    /// What it says.
    pub settings: Settings,
    /// Keys that mean nothing, each with the one that may have been meant.
    pub warnings: Vec<Error>,
}

impl Settings {
    /// Reads a `startnode.yaml`; `file` is the name that errors call it by.
    pub fn read(file: &str, text: &str) -> Result<Loaded, Vec<Error>> {
        let source = Source::new(file, text);
        let root = source.read().map_err(|error| vec![error])?;
        let mut reader = Reader::new(&source, file, &root).map_err(|error| vec![error])?;
        let clouds = [("oracle", Csp::Oracle), ("openstack", Csp::OpenStack)];
        let told = reader.choice("csp", &clouds);
        let foreign = told.is_none() && reader.has_errors();
        let csp = told.unwrap_or(Csp::Oracle);
        let (cloud, own): (_, &[&str]) = match csp {
            Csp::Oracle => (oracle::read(&mut reader).map(Cloud::Oracle), &oracle::KEYS),
            Csp::OpenStack => {
                (Some(Cloud::OpenStack(openstack::read(&mut reader))), &openstack::KEYS)
            }
        };
        let common = Self::common(&mut reader, file);
        // Of a cloud that is misspelt, any key may be.
        let others: &[&str] = if foreign { &openstack::KEYS } else { &[] };
        reader.warn_unknown(&[&COMMON, own, others].concat());
        let (mut errors, warnings) = reader.into_findings();
        match cloud {
            Some(cloud) if errors.is_empty() => Ok(Loaded { settings: common(cloud), warnings }),
            _ => {
                // What is missing may be there under another name; what is wrong comes first.
                errors.extend(warnings);
                Err(errors)
            }
        }
    }

    /// What is read for all clouds, also when the cloud's own part is wrong, so that all errors come at once.
    fn common(reader: &mut Reader<'_>, file: &str) -> impl FnOnce(Cloud) -> Self + use<> {
        let rebuilds = [("in_place", RebuildHow::InPlace), ("recreate", RebuildHow::Recreate)];
        let cluster_id = reader.text("cluster_id");
        let image_id = reader.text("image_id");
        let endpoint = reader.text("endpoint");
        let proxies = proxies(reader);
        let rebuild = reader.choice("rebuild", &rebuilds).unwrap_or_default();
        let fallback = fallback::read(reader);
        let elastic = elastic::read(reader);
        let paths = Paths::read(reader);
        let file = file.to_owned();
        move |cloud| Self {
            file,
            cloud,
            cluster_id,
            image_id,
            endpoint,
            proxies,
            rebuild,
            fallback,
            elastic,
            paths,
        }
    }
}

/// One proxy for all; what is gone to directly is a list, or a text with commas.
fn proxies(reader: &mut Reader<'_>) -> Proxies {
    let proxy = reader.text("proxy").map(Secret::new);
    let direct = Some(reader.texts("no_proxy").join(",")).filter(|text| !text.is_empty());
    Proxies { http: proxy.clone(), https: proxy, no_proxy: direct }
}

impl Paths {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            ssh_keys: reader.text("ssh_keys_file"),
            bootstrap: reader.text("bootstrap_file"),
            slurm_conf: reader.text("slurm_conf"),
            slurm_bin: reader.text("slurm_bin"),
            reboot_vars: reader.text("reboot_vars"),
            hostvars: reader.text("hostvars"),
            shapes: reader.text("shapes_file"),
            management: reader.text("mgmt_shape_file"),
            ready: reader.text("finalised_dir"),
            restart: reader.words("restart_command"),
            hosts: reader.text("hosts_file"),
            inventory: reader.text("inventory_file"),
        }
    }
}

#[derive(Clone, Copy)]
enum Csp {
    Oracle,
    OpenStack,
}

#[cfg(test)]
mod tests;
