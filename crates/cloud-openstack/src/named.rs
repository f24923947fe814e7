//! Whether what launches name is there.

use crate::create::Nic;
use crate::provider::OpenStack;
use crate::resolve::{Kind, find};
use cloud_core::{Operation, Result};

impl OpenStack {
    /// What launches name, such as `network cluster`, or why none of that name can be meant: the networks and ports, the
    /// security groups, the server group and the key pair of [`Settings::launch`](crate::Settings::launch).
    ///
    /// One request for each. A launch looks its names up by itself; this is for whoever wants to know before.
    pub async fn named(&self) -> Vec<Result<String>> {
        let options = &self.launch;
        let nics = options.nics.iter().map(|nic| match nic {
            Nic::Network { network, .. } => (Kind::Network, network),
            Nic::Port(port) => (Kind::Port, port),
        });
        let groups = options.security_groups.iter().map(|group| (Kind::SecurityGroup, group));
        let server_group = options.server_group.iter().map(|group| (Kind::ServerGroup, group));
        let key_pair = options.keypair.iter().map(|name| (Kind::KeyPair, name));
        let mut named = Vec::new();
        for (kind, name) in nics.chain(groups).chain(server_group).chain(key_pair) {
            let found = find(&self.api, Operation::Launch, kind, name).await;
            named.push(found.map(|_| format!("{} {name}", kind.word())));
        }
        named
    }
}
