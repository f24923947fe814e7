//! What only an OpenStack needs.

use super::value::{between, texts};
use serde::Deserialize;

/// An OpenStack.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct OpenStack {
    /// The entry of `clouds.yaml`.
    pub cloud: Option<String>,
    /// The networks of the machines, by name or id; the first gives the address that Slurm is told.
    #[serde(deserialize_with = "texts")]
    pub networks: Vec<String>,
    /// The network whose address Slurm is told, if not the first.
    pub network_name: Option<String>,
    /// Security groups, by name or id.
    #[serde(deserialize_with = "texts")]
    pub security_groups: Vec<String>,
    /// The key pair's name.
    pub keypair: Option<String>,
    /// Where the machines are to be.
    pub availability_zone: Option<String>,
    /// With a size, machines boot from a volume of it.
    #[serde(deserialize_with = "between::<_, 1, 65_536>")]
    pub boot_volume_gb: Option<u32>,
    /// True to give machines their user data on a disk.
    pub config_drive: bool,
    /// The server group that machines belong to.
    pub server_group: Option<String>,
    // CitC names its two networks, and its security group, one by one.
    network_id: Option<String>,
    ceph_network: Option<String>,
    security_group: Option<String>,
}

impl OpenStack {
    /// With what CitC names one by one in the lists.
    pub(super) fn merged(mut self) -> Self {
        self.networks.extend(self.network_id.take());
        self.networks.extend(self.ceph_network.take());
        self.security_groups.extend(self.security_group.take());
        self
    }
}
