//! Addresses of instances, where a cloud does not list them with the instances.

use cloud_core::{Error, Instance, InstanceId, Provider};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The addresses of those live instances that are shown without; the cloud is only asked if there
/// are any.
pub(crate) async fn look_up(
    cloud: &dyn Provider,
    instances: impl Iterator<Item = &Instance>,
) -> Result<BTreeMap<InstanceId, IpAddr>, Error> {
    let bare: Vec<InstanceId> = instances
        .filter(|instance| instance.address.is_none() && instance.state.is_live())
        .map(|instance| instance.id.clone())
        .collect();
    if bare.is_empty() { Ok(BTreeMap::new()) } else { cloud.addresses(&bare).await }
}
