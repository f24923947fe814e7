//! Where instances go and how they are made, for all launches of a provider.

use cloud_core::{SubnetId, Zone};
use std::collections::BTreeMap;

/// Most instances that one request launches, unless a provider is told otherwise.
const BATCH: usize = 100;

/// Where instances go and how they are made; what a launch says itself goes before it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The subnet of launches that name no zone, and of all if there is no other.
    pub subnet: Option<SubnetId>,
    /// The subnet of each zone.
    pub subnets: BTreeMap<Zone, SubnetId>,
    /// Security groups, by id.
    pub security_groups: Vec<String>,
    /// The key pair.
    pub key_name: Option<String>,
    /// The instance profile, by name or ARN.
    pub instance_profile: Option<String>,
    /// Whether instances get a public address; the subnet says it if this does not.
    pub public_ip: Option<bool>,
    /// True to allow version 1 of the metadata service, which is open to server-side request forgery.
    pub legacy_imds: bool,
    /// The launch template that gives all that is not said here or by a launch.
    pub launch_template: Option<LaunchTemplate>,
    /// The placement group.
    pub placement_group: Option<String>,
    /// The capacity to use that is paid already: the id of a reservation, or the ARN of a resource group of such.
    pub capacity_reservation: Option<String>,
    /// True if that reservation is a capacity block.
    pub capacity_block: bool,
    /// The most that a spot instance may cost for an hour, in dollars; the price on demand if none is set.
    pub spot_max_price: Option<String>,
    /// How many EFA interfaces instances get, each on a network card of its own.
    pub efa: u32,
    /// The boot disk's size.
    pub boot_volume_gb: Option<u32>,
    /// Tags besides those of a launch.
    pub tags: BTreeMap<String, String>,
    /// Most instances that one request launches. With 1, each has its name in the tag `Name` at once; otherwise those of
    /// one request share the names of all, see the crate's documentation.
    pub batch: usize,
    /// Whose images are listed, beside `self`: other accounts, `amazon`.
    pub image_owners: Vec<String>,
    /// Images that are listed whoever owns them, by id.
    pub images: Vec<String>,
}

/// A launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplate {
    /// Its id or its name.
    pub id: String,
    /// Its version, a number, `$Latest` or `$Default`.
    pub version: Option<String>,
}

impl Default for LaunchOptions {
    fn default() -> Self {
        Self {
            subnet: None,
            subnets: BTreeMap::new(),
            security_groups: Vec::new(),
            key_name: None,
            instance_profile: None,
            public_ip: None,
            legacy_imds: false,
            launch_template: None,
            placement_group: None,
            capacity_reservation: None,
            capacity_block: false,
            spot_max_price: None,
            efa: 0,
            boot_volume_gb: None,
            tags: BTreeMap::new(),
            batch: BATCH,
            image_owners: Vec::new(),
            images: Vec::new(),
        }
    }
}
