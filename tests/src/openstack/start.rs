//! A cluster in an OpenStack.

use super::OpenStack;
use super::client::Client;
use crate::builder::Builder;
use crate::cluster::Cluster;
use crate::namespaces::directory;
use crate::watch::Watcher;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// The image that servers have when nobody says otherwise.
const IMAGE: &str = "image-1";

impl Builder {
    /// Starts it all in a real OpenStack, and waits until slurmctld answers.
    ///
    /// Machines are slurmd that we boot when their server is ACTIVE. New servers have the image `image-1`.
    #[must_use]
    pub fn start_on_openstack(self) -> Cluster<OpenStack> {
        let clouds = directory().expect("a cluster is made in a scenario").join("clouds.yaml");
        let (home, munged) =
            self.prepare(&format!("export OS_CLIENT_CONFIG_FILE={}\n", clouds.display()));
        let mut cloud = OpenStack::start(&home.dir);
        fs::copy(cloud.directory.join("clouds.yaml"), &clouds).expect("a directory of ours");
        fs::set_permissions(&clouds, fs::Permissions::from_mode(0o600)).expect("our own file");
        make_network(&cloud);
        let yaml = format!(
            "csp: openstack
cloud: app
networks: [cluster]
security_groups: [slurm]
keypair: key-1
image_id: {}
",
            cloud.image(IMAGE)
        );
        let (directory, client) = (cloud.directory.clone(), cloud.admin.clone());
        cloud.watcher =
            Some(Watcher::start(home.dir.clone(), move || super::up(&client, &directory)));
        self.begin(cloud, munged, home, &yaml)
    }
}

/// The network that the machines of all clusters here are in; Neutron leaves its first address to a router, which we are.
fn make_network(cloud: &OpenStack) {
    let demo = Client::new(&cloud.facts, "demo");
    let make = |path: &str, body| demo.call("POST", "neutron", path, &body).expect("it is made");
    let network = make("/v2.0/networks", json!({"network": {"name": "cluster"}}));
    let id = network.pointer("/network/id").cloned().unwrap_or_default();
    let subnet = json!({"network_id": id, "ip_version": 4, "cidr": "10.77.0.0/16"});
    make("/v2.0/subnets", json!({"subnet": subnet}));
}
