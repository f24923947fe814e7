//! What only Oracle's cloud needs.

use super::reader::Reader;
use std::collections::BTreeMap;

/// Oracle's cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub boot_volume_gb: Option<u32>,
    /// Whether machines are called by their names in the subnet's DNS.
    pub hostname_label: bool,
    /// Whether machines may read their user data the old way, which any of their processes can be led to.
    pub legacy_imds: bool,
    /// The network security groups of machines.
    pub nsg_ids: Vec<String>,
    /// Tags of machines besides ours.
    pub freeform_tags: BTreeMap<String, String>,
    /// Tags of machines in name spaces of the tenancy.
    pub defined_tags: BTreeMap<String, BTreeMap<String, String>>,
}

/// How we prove who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// By `~/.oci/config`.
    ConfigFile,
    /// As the machine we run on.
    InstancePrincipal,
}

pub(super) const KEYS: [&str; 17] = [
    "region",
    "realm",
    "compartment_id",
    "vcn_id",
    "subnet_id",
    "ad_root",
    "auth",
    "profile",
    "config_file",
    "preemptible",
    "boot_volume_gb",
    "compute_cluster_id",
    "hostname_label",
    "legacy_imds",
    "nsg_ids",
    "freeform_tags",
    "defined_tags",
];

pub(super) fn read(reader: &mut Reader<'_>) -> Option<Oracle> {
    let auth = [("config_file", Auth::ConfigFile), ("instance_principal", Auth::InstancePrincipal)];
    let compartment_id = reader.required("compartment_id");
    Some(Oracle {
        region: reader.text("region"),
        realm: reader.text("realm"),
        vcn_id: reader.text("vcn_id"),
        subnet_id: reader.text("subnet_id"),
        ad_root: reader.text("ad_root"),
        auth: reader.choice("auth", &auth).unwrap_or(Auth::ConfigFile),
        profile: reader.text("profile"),
        config_file: reader.text("config_file"),
        preemptible: reader.truth("preemptible").unwrap_or(false),
        compute_cluster_id: reader.text("compute_cluster_id"),
        boot_volume_gb: reader.number("boot_volume_gb", (1, 65_536)),
        hostname_label: reader.truth("hostname_label").unwrap_or(true),
        legacy_imds: reader.truth("legacy_imds").unwrap_or(false),
        nsg_ids: reader.texts("nsg_ids"),
        freeform_tags: reader.map("freeform_tags", Reader::all_texts).unwrap_or_default(),
        defined_tags: reader.map("defined_tags", Reader::all_maps_of_texts).unwrap_or_default(),
        // Nothing but the compartment has to be there, so that the rest is looked at even without it.
        compartment_id: compartment_id?,
    })
}
