//! What only Oracle's cloud needs.

use super::value::{between, texts};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Oracle's cloud.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Oracle {
    /// The region, if other than that of the credentials.
    pub region: Option<String>,
    /// The domain of the realm, for a region that we do not know.
    pub realm: Option<String>,
    /// Where the machines are made.
    pub compartment_id: String,
    /// Where to look for the subnet, if it is not named.
    pub vcn_id: Option<String>,
    /// The subnet of the machines.
    pub subnet_id: Option<String>,
    /// What the names of availability domains begin with; the domain's number follows.
    pub ad_root: Option<String>,
    /// How we prove who we are.
    pub auth: Auth,
    /// The profile of `~/.oci/config`.
    pub profile: Option<String>,
    /// Another file than `~/.oci/config`.
    pub config_file: Option<String>,
    /// Machines that may be taken away at any time, at a lower price.
    pub preemptible: bool,
    /// The cluster network that bare metal machines belong to.
    pub compute_cluster_id: Option<String>,
    /// The boot disk's size.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    pub boot_volume_gb: Option<u32>,
    /// Whether machines are called by their names in the subnet's DNS.
    #[serde(default = "yes")]
    pub hostname_label: bool,
    /// Whether machines may read their user data the old way, which any of their processes can be led to.
    pub legacy_imds: bool,
    /// The network security groups of machines.
    #[serde(deserialize_with = "texts")]
    pub nsg_ids: Vec<String>,
    /// Tags of machines besides ours.
    pub freeform_tags: BTreeMap<String, String>,
    /// Tags of machines in name spaces of the tenancy.
    pub defined_tags: BTreeMap<String, BTreeMap<String, String>>,
}

/// How we prove who we are.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// By `~/.oci/config`.
    #[default]
    ConfigFile,
    /// As the machine we run on.
    InstancePrincipal,
}

fn yes() -> bool {
    true
}
