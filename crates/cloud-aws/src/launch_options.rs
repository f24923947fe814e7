//! Options of all launches of a provider.

use cloud_core::{SubnetId, Zone};
use std::collections::BTreeMap;

/// Default of the maximum number of instances that one request launches.
const BATCH: usize = 100;

/// Options of all launches of a provider. The spec of a launch overrides them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchOptions {
    /// The subnet of launches without a zone, and of zones without their own subnet.
    pub subnet: Option<SubnetId>,
    /// The subnet of each zone.
    pub subnets: BTreeMap<Zone, SubnetId>,
    /// Security groups, by id.
    pub security_groups: Vec<String>,
    /// The key pair.
    pub key_name: Option<String>,
    /// The instance profile, by name or ARN.
    pub instance_profile: Option<String>,
    /// Whether instances get a public address; by default, the subnet decides.
    pub public_ip: Option<bool>,
    /// True to allow version 1 of the metadata service, which is open to server-side request forgery.
    pub legacy_imds: bool,
    /// The launch template, which options and launches override.
    pub launch_template: Option<LaunchTemplate>,
    /// The placement group.
    pub placement_group: Option<String>,
    /// The capacity reservation, by id, or a resource group of reservations, by ARN.
    pub capacity_reservation: Option<String>,
    /// True if the reservation is a capacity block.
    pub capacity_block: bool,
    /// Maximum price of a spot instance per hour, in dollars; by default, the price on demand.
    pub spot_max_price: Option<String>,
    /// Number of EFA interfaces of an instance, each on its own network card.
    pub efa: u32,
    /// Size of the boot disk.
    pub boot_volume_gb: Option<u32>,
    /// Tags in addition to those of the launch.
    pub tags: BTreeMap<String, String>,
    /// Maximum number of instances that one request launches. With 1, each has its name in the tag `Name`; otherwise all
    /// instances of a request carry the names of all, see the crate's documentation.
    pub batch: usize,
    /// Owners whose images are listed in addition to `self`: accounts, `amazon`.
    pub image_owners: Vec<String>,
    /// Images that are listed whoever owns them, by id.
    pub images: Vec<String>,
}

/// A launch template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchTemplate {
    /// The id or the name.
    pub id: String,
    /// The version: a number, `$Latest` or `$Default`.
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
