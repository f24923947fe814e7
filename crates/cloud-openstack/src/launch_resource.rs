//! Checks the resources that launches name.

use crate::create::Nic;
use crate::provider::OpenStack;
use crate::resolve::{Kind, find};
use cloud_core::{ApiOperation, Error, Result};
use std::fmt;

/// A resource that launches name, and whether it exists.
#[derive(Debug)]
#[non_exhaustive]
pub struct LaunchResource {
    /// Its kind, such as `network` or `key pair`.
    pub what: &'static str,
    /// Its name or id, as configured.
    pub name: String,
    /// Whether it was found: an error if there is none or several, or if the lookup failed.
    pub found: Result<()>,
}

impl fmt::Display for LaunchResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.name)
    }
}

/// A resource that the spec of an instance names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstanceResource {
    /// A network, by name or id.
    Network(String),
    /// A key pair.
    KeyPair(String),
}

impl OpenStack {
    /// Checks the resources of launches: networks and ports, security groups, server group and key pair of
    /// [`ConnectSettings::launch`](crate::ConnectSettings::launch), the network of addresses, and then those of
    /// [`InstanceSpec`](cloud_core::InstanceSpec)s, in this order.
    ///
    /// It sends one request for each, sequentially, and stops querying a Neutron that does not answer. Launches resolve
    /// names themselves; this is for checks.
    pub async fn check_launch_resources(&self, own: &[InstanceResource]) -> Vec<LaunchResource> {
        let options = &self.launch;
        let nics = options.nics.iter().map(|nic| match nic {
            Nic::Network { network, .. } => (Kind::Network, network),
            Nic::Port(port) => (Kind::Port, port),
        });
        let groups = options.security_groups.iter().map(|group| (Kind::SecurityGroup, group));
        let server_group = options.server_group.iter().map(|group| (Kind::ServerGroup, group));
        let key_pair = options.keypair.iter().map(|name| (Kind::KeyPair, name));
        let addresses = self.address_network.iter().map(|network| (Kind::Network, network));
        let own = own.iter().map(|own| match own {
            InstanceResource::Network(name) => (Kind::Network, name),
            InstanceResource::KeyPair(name) => (Kind::KeyPair, name),
        });
        let mut resources = Vec::new();
        let mut silent: Option<Error> = None;
        let launches = nics.chain(groups).chain(server_group).chain(key_pair).chain(addresses);
        for (kind, name) in launches.chain(own) {
            let found = match &silent {
                // Each further request would time out, too.
                Some(error) if kind.is_neutrons() => Err(error.clone()),
                _ => find(&self.api, ApiOperation::Get, kind, name).await,
            };
            let late = found.as_ref().err().filter(|error| error.kind().is_transient());
            silent = silent.or_else(|| late.filter(|_| kind.is_neutrons()).cloned());
            let found =
                found.map(drop).map_err(|error| error.on(format!("{} {name}", kind.word())));
            resources.push(LaunchResource { what: kind.word(), name: name.clone(), found });
        }
        resources
    }
}
