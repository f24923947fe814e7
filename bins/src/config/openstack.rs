//! What only an OpenStack needs.

use super::reader::Reader;

/// An OpenStack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenStack {
    /// The entry of `clouds.yaml`.
    pub cloud: Option<String>,
    /// The networks of the machines, by name or id; the first gives the address that Slurm is told.
    pub networks: Vec<String>,
    /// The network whose address Slurm is told, if not the first.
    pub network_name: Option<String>,
    /// Security groups, by name or id.
    pub security_groups: Vec<String>,
    /// The key pair's name.
    pub keypair: Option<String>,
    /// Where the machines are to be.
    pub availability_zone: Option<String>,
    /// With a size, machines boot from a volume of it.
    pub boot_volume_gb: Option<u32>,
    /// True to give machines their user data on a disk.
    pub config_drive: bool,
    /// The server group that machines belong to.
    pub server_group: Option<String>,
}

pub(super) const KEYS: [&str; 12] = [
    "cloud",
    "network_id",
    "ceph_network",
    "networks",
    "network_name",
    "security_group",
    "security_groups",
    "keypair",
    "availability_zone",
    "boot_volume_gb",
    "config_drive",
    "server_group",
];

pub(super) fn read(reader: &mut Reader<'_>) -> OpenStack {
    let mut networks = reader.texts("networks");
    // CitC names its two networks one by one.
    networks.extend(reader.text("network_id"));
    networks.extend(reader.text("ceph_network"));
    let mut security_groups = reader.texts("security_groups");
    security_groups.extend(reader.text("security_group"));
    OpenStack {
        cloud: reader.text("cloud"),
        networks,
        network_name: reader.text("network_name"),
        security_groups,
        keypair: reader.text("keypair"),
        availability_zone: reader.text("availability_zone"),
        boot_volume_gb: reader.number("boot_volume_gb", (1, 65_536)),
        config_drive: reader.truth("config_drive").unwrap_or(false),
        server_group: reader.text("server_group"),
    }
}
